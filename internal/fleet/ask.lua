-- Grants calls to the venue out of the part of its limit that the replicas share.
-- KEYS: the window, a sorted set, and the window of the public calls, which may be the same. Members with positive scores are
-- calls; the score is the time in ms until which a call counts. "hold" has minus the time in ms before which the venue wants no
-- calls. Only the window of the public calls has "run" with the server's run id (-1), and "born", minus the time in ms before
-- which no window grants calls.
-- ARGV: the limit, the number of calls asked for, ms that a granted call counts for at most, prefix of the calls' names.
-- Returns the number of granted calls, how many more could be granted, in how many ms more can be, and for how many ms the
-- venue wants no calls.
local key, public, limit, wanted, keep = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

-- A server that was flushed, restarted or replaced may have forgotten calls. It grants nothing until these have left the window.
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
if key ~= public then redis.call('PEXPIRE', key, math.max(keep, 600000)) end -- it is empty by then
local wait = 0
local first = redis.call('ZRANGEBYSCORE', key, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if first[2] then wait = first[2] - now end
return {granted, left - granted, wait, 0}
