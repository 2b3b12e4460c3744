-- Writes records that are newer than those there, and ends the claims of a replica.
-- KEYS: the records, then their locks. ARGV: name of the replica, the server's time in 16 digits at which the venue was asked,
-- then for each record its text and ms to keep it, 0 for none.
-- A record is not written if the one there was asked for later, or if a change was announced later.
local n = #KEYS / 2
for i = 1, n do
  local text, keep = ARGV[1 + 2 * i], ARGV[2 + 2 * i]
  local there = redis.call('GETRANGE', KEYS[i], 1, 16)
  if keep ~= '0' and (there == '' or there < ARGV[2]) then
    redis.call('SET', KEYS[i], text, 'PX', keep)
  end
  if redis.call('GET', KEYS[n + i]) == ARGV[1] then redis.call('DEL', KEYS[n + i]) end
end
return redis.status_reply('OK')
