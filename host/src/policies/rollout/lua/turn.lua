-- Writes what a replica reports of each slot, forgets reports of replicas that have stopped reporting, and gives the clock and, for
-- each slot, the document (or ''), whether the module that the replica serves is stored, and all reports.
-- A report is the clock when it was written, a line break, and its JSON: the clock is this server's alone.
local base = KEYS[1]
local uid, silent_ms, life_ms = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', now_ms)
local answer = { now }
for at = 4, #ARGV, 3 do
  local slot, report, serving = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local reports = base .. 'report:' .. slot
  redis.call('HSET', reports, uid, now .. '\n' .. report)
  redis.call('PEXPIRE', reports, life_ms)
  local all = redis.call('HGETALL', reports)
  local live = {}
  for i = 1, #all, 2 do
    local written_ms = tonumber(all[i + 1]:match('^(%d+)\n')) or 0
    if now_ms - written_ms > silent_ms then
      redis.call('HDEL', reports, all[i])
    else
      live[#live + 1] = all[i]
      live[#live + 1] = all[i + 1]
    end
  end
  local is_stored = 1
  if serving ~= '' then is_stored = redis.call('EXISTS', base .. 'module:' .. slot .. ':' .. serving) end
  answer[#answer + 1] = { redis.call('GET', base .. 'slot:' .. slot) or '', is_stored, live }
end
return answer
