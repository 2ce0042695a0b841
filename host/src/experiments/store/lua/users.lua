-- Adds up what became of users. Each: its id, when, the arm, the weights, how many counts, and these by name and number. The first
-- decision exposes it; what comes after its horizon, or from another arm, does not count. Gives how many found no room.
local base, units_max, life_ms, horizon_ms, refused = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), 0
local at = 4
while ARGV[at] do
  local user, when, arm, weights, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
  local key = base .. ':user:' .. user
  local known = redis.call('HMGET', key, 'at', 'arm')
  if not known[1] then
    if redis.call('ZCARD', base .. ':units') < units_max then
      redis.call('HSET', key, 'at', when, 'arm', arm, 'weights', weights)
      redis.call('ZADD', base .. ':units', 'NX', when, user)
      known = { when, arm }
    else
      refused = refused + 1
    end
  end
  if known[1] and known[2] == arm and tonumber(when) < tonumber(known[1]) + horizon_ms then
    for i = at + 5, at + 4 + 2 * count, 2 do redis.call('HINCRBY', key, 'n:' .. ARGV[i], ARGV[i + 1]) end
  end
  redis.call('PEXPIRE', key, life_ms)
  at = at + 5 + 2 * count
end
redis.call('PEXPIRE', base .. ':units', life_ms)
return refused
