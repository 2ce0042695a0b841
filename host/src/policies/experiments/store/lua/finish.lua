-- Notes what became of units whose horizon is over: each followed by its row.
local key, life_ms = KEYS[1] .. ':over', ARGV[1]
for at = 2, #ARGV, 2 do redis.call('HSETNX', key, ARGV[at], ARGV[at + 1]) end
redis.call('PEXPIRE', key, life_ms)
return 1
