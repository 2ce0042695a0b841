-- Writes a device's record and the indexes that lead to it, if its epoch is the expected one. Gives 1 if it did, else 0.
-- An epoch is compared as text: a number of Lua does not hold 64 bits.
local base = KEYS[1]
local id, expected, epoch, text, code, replica, owner, life_ms, sweep_ms, sweep_max = unpack(ARGV)
local record, ids, expiring, replicas = base .. 'record:' .. id, base .. 'ids', base .. 'expiring', base .. 'replicas'

local was = redis.call('HMGET', record, 'epoch', 'code', 'replica', 'owner')
local was_epoch, was_code, was_replica, was_owner = was[1] or '0', was[2] or '', was[3] or '', was[4] or ''
if was_epoch ~= expected then return 0 end

-- A device is no longer found by a replica.
local function leave(name, device)
  if name == '' then return end
  redis.call('SREM', base .. 'of:' .. name, device)
  if redis.call('EXISTS', base .. 'of:' .. name) == 0 then redis.call('SREM', replicas, name) end
end

-- Indexes outlive the records that expire. More are swept in a swap than one swap can add.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', now_ms)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', expiring, '-inf', now, 'LIMIT', 0, sweep_max)) do
  redis.call('ZREM', expiring, member)
  local name, device = member:match('^([^\n]*)\n(.*)$')
  if device then
    local held = redis.call('HGET', base .. 'record:' .. device, 'replica')
    if held ~= name then leave(name, device) end
    if not held then redis.call('ZREM', ids, device) end
  end
end

redis.call('HSET', record, 'epoch', epoch, 'record', text, 'code', code, 'replica', replica, 'owner', owner)
redis.call('ZADD', ids, 0, id)

if was_owner ~= '' and was_owner ~= owner then redis.call('ZREM', base .. 'owned:' .. was_owner, id) end
if owner ~= '' then redis.call('ZADD', base .. 'owned:' .. owner, 0, id) end

redis.call('ZREM', expiring, was_replica .. '\n' .. id)
if life_ms == '0' then
  redis.call('PERSIST', record)
else
  redis.call('PEXPIRE', record, life_ms)
  redis.call('ZADD', expiring, string.format('%.0f', now_ms + life_ms + sweep_ms), replica .. '\n' .. id)
end

if was_replica ~= replica then leave(was_replica, id) end
if replica ~= '' then
  redis.call('SADD', base .. 'of:' .. replica, id)
  redis.call('SADD', replicas, replica)
end

-- A code belongs to the device that had it first, for as long as that has it.
if was_code ~= '' and was_code ~= code and redis.call('GET', base .. 'code:' .. was_code) == id then
  redis.call('DEL', base .. 'code:' .. was_code)
end
if code ~= '' then
  local key = base .. 'code:' .. code
  local first = redis.call('GET', key)
  if not first or first == id or redis.call('HGET', base .. 'record:' .. first, 'code') ~= code then
    if life_ms == '0' then
      redis.call('SET', key, id)
    else
      redis.call('SET', key, id, 'PX', life_ms)
    end
  end
end
return 1
