-- Reads records, and claims the missing records for a replica. A mark of a dropped record counts as a missing record.
-- KEYS: the records, then their locks.
-- ARGV: the name of the replica, the ms after which a claim ends.
-- Returns for each record its text, "ours" if this call has claimed the record, or "theirs" if an earlier claim has not ended.
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
