-- fair: what makes a fair lock of a reentrant one. Whoever has waited longest gets it: while somebody stands in the queue, a
-- lock that is free is refused to all who came later, and to those who do not wait. So that the dead and the silent keep
-- nobody waiting, whoever is refused for the first in the queue calls it. One that does not hear is gone, and its place with
-- it; one that hears keeps its place until it asks, for so long at most. It stands there as `!TICKET`, too, by the moment (us)
-- when that is over: no ticket looks so, and it ranks behind those that wait, so that their ranks are as if it were not there.
--
-- The hold count is written as `COUNT fair`, so that the script of the reentrant lock takes it for none of its own, and this
-- one the count of a reentrant lock.
-- KEYS     the lock; the queue
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them; held, by the ticket of whoever is next, with a count of 0, where it is somebody else's turn:
--          the TTL is how long that one may take
-- Again    writes the same; who was called is not called again

COUNT = '^(%d+) fair$'

-- How long (us) whoever is called may take to ask: many times a round trip, and a pause of a busy machine.
local TIME_TO_ASK = 1000000

local put_count = put
local function put(key, owner, count, ...)
  return put_count(key, owner, count .. ' fair', ...)
end

local function called(ticket)
  return '!' .. ticket
end

local function step_out(queue, ticket)
  return call('ZREM', queue, ticket, called(ticket))
end

-- Calls the waiter with this ticket. Answers until when (us) it may ask: no longer than now where nobody hears. Where this
-- user may call nobody, it asks by itself.
local function call_up(queue, ticket, time, wakes)
  local client, number = match(ticket, '^(.*):(%d+)$')
  local heard = client and call('PUBLISH', wakes .. client, number) or 0
  if heard == 0 then return time end
  call('ZADD', queue, format('%.0f', time + TIME_TO_ASK), called(ticket))
  return time + TIME_TO_ASK
end

-- Whose turn it is before that of somebody who waits since `since`, or of anybody who does not wait: as whoever is refused for
-- it is told, or refused where that cannot be found out; nil where it is nobody's. It has been called.
local function next_up(queue, since, waited, wakes)
  while true do
    local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    if failed(first) then return refused(first) end
    local ticket = first[1]
    if not ticket then return nil end
    local time = time_here()
    if failed(time) then return refused(time) end
    if since and tonumber(first[2]) >= believed(since, waited, time) then return nil end
    local ends = call('ZSCORE', queue, called(ticket))
    if failed(ends) then return refused(ends) end
    local left = (ends or call_up(queue, ticket, time, wakes)) - time
    if left > 0 then return {'held', ticket, '0', math.ceil(left / 1000)} end
    local gone = step_out(queue, ticket)
    if failed(gone) then return refused(gone) end
  end
end

local function out_of_turn(_, _, queue, ...)
  return queue and next_up(queue, ...)
end

-- Calls whoever is next. A hint: its failure undoes nothing. Whoever leaves may have a place here, where it was refused though others
-- granted, and got the lock by an extend.
local function wake(queue, wakes, _, owner)
  if owner then step_out(queue, owner) end
  next_up(queue, nil, nil, wakes)
end
