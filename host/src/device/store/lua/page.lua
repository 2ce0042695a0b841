-- Devices in the order of their ids, each followed by its record. One without a record has expired, and is forgotten.
local base, from, count = KEYS[1], ARGV[1], ARGV[2]
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYLEX', base .. 'ids', from, '+', 'LIMIT', 0, count)) do
  local text = redis.call('HGET', base .. 'record:' .. id, 'record')
  if not text then redis.call('ZREM', base .. 'ids', id) end
  found[#found + 1] = id
  found[#found + 1] = text
end
return found
