-- vote: what every operation begins with that asks a master to grant something.

-- Ends the operation: it is refused with this text.
local function refuse(...)
  error({'refused', format(...)})
end

-- Refuses a token above the exact range of Lua's numbers: no higher one could be granted after it.
local function check_token(token)
  if less('9007199254740991', token) then refuse('ERR a token is 9007199254740991 at most, not %s', token) end
end

-- Refuses if this master may not vote or an argument is no number, before an entry is written.
local function check_vote(trusted, round, kept, holds, token)
  local why = no_vote(trusted, round, kept, holds or '1', token or '1')
  if why then error({'refused', why}) end
  if token then check_token(token) end
end
