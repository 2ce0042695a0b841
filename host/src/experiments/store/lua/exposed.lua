-- Units that were exposed since a moment, in the order of their exposure.
return redis.call('ZRANGEBYSCORE', KEYS[1] .. ':units', ARGV[1], '+inf', 'LIMIT', ARGV[2], ARGV[3])
