-- Records which granted calls have ended or were not made, and that the venue refuses calls. The window is described in ask.lua.
-- KEYS: the window. ARGV: the ms for which an ended call counts, then triples of one of these forms:
-- - "ended", the name of a call, the ms since its end
-- - "unused", the name of a call, any number
-- - "hold", "hold", the ms for which the venue refuses calls
local key, span = KEYS[1], tonumber(ARGV[1])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for i = 2, #ARGV, 3 do
  local what, call, ms = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  if what == 'unused' then
    redis.call('ZREM', key, call)
  elseif what == 'ended' then
    redis.call('ZADD', key, now - ms + span, call) -- even if the ledger was emptied since the grant
  elseif what == 'hold' then
    redis.call('ZADD', key, math.min(redis.call('ZSCORE', key, 'hold') or 0, -(now + ms)), 'hold')
  end
end
redis.call('PEXPIRE', key, 86400000)
return redis.status_reply('OK')
