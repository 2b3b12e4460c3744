-- Registers a replica.
-- KEYS: the set of the replicas, the hash of the flushes.
-- ARGV: the name of the replica, the microseconds until Redis forgets the replica, the greatest length of a value of the hash, and
-- the fields of the hash that are read.
-- Returns strings: the server's time in microseconds since 1970, the number of replicas, and the value of each field, or "".
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
local answer = {string.format('%.0f', now), tostring(redis.call('ZCARD', KEYS[1]))}
for i = 4, #ARGV do
  local short = redis.call('HSTRLEN', KEYS[2], ARGV[i]) <= tonumber(ARGV[3])
  answer[i - 1] = short and redis.call('HGET', KEYS[2], ARGV[i]) or ''
end
return answer
