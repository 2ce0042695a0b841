-- A page of what became of units: where the next begins, and units each followed by its row.
return redis.call('HSCAN', KEYS[1] .. ':over', ARGV[1], 'COUNT', ARGV[2])
