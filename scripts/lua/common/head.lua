-- head: what every call of every kind of lock begins with: whether this master still knows what it granted, and what time
-- it is here. That is looked at when the first operation asks, for a release need not know. Defines functions and runs
-- nothing, as the other files of this folder.
-- KEYS     none: the marker belongs to the master, not to a lock, and in a cluster all keys of a call are in one slot
-- ARGV     the marker's key, or nothing where the client has no guards; the marker as this connection knows it; until when
--          (us, by this master's clock) this master has no vote
-- Replies  the time (us), the first of a call's replies; 0 where no operation asked; nil where there are no guards, or where
--          the marker is another one, so that the client has to make itself known again
-- Again    writes nothing
local call, match, format, max = redis.pcall, string.match, string.format, math.max

-- Of the call that runs:
local guarded -- whether the client has guards
local marker, known, votes_from -- its arguments
local now -- the time here; nil where nobody asked, or where there are no guards
local forgot -- whether the marker is another one
local no_vote -- the answer to whoever asks this master to grant something, where it has no vote

local function failed(reply)
  return type(reply) == 'table' and reply['err']
end

local function refused(reply)
  return {'refused', reply['err']}
end

local function head(key, text, from)
  guarded, marker, known, votes_from = key ~= '', key, text, from
  now, forgot, no_vote = nil, false, nil
end

-- Looks at the clock and the marker, once a call. Answers why this master has no vote, or nil.
local function withheld()
  -- guard: marker-once
  if now or no_vote or not guarded then return no_vote end
  local time = call('TIME')
  local found = call('GET', marker)
  if failed(time) or failed(found) then
    no_vote = refused(failed(time) and time or found)
    return no_vote
  end
  now, forgot = time[1] * 1000000 + time[2], found ~= known
  if forgot then
    no_vote = {'refused', 'FORGOT this master restarted, or lost keys, since this connection was opened'}
  elseif now < tonumber(votes_from) then
    no_vote = {'refused', format('QUARANTINE %.0f ms left', math.ceil((votes_from - now) / 1000))}
  end
  return no_vote
end

-- What time it is here (us), whether or not there are guards; or an error.
local function time_here()
  -- guard: time-once
  if now then return now end
  local time = call('TIME')
  if failed(time) then return time end
  return time[1] * 1000000 + time[2]
end

-- The reply of the head.
local function told()
  if not guarded or forgot then return false end
  return now or (not no_vote and 0)
end
