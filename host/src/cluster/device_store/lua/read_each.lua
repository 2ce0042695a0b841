-- The records of several devices, as text; '' of one that has none.
local found = {}
for at = 1, #ARGV do found[at] = redis.call('HGET', KEYS[1] .. 'record:' .. ARGV[at], 'record') or '' end
return found
