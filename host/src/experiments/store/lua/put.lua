-- Stores a module with its configuration, for a while unless it is there already.
local key = KEYS[1] .. ':module:' .. ARGV[1]
if redis.call('EXISTS', key) == 1 and redis.call('PTTL', key) == -1 then return 0 end
redis.call('HSET', key, 'wasm', ARGV[2], 'config', ARGV[3])
redis.call('PEXPIRE', key, ARGV[4])
return 1
