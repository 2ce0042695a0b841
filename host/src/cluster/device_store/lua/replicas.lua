-- All replicas that records name.
return redis.call('SMEMBERS', KEYS[1] .. 'replicas')
