-- Notes units as exposed, if there is room; gives how many found none. One that is noted again is among the latest again. The moment
-- is that of this store: the replicas' clocks differ, and what they bring comes late.
local key, units_max, life_ms, refused = KEYS[1] .. ':units', tonumber(ARGV[1]), ARGV[2], 0
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
for at = 3, #ARGV do
  if redis.call('ZCARD', key) < units_max or redis.call('ZSCORE', key, ARGV[at]) then
    redis.call('ZADD', key, now_ms, ARGV[at])
  else
    refused = refused + 1
  end
end
redis.call('PEXPIRE', key, life_ms)
return refused
