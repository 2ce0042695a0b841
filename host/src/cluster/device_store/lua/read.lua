-- The record of a device, as text.
return redis.call('HGET', KEYS[1] .. 'record:' .. ARGV[1], 'record')
