-- Removes the leases of a replica. KEYS: for each shard the key of its owner. ARGV: the name of the replica.
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    redis.call('DEL', KEYS[i])
  end
end
return 0
