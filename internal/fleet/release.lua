-- Removes the leases of a replica. KEYS: owner of each shard. ARGV: replica.
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    redis.call('DEL', KEYS[i])
  end
end
return 0
