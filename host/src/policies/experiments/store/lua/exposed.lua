-- The moment of this store, and a page of the units that were noted since one. The latest come first: one that is noted meanwhile
-- moves others to a later page, never to an earlier one.
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { now_ms, redis.call('ZREVRANGEBYSCORE', KEYS[1] .. ':units', '+inf', ARGV[1], 'LIMIT', ARGV[2], ARGV[3]) }
