-- Reads records, and claims the missing records for a replica.
-- KEYS: the records, then their locks. ARGV: the name of the replica, the ms after which a claim ends.
-- Returns for each record its text, or "ours" if this replica has claimed it, or "theirs" if another replica has claimed it.
local n, answer = #KEYS / 2, {}
for i = 1, n do
  local record = redis.call('GET', KEYS[i])
  if record and string.sub(record, 1, 1) == 'R' then
    answer[i] = record
  elseif redis.call('SET', KEYS[n + i], ARGV[1], 'NX', 'PX', ARGV[2]) then
    answer[i] = 'ours'
  else
    answer[i] = 'theirs'
  end
end
return answer
