-- Writes records and marks of dropped records, and ends the claims of a replica. Each text contains a server's time in 16 digits:
-- the time at which the call to the venue started or the record was dropped. A new text never replaces a text with the same or a
-- later time, except a time that is more than two seconds in the future, because no replica writes such a time.
-- KEYS: the records, then their locks.
-- ARGV: the name of the replica, the time in the texts, and for each record its text and its lifetime in ms. If the lifetime is 0,
-- the text is not written.
local n, t = #KEYS / 2, redis.call('TIME')
local future = string.format('%016.0f', (t[1] + 2) * 1000000 + t[2])
for i = 1, n do
  local text, keep = ARGV[1 + 2 * i], ARGV[2 + 2 * i]
  local there = redis.call('GETRANGE', KEYS[i], 1, 16)
  if keep ~= '0' and (there == '' or there < ARGV[2] or there > future) then
    redis.call('SET', KEYS[i], text, 'PX', keep)
  end
  if redis.call('GET', KEYS[n + i]) == ARGV[1] then redis.call('DEL', KEYS[n + i]) end
end
return redis.status_reply('OK')
