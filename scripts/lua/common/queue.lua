-- queue: those who wait for a lock, beside it: a ZSET of tickets by the moment since when each waits, in microseconds. A
-- ticket is `{client uuid}:{number}`, used for one acquire only, and is called by its number on its client's own channel. A
-- place is taken by a refused acquire and given up by the next one of the same waiter, by a grant, by a release, or by
-- being called. Defines functions and runs nothing.
-- KEYS     the queue, as the files of the verbs say
-- ARGV     as the files of the verbs say
-- Replies  as the files of the verbs say
-- Again    a place is taken once; who was called is called no more

-- Who comes when so many are waiting gets no place, and comes back by itself.
local MOST_WAITING = 1024

-- A queue that nobody was added to for so long (ms) is forgotten: twice the longest time between two looks of a waiter.
local QUEUE_LIFE = 120000

-- How far (us) the moment that a waiter names may lie from what this master makes of it. Within it all masters have the
-- same order; beyond it, a waiter whose clock is wrong gains nothing.
local BAND = 500000

-- Since when a waiter waits that says `since` (us), and has waited for `waited` us, as far as it is believed at this time here.
local function believed(since, waited, time)
  local began = time - waited
  if math.abs(since - began) > BAND then return began end
  return since
end

-- Gives `ticket` a place in the queue, since `since` (us), after it has waited for `waited` us. Answers how many are ahead of
-- it, or -1 when it got none.
local function stand(queue, ticket, since, waited)
  local time = time_here()
  if failed(time) then return -1 end
  since = believed(since, waited, time)
  local waiting = call('ZCARD', queue)
  if failed(waiting) or waiting >= MOST_WAITING then return -1 end
  if failed(call('ZADD', queue, format('%.0f', since), ticket)) then return -1 end
  call('PEXPIRE', queue, QUEUE_LIFE)
  local ahead = call('ZRANK', queue, ticket)
  return tonumber(ahead) or -1
end

-- Gives up the place of a ticket, if it has one. Answers what Redis does.
local function step_out(queue, ticket)
  return call('ZREM', queue, ticket)
end

-- Whether a lock that is free is for somebody else: the reply to give, or nil. It is for whoever comes first; kinds/fair.lua
-- and rw/queue.lua have other rules.
local function out_of_turn() end

-- Wakes the first in the queue whose client hears it, and takes it and those before it, which are gone, off. A hint: its
-- failure undoes nothing. `owner` is who leaves: it may have a place here, where it was refused though others granted, and got
-- the lock by an extend.
local function wake(queue, wakes, _, owner)
  while true do
    local first = call('ZPOPMIN', queue)
    -- guard: queue-empty
    if failed(first) or #first == 0 then return end
    local client, number = match(first[1], '^(.*):(%d+)$')
    local is_there = client and first[1] ~= owner
    local heard = is_there and call('PUBLISH', wakes .. client, number) or 0
    if failed(heard) then call('ZADD', queue, first[2], first[1]) end -- this user may call nobody
    if failed(heard) or heard > 0 then return end
  end
end
