-- The cells of the matrix: each its name and number.
return redis.call('HGETALL', KEYS[1] .. ':cells')
