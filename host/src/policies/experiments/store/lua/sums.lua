-- What became of users so far: of each its names and values, a list of its own.
local found = {}
for at = 1, #ARGV do found[at] = redis.call('HGETALL', KEYS[1] .. ':user:' .. ARGV[at]) end
return found
