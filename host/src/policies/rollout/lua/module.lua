-- A module and its configuration, or nothing.
local found = redis.call('HMGET', KEYS[1] .. 'module:' .. ARGV[1] .. ':' .. ARGV[2], 'wasm', 'config')
if not found[1] or not found[2] then return false end
return found
