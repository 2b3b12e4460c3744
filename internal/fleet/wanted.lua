-- Returns the topics that replicas want in some shards. KEYS: the set of each shard.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local answer = {}
for i = 1, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  for _, topic in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do
    table.insert(answer, topic)
  end
end
return answer
