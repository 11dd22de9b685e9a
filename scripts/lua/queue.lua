-- queue: the waiters for a name, in a ZSET beside its hash: tickets, by the moment (us) since when
-- each waits. A ticket is `CLIENT:NUMBER`, with a space and the waiter's label behind it if it has
-- one; `r:` or `w:` goes before that of a reader or a writer. It is used for one acquire only. To
-- wake a waiter, a master publishes NUMBER on the channel of CLIENT. A refused acquire takes a
-- place; the same waiter's next acquire, a release or a wake-up gives it up. While there is a
-- queue, the hash has the field `queued`: 1, or the moment (us) when the last writer took a place.
-- `function wake` assigns a local of hooks.lua.

-- How long (ms) a queue is kept after the last ticket was added.
local QUEUE_LIFE = '120000'

-- A waiter that finds this many tickets gets no place, and asks again after a while.
local MOST_WAITING = 1024

-- How far (us) the `since` of a waiter may be from this master's own time less `waited`. Within
-- this band it is taken as it is, so that all masters have the same order; beyond it, it is cut, so
-- that a waiter whose clock is wrong gains nothing.
local SINCE_BAND = 500000

local function bounded_since(since, waited)
  local began = time_here() - waited
  return min(max(since, began - SINCE_BAND), began + SINCE_BAND)
end

local function take_place(it, ticket, since, waited)
  if call('ZCARD', it.queue) >= MOST_WAITING then return -1 end
  local is_ours = it.asked -- not a key of another library
  if is_ours and (not it.queued or it.slot == 'write') then
    call('HSET', it.key, 'kind', it.asked, 'queued', it.slot == 'write' and format('%d', time_here()) or '1')
  end
  -- guard: queue-ttl
  if is_ours and call('PTTL', it.key) < tonumber(QUEUE_LIFE) then call('PEXPIRE', it.key, QUEUE_LIFE) end
  call('ZADD', it.queue, format('%d', bounded_since(since, waited)), ticket)
  call('PEXPIRE', it.queue, QUEUE_LIFE)
  return call('ZRANK', it.queue, ticket)
end

-- Gives a ticket a place, unless Redis refuses. Returns how many are ahead of it, or -1 if it has
-- none.
local function try_take_place(...)
  local is_done, ahead = pcall(take_place, ...)
  return is_done and ahead or -1
end

-- Removes a ticket, and also `!TICKET`, which a woken waiter has: see turn.lua.
local function give_up_place(queue, ticket)
  return call('ZREM', queue, ticket, '!' .. ticket)
end

-- Wakes the waiter of this ticket; with the number 0, nobody. Returns whether its client received
-- that; where PUBLISH is refused (NOPERM), assumes that it did.
local function publish_wake(ticket, wakes, number)
  local client, its_number = match(ticket, '^(.-):(%d+)')
  local receivers = client and redis.pcall('PUBLISH', wakes .. client, number or its_number)
  return receivers and (type(receivers) == 'table' or receivers > 0)
end

-- Pops tickets from the queue until a client receives the wake-up of one. Tickets that no client
-- received are dropped.
function wake(it, wakes)
  while true do
    local first = call('ZPOPMIN', it.queue)[1]
    -- guard: queued-gone
    if not first then return it.asked and call('HDEL', it.key, 'queued') end
    if publish_wake(first, wakes) then return end
  end
end
