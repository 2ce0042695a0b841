-- Writes all experiments if the version is the expected one: 1 if it did, 0 if another was faster, -1 if a module that is needed is
-- not stored. Those that are needed or kept stay for good, those that are not any more for a while, and of these the oldest make room.
local expected, version, state, life_ms, unneeded_max = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local needed, kept, index = tonumber(ARGV[6]), tonumber(ARGV[7]), KEYS[1] .. ':unneeded'
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= expected then return 0 end
for at = 8, 7 + needed do
  if redis.call('EXISTS', KEYS[1] .. ':module:' .. ARGV[at]) == 0 then return -1 end
end
redis.call('HSET', KEYS[1], 'version', version, 'state', state)
for at = 8, 7 + needed + kept do
  redis.call('PERSIST', KEYS[1] .. ':module:' .. ARGV[at])
  redis.call('ZREM', index, ARGV[at])
end
local now = redis.call('TIME')
for at = 8 + needed + kept, #ARGV do
  if redis.call('PEXPIRE', KEYS[1] .. ':module:' .. ARGV[at], life_ms) == 1 then
    redis.call('ZADD', index, 'NX', now[1] * 1000000 + now[2], ARGV[at])
  end
end
local many = redis.call('ZCARD', index) - unneeded_max
for _, one in ipairs(many > 0 and redis.call('ZRANGE', index, 0, many - 1) or {}) do
  redis.call('DEL', KEYS[1] .. ':module:' .. one)
  redis.call('ZREM', index, one)
end
return 1
