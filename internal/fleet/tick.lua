-- Registers a replica and returns the server's time in microseconds and the number of replicas.
-- KEYS: replicas. ARGV: name of the replica, microseconds until it is forgotten.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 60000)
return {now, redis.call('ZCARD', KEYS[1])}
