-- Stores a module with its configuration, for a while unless it is there already; of those that are not needed the oldest make room.
local key, index = KEYS[1] .. ':module:' .. ARGV[1], KEYS[1] .. ':unneeded'
if redis.call('EXISTS', key) == 1 and redis.call('PTTL', key) == -1 then return 0 end
redis.call('HSET', key, 'wasm', ARGV[2], 'config', ARGV[3])
redis.call('PEXPIRE', key, ARGV[4])
local now = redis.call('TIME')
redis.call('ZADD', index, now[1] * 1000000 + now[2], ARGV[1])
for _, one in ipairs(redis.call('ZRANGE', index, 0, -1)) do
  if redis.call('EXISTS', KEYS[1] .. ':module:' .. one) == 0 then redis.call('ZREM', index, one) end
end
local many = redis.call('ZCARD', index) - tonumber(ARGV[5])
for _, one in ipairs(many > 0 and redis.call('ZRANGE', index, 0, many - 1) or {}) do
  redis.call('DEL', KEYS[1] .. ':module:' .. one)
  redis.call('ZREM', index, one)
end
return 1
