-- Writes all experiments if the version is the expected one: 1 if it did, 0 if another was faster, -1 if a module that is needed is
-- not stored. Those that are needed are kept for good, those that are not any more for a while.
local expected, version, state, life_ms, needed = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= expected then return 0 end
for at = 6, 5 + needed do
  if redis.call('EXISTS', KEYS[1] .. ':module:' .. ARGV[at]) == 0 then return -1 end
end
redis.call('HSET', KEYS[1], 'version', version, 'state', state)
for at = 6, 5 + needed do redis.call('PERSIST', KEYS[1] .. ':module:' .. ARGV[at]) end
for at = 6 + needed, #ARGV do redis.call('PEXPIRE', KEYS[1] .. ':module:' .. ARGV[at], life_ms) end
return 1
