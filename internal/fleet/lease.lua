-- Renews the leases of a replica and takes free leases of shards. A new lease has a higher fence than all earlier leases of the
-- shard. A new fence is also greater than the server's time, so fences rise even if the server has lost its data.
-- KEYS: for each shard the key of its owner and the key of its fence.
-- ARGV: the name of the replica, the duration of a lease in ms, and for each shard the highest fence that the replica has seen.
-- Returns for each shard the fence as a string, or '' if another replica has the lease.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local answer = {}
for i = 1, #KEYS / 2 do
  local owner, last = redis.call('GET', KEYS[2 * i - 1]), tonumber(redis.call('GET', KEYS[2 * i]) or '0')
  local seen = tonumber(ARGV[2 + i])
  if owner and owner ~= ARGV[1] then
    answer[i] = ''
  else
    if not owner or last < seen or last == 0 then
      last = math.max(last, seen, now) + 1
      redis.call('SET', KEYS[2 * i], string.format('%.0f', last), 'PX', 86400000)
    end
    redis.call('SET', KEYS[2 * i - 1], ARGV[1], 'PX', ARGV[2])
    answer[i] = string.format('%.0f', last)
  end
end
return answer
