-- Reads records, and claims those that are missing.
-- KEYS: the records, then their locks. ARGV: name of the replica, ms for which a claim holds.
-- Returns for each record its text, "ours" if this replica is to ask the venue, or "theirs" if another one does.
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
