-- Forgets the reports of a replica that leaves.
for at = 2, #ARGV do redis.call('HDEL', KEYS[1] .. 'report:' .. ARGV[at], ARGV[1]) end
return 1
