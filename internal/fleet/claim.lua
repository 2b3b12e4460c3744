-- Reads records, and claims the missing records for a replica. A record counts as missing if there is only the mark of a dropped
-- record, if the replica has rejected the record, or if the record is too long.
-- KEYS: the records, then their locks. If nothing is claimed, the locks are left out.
-- ARGV: the name of the replica, the ms after which a claim ends or 0 to claim nothing, the greatest length of one record, the
-- greatest length of all records together, and for each record the time of the record that the replica has rejected, or "".
-- Returns for each record its text, "ours" if this call has claimed the record, or "theirs" if an earlier claim has not ended. If
-- nothing is claimed, it returns "" in place of "ours" and "theirs".
local n, answer, longest, room = #ARGV - 4, {}, tonumber(ARGV[3]), tonumber(ARGV[4])
for i = 1, n do
  local length, head = redis.call('STRLEN', KEYS[i]), redis.call('GETRANGE', KEYS[i], 0, 16)
  if length <= math.min(longest, room) and string.sub(head, 1, 1) == 'R' and string.sub(head, 2) > ARGV[4 + i] then
    room = room - length
    answer[i] = redis.call('GET', KEYS[i])
  elseif ARGV[2] == '0' then
    answer[i] = ''
  elseif redis.call('SET', KEYS[n + i], ARGV[1], 'NX', 'PX', ARGV[2]) then
    answer[i] = 'ours'
  else
    answer[i] = 'theirs'
  end
end
return answer
