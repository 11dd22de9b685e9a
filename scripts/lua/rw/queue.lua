-- queue: who waits for a read-write lock. A ticket begins with 'r:' or 'w:', as an owner does.
-- KEYS     the lock, and its queue
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    as common/queue.lua says

-- Whoever leaves the queue may have been in the way of those behind it: `wake` knows.
local function has_room()
  return true
end

local function tell_permits(reply)
  return reply
end

-- Calls whoever may have the lock now: the writer that is first in the queue where nobody holds it, or the readers before
-- the first writer. Those whose clients do not hear are gone, and are taken off.
local function wake(queue, wakes, key, owner)
  local all = holders(key)
  if not all then return end
  local is_read = false
  for i = 1, #all do
    if all[i].lives and not all[i].reads then return end
    is_read = is_read or all[i].lives
  end
  while true do
    local first = call('ZRANGE', queue, 0, 0)
    if failed(first) or #first == 0 then return end
    local mode, client, number = match(first[1], '^([rw]):(.*):(%d+)$')
    if mode == 'w' and is_read then return end
    first = call('ZPOPMIN', queue)
    if failed(first) then return end
    local is_there = client and first[1] ~= owner
    local heard = is_there and call('PUBLISH', wakes .. client, number) or 0
    if failed(heard) then
      call('ZADD', queue, first[2], first[1]) -- this user may call nobody
      return
    end
    if heard > 0 and mode == 'w' then return end
    is_read = is_read or heard > 0
  end
end

-- True where a writer waits that came before `since` (us), or before anybody who does not wait. One whose client does not hear
-- the number 0, which is nobody's, is gone, and is taken off.
local function writer_waits(queue, since, wakes)
  local all = call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  if failed(all) then return false end
  for i = 1, #all, 2 do
    local client = match(all[i], '^w:(.*):%d+$')
    if since and tonumber(all[i + 1]) >= since then return false end
    if client then
      if call('PUBLISH', wakes .. client, '0') ~= 0 then return true end
      step_out(queue, all[i])
    end
  end
end

-- Readers that come while others read are let in behind a writer that waits, so that it is not starved: the reply to give, or
-- nil. Who writes begins to read at once, and to a writer no reader is absent.
local function out_of_turn(key, _, queue, since, waited, wakes)
  if not queue then return nil end
  local all, time = holders(key)
  if not all then return time end
  local reply, its = who(all, time)
  if not its or not its.reads then return nil end
  if writer_waits(queue, since and believed(since, waited, time), wakes) then return reply end
end
