-- Devices in the order of their ids, each followed by its record: all, or those of an owner. One without a record has expired, and
-- is forgotten.
local base, from, count, owner = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local ids = owner == '' and base .. 'ids' or base .. 'owned:' .. owner
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYLEX', ids, from, '+', 'LIMIT', 0, count)) do
  local text = redis.call('HGET', base .. 'record:' .. id, 'record')
  if not text then redis.call('ZREM', ids, id) end
  found[#found + 1] = id
  found[#found + 1] = text
end
return found
