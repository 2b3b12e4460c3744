-- Grants calls to the venue. A window is a sorted set of the calls that count against a limit. Scores are times in ms since 1970:
-- - Members with positive scores are calls. The score is the time until which the call counts.
-- - The score of "hold" is minus the time until which the venue refuses calls.
-- - Only the public window has "born". Its score is minus the time until which the server grants no calls of any window.
-- - Only the public window has "run <run id of the server>". Its score is -1.
-- KEYS: the window, the public window. Both may be the same.
-- ARGV: the limit, the number of requested calls, the ms for which a granted call counts at most, the prefix of the calls' names.
-- Returns the number of granted calls, the number of further calls that could be granted, the ms until the next call leaves the
-- window, and 0. If the window has no calls, the ms are 0. While no calls can be granted because of "hold" or "born", it returns 0,
-- 0, the ms until both have ended, and the ms until "hold" ends.
local key, public, limit, wanted, keep = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

-- A server that was flushed, restarted or replaced may have forgotten calls. It grants no calls until all forgotten calls have left
-- their windows.
local run = 'run ' .. string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not redis.call('ZSCORE', public, run) or not redis.call('ZSCORE', public, 'born') then
  redis.call('ZREMRANGEBYSCORE', public, -1, -1)
  redis.call('ZADD', public, -1, run, -(now + keep), 'born')
end
redis.call('ZREMRANGEBYSCORE', key, 0, now)

local hold = math.max(-(redis.call('ZSCORE', key, 'hold') or 0) - now, 0)
local born = math.max(-redis.call('ZSCORE', public, 'born') - now, 0)
if hold + born > 0 then return {0, 0, math.max(hold, born), hold} end

local left = math.max(limit - redis.call('ZCOUNT', key, 0, '+inf'), 0)
local granted = math.min(left, wanted)
for i = 1, granted do redis.call('ZADD', key, now + keep, ARGV[4] .. i) end
if key ~= public then redis.call('PEXPIRE', key, math.max(keep, 600000)) end -- by then the set contains no calls
local wait = 0
local first = redis.call('ZRANGEBYSCORE', key, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if first[2] then wait = first[2] - now end
return {granted, left - granted, wait, 0}
