-- fair: the waiter that has waited longest is granted the lock. While there is a queue, a free lock
-- is refused to waiters that came later, and to owners that do not wait. Each such refusal wakes
-- the first in the queue.

-- The refusal if a waiter goes first that came before `since`; any waiter does if that is nil.
-- Otherwise nil. Waiters that are gone are dropped on the way.
local function next_up(it, wakes, since)
  while true do
    -- guard: fair-first
    local first = call('ZRANGE', it.queue, 0, 0, 'WITHSCORES')
    -- guard: fair-none
    if not first[1] then
      call('HDEL', it.key, 'queued')
      return nil
    end
    if since and tonumber(first[2]) >= since then return nil end
    local reply = give_turn(it, first[1], first[1], wakes)
    if reply then return reply end
  end
end

function turn(it, since, waited, wakes)
  if it.entry and lives(it.entry) then return nil end -- its owner enters again
  return next_up(it, wakes, since and bounded_since(since, waited))
end

wake = next_up
