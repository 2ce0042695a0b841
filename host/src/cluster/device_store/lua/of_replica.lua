-- A part of the devices whose records name a replica, and where the next part begins.
local base, replica, cursor, count = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local scanned = redis.call('SSCAN', base .. 'of:' .. replica, cursor, 'COUNT', count)
local found = {}
for _, id in ipairs(scanned[2]) do
  -- Not that of a record that has expired.
  if redis.call('HGET', base .. 'record:' .. id, 'replica') == replica then found[#found + 1] = id end
end
return { scanned[1], found }
