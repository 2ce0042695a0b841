-- The clock, a slot's document (or ''), and whether a module is stored.
local base, slot, digest = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return { now, redis.call('GET', base .. 'slot:' .. slot) or '', redis.call('EXISTS', base .. 'module:' .. slot .. ':' .. digest) }
