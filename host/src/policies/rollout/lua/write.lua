-- Writes a slot's document if it is still the one that was read, deletes the modules that only the old one named, and keeps those that
-- the new one names; with it, the module that is pushed. Gives 1 if it did, else 0. The whole text is compared: it holds the version.
local base = KEYS[1]
local slot, expected, document, kept = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local dropped, pushed = tonumber(ARGV[5 + kept]), 6 + kept
local key, module = base .. 'slot:' .. slot, base .. 'module:' .. slot .. ':'
if (redis.call('GET', key) or '') ~= expected then return 0 end
redis.call('SET', key, document)
for at = 5, 4 + kept do redis.call('PERSIST', module .. ARGV[at]) end
for at = pushed, pushed + dropped - 1 do redis.call('DEL', module .. ARGV[at]) end
local at = pushed + dropped
if ARGV[at] then
  redis.call('DEL', module .. ARGV[at])
  redis.call('HSET', module .. ARGV[at], 'wasm', ARGV[at + 1], 'config', ARGV[at + 2], 'pushed_ms', ARGV[at + 3])
end
return 1
