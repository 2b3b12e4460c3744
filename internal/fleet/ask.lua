-- Grants calls to the venue. A window is a sorted set of the calls that count against a limit. Scores are times in ms since 1970:
-- - Members with positive scores are calls. The score is the time until which the call counts.
-- - The score of "hold" is minus the time until which the venue refuses calls.
-- - Only the public window has "born". Its score is minus the time at which the ledger was created.
-- - "assumed" has the score -1. A window without it is new.
-- KEYS: the window, the public window. Both may be the same.
-- ARGV: the limit, the number of requested calls, the ms for which a granted call counts at most, the prefix of the calls' names,
-- the ms for which an ended call counts.
-- Returns the number of granted calls, the number of further calls that could be granted, the ms until the next call leaves the
-- window, 0, and the number of calls in the window that are only assumed. If the window has no calls, the ms are 0. While no calls
-- can be granted because of "hold", it returns 0, 0, the ms until "hold" ends twice, and 0.
local key, public, limit, wanted, keep, span = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

-- A new ledger does not know the calls of the last minute. It assumes that half of the limit was used, evenly.
local born = -(redis.call('ZSCORE', public, 'born') or -now)
redis.call('ZADD', public, -born, 'born')
local half = math.floor(limit / 2)
if not redis.call('ZSCORE', key, 'assumed') then
  redis.call('ZADD', key, -1, 'assumed')
  for i = 1, half do redis.call('ZADD', key, born + math.ceil(span * i / half), 'assumed ' .. i) end
end
redis.call('ZREMRANGEBYSCORE', key, 0, now)
-- A ledger that nobody uses for a day is forgotten.
redis.call('PEXPIRE', key, 86400000)
redis.call('PEXPIRE', public, 86400000)

local hold = math.max(-(redis.call('ZSCORE', key, 'hold') or 0) - now, 0)
if hold > 0 then return {0, 0, hold, hold, 0} end

local left = math.max(limit - redis.call('ZCOUNT', key, 0, '+inf'), 0)
local granted = math.min(left, wanted)
for i = 1, granted do redis.call('ZADD', key, now + keep, ARGV[4] .. i) end
local wait = 0
local first = redis.call('ZRANGEBYSCORE', key, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if first[2] then wait = first[2] - now end
local assumed = math.ceil(half * math.max(born + span - now, 0) / span)
return {granted, left - granted, wait, 0, math.min(assumed, half)}
