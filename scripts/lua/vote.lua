-- vote: what an operation begins with that asks a master to grant something.

-- Of the operation that runs: what time it is by this clock and by the one that the client trusts, and
-- the versions that a strict client watched for long enough, each between two commas.
local earliest, latest, watched

-- Five whole numbers, as a master compares them.
local WHOLE = '^[1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d*$'

-- Ends the operation with this reply.
local function refuse(...)
  error({'refused', format(...)})
end

-- Refuses where this master may not vote, and what is no number, before anything is written.
local function vote(trusted, versions, round, kept, holds, token)
  local all = trusted .. ' ' .. round .. ' ' .. kept .. ' ' .. (holds or '1') .. ' ' .. (token or '1')
  if not find(all, WHOLE) then refuse('ERR an argument is no whole number: %s', all) end
  -- guard: vote-number
  trusted = number(trusted)
  local why = no_vote(trusted)
  if why then error({'refused', why}) end
  earliest, latest, watched = min(now, trusted), max(now, trusted), versions
end
