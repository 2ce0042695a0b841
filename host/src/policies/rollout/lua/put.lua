-- Stores a module: for good when the slot's document names it, else for a while, until a document that is about to be written does.
local base = KEYS[1]
local slot, digest, wasm, config, pushed_ms, life_ms = unpack(ARGV)
local key = base .. 'module:' .. slot .. ':' .. digest
redis.call('HSET', key, 'wasm', wasm, 'config', config, 'pushed_ms', pushed_ms)
local document = redis.call('GET', base .. 'slot:' .. slot) or ''
if document:find(digest, 1, true) then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, life_ms)
end
return 1
