-- release: leave each lock's owner with fewer holds, and with no place in the queue; with no hold left, delete the lock
-- and wake the first in the queue.
-- KEYS     two an operation: the lock, and its queue
-- ARGV     seven an operation: owner, hold count to end up with, round; what wake channels begin with; the ticket that the
--          owner has or had in the queue; since when it waits and for how long, as for acquire: then it withdraws a grant
--          that came to nothing, wakes nobody and takes a place. Otherwise nothing
-- Replies  granted, held, absent, stale or refused (see lock.lua), in the order of the operations
-- Again    a repeated run finds the same count, or no lock of this owner: it never touches another owner's lock, and
--          never one that the same owner took in a later round. The lease is left as it is while holds remain. Where the
--          lock is free already, the first in the queue is woken all the same: this owner may have been, for nothing.
local function release(key, queue, owner, count, round, wakes, ticket, since, waited)
  local found, reply = look(key, owner, round)
  if found ~= 'mine' then
    if not since and count == 0 then
      local left = redis.pcall('ZREM', queue, ticket)
      if failed(left) then return {'refused', left['err']} end
      if found == 'absent' then wake(queue, wakes) end
    end
    return reply
  end
  if count > 0 then
    local wrote = redis.pcall('HSET', key, owner, count, 'round', round)
    if failed(wrote) then return {'refused', wrote['err']} end
    return {'granted'}
  end
  local gone = redis.pcall('DEL', key)
  if failed(gone) then return {'refused', gone['err']} end
  if since then stand(queue, ticket, since, waited) else wake(queue, wakes) end
  return {'granted'}
end

local replies = {}
for i = 1, #KEYS / 2 do
  local a = (i - 1) * 7
  replies[i] = release(KEYS[2 * i - 1], KEYS[2 * i], ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]),
    ARGV[a + 4], ARGV[a + 5], tonumber(ARGV[a + 6]), tonumber(ARGV[a + 7]))
end
return replies
