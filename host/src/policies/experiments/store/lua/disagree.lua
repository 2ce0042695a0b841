-- Adds to the cells of the matrix: each its name and by how much.
local key, cells_max, life_ms = KEYS[1] .. ':cells', tonumber(ARGV[1]), ARGV[2]
for at = 3, #ARGV, 2 do
  if redis.call('HLEN', key) < cells_max or redis.call('HEXISTS', key, ARGV[at]) == 1 then
    redis.call('HINCRBY', key, ARGV[at], ARGV[at + 1])
  end
end
redis.call('PEXPIRE', key, life_ms)
return 1
