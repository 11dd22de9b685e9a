-- vote: what an operation begins with that asks a master to grant something.

-- The versions that a strict client watched for long enough, each between two commas.
local watched

-- Ends the operation with this reply.
local function refuse(...)
  error({'refused', format(...)})
end

-- Refuses a token above which Lua's numbers are not exact: no higher one could be given behind it.
local function check_token(token)
  if less('9007199254740991', token) then refuse('ERR a token is 9007199254740991 at most, not %s', token) end
end

-- Refuses where this master may not vote, and what is no number, before anything is written.
local function vote(trusted, versions, round, kept, holds, token)
  local why = no_vote(trusted, round, kept, holds or '1', token or '1')
  if why then error({'refused', why}) end
  if token then check_token(token) end
  watched = versions
end
