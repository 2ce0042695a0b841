-- Notes units as exposed, each followed by when, if there is room; gives how many found none.
local key, units_max, life_ms, refused = KEYS[1] .. ':units', tonumber(ARGV[1]), ARGV[2], 0
for at = 3, #ARGV, 2 do
  if redis.call('ZCARD', key) < units_max or redis.call('ZSCORE', key, ARGV[at]) then
    redis.call('ZADD', key, 'NX', ARGV[at + 1], ARGV[at])
  else
    refused = refused + 1
  end
end
redis.call('PEXPIRE', key, life_ms)
return refused
