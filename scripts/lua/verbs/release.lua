-- release: leave the lock's owner with fewer holds, and with no place in the queue; with no hold left, delete the lock and
-- wake the first in the queue.
-- KEYS     the lock, its record, and its queue
-- ARGV     owner, which may have a place in the queue too, hold count to end up with, round; what wake channels begin with,
--          1 where the grant came to nothing, and nobody has seen its token, or the token of an owner that is not asked:
--          it takes the lock back nowhere then. Otherwise 0
-- Replies  granted, held, absent, stale or refused (see replies.lua)
-- Again    a repeated run finds the same count, or no lock of this owner: it never touches another owner's lock, and
--          never one that the same owner took in a later round. The lease is left as it is while holds remain. Where the
--          lock is free already, or another permit, the first in the queue is woken all the same: this owner may have been, for
--          nothing.
local function release(key, record, queue, owner, count, round, wakes, token)
  local found, reply, fence, before = look(key, record, owner, round)
  if found ~= 'mine' then
    if count == '0' then
      if found == 'absent' then leave_gone(record, owner, round, token) end
      local left = step_out(queue, owner)
      if failed(left) then return refused(left) end
      if found == 'absent' or has_room(key) then wake(queue, wakes, key) end
    end
    return reply
  end
  reply = leave(key, record, owner, count, round, fence, token == '1' and before)
  if reply == GRANTED and count == '0' then wake(queue, wakes, key, owner) end
  return reply
end
