-- Registers a replica.
-- KEYS: the set of the replicas, the hash of the flushes.
-- ARGV: the name of the replica, the microseconds until Redis forgets the replica.
-- Returns strings: the server's time in microseconds since 1970, the number of replicas, and the fields and values of the hash.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
local answer = redis.call('HGETALL', KEYS[2])
table.insert(answer, 1, tostring(redis.call('ZCARD', KEYS[1])))
table.insert(answer, 1, string.format('%.0f', now))
return answer
