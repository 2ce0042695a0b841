-- Adds up what became of users. Each: its id, when, the arm, the weights, how many counts, and these by name and number. The first
-- decision exposes it; what comes after its horizon, or from another arm, does not count. A treatment's decisions that do not are
-- summed for the guardrails alone, for a horizon from the first of them. Gives how many found no room.
local base, units_max, life_ms, horizon_ms, refused = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), 0
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local function covers(since, its_arm, when, arm)
  return since and its_arm == arm and tonumber(when) < tonumber(since) + horizon_ms
end
local at = 4
while ARGV[at] do
  local user, when, arm, weights, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
  local key = base .. ':user:' .. user
  local known = redis.call('HMGET', key, 'at', 'arm', 'guard:at', 'guard:arm')
  if not known[1] then
    if redis.call('ZCARD', base .. ':units') < units_max then
      redis.call('HSET', key, 'at', when, 'arm', arm, 'weights', weights)
      redis.call('ZADD', base .. ':units', now_ms, user)
      known = { when, arm }
    else
      refused = refused + 1
    end
  end
  local counts = {}
  for i = at + 5, at + 4 + 2 * count, 2 do counts[ARGV[i]] = ARGV[i + 1] end
  if covers(known[1], known[2], when, arm) then
    for name, number in pairs(counts) do redis.call('HINCRBY', key, 'n:' .. name, number) end
  elseif known[1] and counts['decisions'] then
    if arm == '0' then
      redis.call('HDEL', key, 'guard:at', 'guard:arm', 'guard:decisions', 'guard:failures')
    else
      if not covers(known[3], known[4], when, arm) then
        redis.call('HSET', key, 'guard:at', when, 'guard:arm', arm, 'guard:decisions', 0, 'guard:failures', 0)
        redis.call('ZADD', base .. ':units', now_ms, user)
      end
      redis.call('HINCRBY', key, 'guard:decisions', counts['decisions'])
      redis.call('HINCRBY', key, 'guard:failures', counts['failures'] or 0)
    end
  end
  redis.call('PEXPIRE', key, life_ms)
  at = at + 5 + 2 * count
end
redis.call('PEXPIRE', base .. ':units', life_ms)
return refused
