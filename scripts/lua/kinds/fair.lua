-- fair: what makes a fair lock of a reentrant one. Whoever has waited longest gets it: while somebody stands in the queue, a
-- lock that is free is refused to all who came later, and to those who do not wait. Whoever is refused for the first in the
-- queue calls it: see common/turn.lua.
--
-- The hold count is written as `COUNT fair`, so that the script of the reentrant lock takes it for none of its own, and this
-- one the count of a reentrant lock.
-- KEYS     the lock; the queue
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them; held, by the ticket of whoever is next, with a count of 0, where it is somebody else's turn:
--          the TTL is how long that one may take
-- Again    writes the same; who was called is not called again

COUNT = '^(%d+) fair$'

local put_count = put
local function put(key, owner, count, ...)
  return put_count(key, owner, count .. ' fair', ...)
end

-- Whose turn it is before that of somebody who waits since `since`, or of anybody who does not wait: as whoever is refused for
-- it is told, or refused where that cannot be found out; nil where it is nobody's. It has been called.
local function next_up(queue, since, waited, wakes)
  while true do
    -- guard: fair-first
    local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    if failed(first) then return refused(first) end
    local ticket = first[1]
    if not ticket then return nil end
    local time = time_here()
    if failed(time) then return refused(time) end
    if since and tonumber(first[2]) >= believed(since, waited, time) then return nil end
    local reply = its_turn(queue, ticket, ticket, time, wakes)
    if reply then return reply end
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
