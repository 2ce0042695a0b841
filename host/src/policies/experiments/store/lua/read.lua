-- All experiments, as text.
return redis.call('HGET', KEYS[1], 'state')
