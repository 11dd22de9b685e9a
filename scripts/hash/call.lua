-- call: what every call begins with, whatever its operations are about. The files of a kind are one
-- script, in the order in which docs/PROTOCOL.md lists them. An error of Redis ends an operation and
-- not the call; Lua does not roll back, so a verb reads and refuses first, and writes last.
local call, format, match, find, sub = redis.call, string.format, string.match, string.find, string.sub
local max, min, ceil = math.max, math.min, math.ceil

-- The marker's key, its text as this connection knows it, until when (us) this master has no vote,
-- how long (ms) a name without entries is kept, and whether no clock may end a lease.
local KEYS, ARGV = KEYS, ARGV
local MARKER, KNOWN, VOTES_FROM = ARGV[1], ARGV[2], tonumber(ARGV[3])
local KEPT_FREE, STRICT = ARGV[4], ARGV[5] == '1'

-- How far (us) the time that a client trusts may be behind the time here, and ahead of it.
local OLDEST, NEWEST = 2000000, 500000

-- What a verb answers besides a token: done, and that there is no such lease here.
local GRANTED, ABSENT = 1, 0

-- How long (ms) a name with an entry is kept.
local KEPT_HELD = '2592000000'

-- The replies, and the key and the argument that are next.
local replies, k, a = {false}, 1, 6

local now, forgot -- the time here (us), and whether the marker is another one; nil where nobody asked

-- Of the operation that runs: what time it is by this clock and by the one that the client trusts, and
-- the versions that a strict client watched for long enough, each between two commas.
local earliest, latest, watched

-- A number of an argument: a call's operations have many in common.
local numbers = {}
local function number(text)
  local known = numbers[text]
  if not known then
    known = tonumber(text)
    numbers[text] = known
  end
  return known
end

-- Tokens, rounds and moments stay the text that they are, without a zero in front: to make a number of
-- one, or text of a number, costs a master six times as much as to compare two.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- Ends the operation with this reply.
local function refuse(...)
  error({'refused', format(...)})
end

-- The time here; the clock and the marker are looked at once a call.
local function time_here()
  if not now then
    local time = call('TIME')
    now, forgot = time[1] * 1000000 + time[2], call('GET', MARKER) ~= KNOWN
  end
  return now
end

-- Five whole numbers, as a master compares them.
local WHOLE = '^[1-9]%d* [1-9]%d* [1-9]%d* %d+ %d+$'

-- Refuses where this master may not vote, or where its clock and `trusted`, that of most masters, are
-- apart; and what is no number, before anything is written.
local function vote(trusted, versions, round, kept, holds, token)
  local all = trusted .. ' ' .. round .. ' ' .. kept .. ' ' .. (holds or '1') .. ' ' .. (token or '1')
  if not find(all, WHOLE) then refuse('ERR an argument is no whole number: %s', all) end
  trusted = number(trusted)
  local ahead = trusted - time_here()
  if forgot then refuse('FORGOT this master restarted, or lost keys, since this connection was opened') end
  if ahead > NEWEST or -ahead > OLDEST then
    refuse('CLOCK the time that the client trusts is %.3f s from the time here', ahead / 1000000)
  end
  earliest, latest, watched = min(now, trusted), max(now, trusted), versions
  if earliest < VOTES_FROM then refuse('QUARANTINE %d ms left', ceil((VOTES_FROM - earliest) / 1000)) end
end
