-- queue: those who wait for a name, beside it: a ZSET of tickets by the moment (us) since when each
-- waits. A ticket is `CLIENT:NUMBER`, used for one acquire only, and is called by its number on its
-- client's own channel. A place is taken by a refused acquire, and given up by the next one of the
-- same waiter, by a grant, by a release, or by being called. The field `queued` is there with it:
-- 1, or the moment (us) when the last came that would write.

-- How long (ms) a queue is kept that nobody is added to.
local QUEUE_LIFE = '120000'

-- Who comes when so many are waiting gets no place, and comes back by itself.
local MOST_WAITING = 1024

-- How far (us) the moment that a waiter names may lie from what this master makes of it: within it
-- all masters have the same order; beyond it, a waiter whose clock is wrong gains nothing.
local BAND = 500000

local function believed(since, waited)
  local began = time_here() - waited
  return min(max(since, began - BAND), began + BAND)
end

local function take_place(it, ticket, since, waited)
  if call('ZCARD', it.queue) >= MOST_WAITING then return -1 end
  local is_ours = it.asked -- and no key of another library
  if is_ours and (not it.queued or it.slot == 'write') then
    call('HSET', it.key, 'kind', it.asked, 'queued', it.slot == 'write' and format('%d', time_here()) or '1')
  end
  -- guard: queue-ttl
  if is_ours and call('PTTL', it.key) < tonumber(QUEUE_LIFE) then call('PEXPIRE', it.key, QUEUE_LIFE) end
  call('ZADD', it.queue, format('%d', believed(since, waited)), ticket)
  call('PEXPIRE', it.queue, QUEUE_LIFE)
  return call('ZRANK', it.queue, ticket)
end

-- Gives a ticket a place, where that works. Answers how many are ahead of it, or -1 where it got
-- none.
local function stand(...)
  local is_done, ahead = pcall(take_place, ...)
  return is_done and ahead or -1
end

-- Also where it was called: see turn.lua.
local function step_out(queue, ticket)
  return call('ZREM', queue, ticket, '!' .. ticket)
end

-- Whether somebody hears that this ticket is called; it is believed where nobody may be called.
local function hears(ticket, wakes)
  local client, number = match(ticket, '^(.*):(%d+)$')
  local heard = client and redis.pcall('PUBLISH', wakes .. client, number)
  return heard and (type(heard) == 'table' or heard > 0)
end

-- Calls the first whose client hears it, and takes it and those before it, which are gone, off.
function wake(it, wakes)
  while true do
    local first = call('ZPOPMIN', it.queue)[1]
    -- guard: queued-gone
    if not first then return it.asked and call('HDEL', it.key, 'queued') end
    if hears(first, wakes) then return end
  end
end
