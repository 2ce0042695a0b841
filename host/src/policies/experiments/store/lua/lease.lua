-- Takes or renews the turn of the replica that evaluates: 1 if it is this one's.
local key = KEYS[1] .. ':evaluator'
local has = redis.call('GET', key)
if has and has ~= ARGV[1] then return 0 end
redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
return 1
