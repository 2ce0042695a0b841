-- The device that has a pairing code.
local base, code = KEYS[1], ARGV[1]
local id = redis.call('GET', base .. 'code:' .. code)
return id and redis.call('HGET', base .. 'record:' .. id, 'code') == code and id
