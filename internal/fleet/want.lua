-- Adds topics to the sets of wanted topics.
-- KEYS: the set of each shard.
-- ARGV: the ms until a topic is forgotten, and for each shard the number of its topics and the topics.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local at = 2
for i = 1, #KEYS do
  local n = tonumber(ARGV[at])
  for j = at + 1, at + n do
    redis.call('ZADD', KEYS[i], now + ARGV[1], ARGV[j])
  end
  redis.call('PEXPIRE', KEYS[i], 2 * ARGV[1])
  at = at + n + 1
end
return 0
