-- Renews and takes leases of shards. Returns for each shard the fence as a string, or '' if another replica has the lease.
-- A new lease has a higher fence than before. The server's time is part of it, so a server that has lost its data grants a higher one, too.
-- KEYS: owner and fence of each shard. ARGV: replica, milliseconds of a lease, and for each shard a fence that was seen.
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
