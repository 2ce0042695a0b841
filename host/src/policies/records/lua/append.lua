-- KEYS[1]: the stream. ARGV[1]: about how many entries it keeps; the rest: a record each.
for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'record', ARGV[i])
end
return #ARGV - 1
