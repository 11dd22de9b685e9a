-- call: what every call begins with, whatever its operations are about. The files of a kind are one
-- script, in the order in which docs/PROTOCOL.md lists them. An error of Redis ends an operation
-- and not the call. Lua does not roll back, so a verb reads and refuses first, and writes last.
local call, format, match, find = redis.call, string.format, string.match, string.find
local sub, gsub = string.sub, string.gsub
local abs, max, min, ceil = math.abs, math.max, math.min, math.ceil

-- The session header: the key of this master's record, the record's stamp as this connection knows
-- it, until when (us) this master has no vote, and how long (ms) a name without entries is kept.
local KEYS, ARGV = KEYS, ARGV
local RECORD, STAMP, VOTES_FROM = ARGV[1], ARGV[2], tonumber(ARGV[3])
local KEY_TTL_FREE = ARGV[4]

-- How far (us) the time in an operation may be behind the time here, and ahead of it.
local OLDEST, NEWEST = 2000000, 500000

-- What a verb replies besides a token: it is done, or there is no such lease here.
local GRANTED, ABSENT = 1, 0

-- How long (ms) a name with an entry is kept.
local KEY_TTL_HELD = '2592000000'

-- The replies, and the indices of the next key and the next argument.
local replies, k, a = {false}, 1, 5

local now, forgot -- the time here (us), and whether the record is another one; nil before time_here()

-- Compares two whole numbers that are texts without leading zeros. Tokens, rounds and moments stay
-- texts: converting one costs a master six times as much as comparing two.
local function less(a, b)
  -- guard: lengths-differ
  if #a ~= #b then return #a < #b end
  return a < b
end

-- The time here (us). Reads the clock and the stamp once a call.
local function time_here()
  -- guard: time-once
  if not now then
    local time = call('TIME')
    now, forgot = time[1] * 1000000 + time[2], call('HGET', RECORD, 'stamp') ~= STAMP
  end
  return now
end

-- Of the operation that runs: the time that its client trusts, and the earlier and the later one of
-- that and the time here.
local trusts, earliest, latest

-- Five whole numbers without leading zeros.
local WHOLE = '^[1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d*$'

-- Why this master may not vote on an operation; nil or false if it may. `trusted` is the time that
-- most masters show, as the client knows it; 1 where it does not. Also refuses arguments that are
-- no numbers.
local function no_vote(trusted, round, kept, holds, token)
  local all = trusted .. ' ' .. round .. ' ' .. kept .. ' ' .. holds .. ' ' .. token
  if not find(all, WHOLE) then return 'ERR an argument is no whole number: ' .. all end
  if #kept > 10 or #round > 15 then
    return 'ERR kept has 10 digits at most, and a round 15: ' .. kept .. ', ' .. round
  end
  local time = time_here()
  trusts = tonumber(trusted)
  earliest, latest = min(time, trusts), max(time, trusts)
  if forgot then return 'FORGOT this master restarted, or lost keys, since this connection was opened' end
  local ahead = trusts - time
  if ahead > NEWEST or -ahead > OLDEST then
    if trusted == '1' then return 'NOTIME too few masters answer to tell the time, or their clocks differ' end
    -- guard: clock-text
    return format('CLOCK the time that the client trusts is %.3f s from the time here', ahead / 1000000)
  end
  local left = VOTES_FROM - earliest
  return left > 0 and format('QUARANTINE %d ms left', ceil(left / 1000))
end

-- The error of a master whose memory is full; false if it is not. Redis refuses only the first
-- write of a script then, so this asks before any: with XX, ZADD adds nothing.
local full
local function is_full()
  if full == nil then
    -- guard: full-asks
    local reply = redis.pcall('ZADD', KEYS[2], 'XX', '0', '')
    full = type(reply) == 'table' and find(reply.err, '^OOM') and reply.err
  end
  return full
end

-- A later operation comes behind the writes of those before it.
-- guard: full-asked
if #KEYS > 2 then is_full() end
