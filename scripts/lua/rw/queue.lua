-- queue: who waits for a read-write lock. A ticket begins with 'r:' or 'w:', as an owner does.
-- KEYS     the lock, and its queue
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    as common/queue.lua says

-- Whoever leaves the queue may have been in the way of those behind it: `wake` knows.
local function has_room()
  return true
end

local function pass_on() end

local function tell_permits(reply)
  return reply
end

-- Calls whoever may have the lock now: the writer that is first in the queue where nobody holds it, or the readers before
-- the first writer. Those whose clients do not hear are gone, and are taken off. A hint: its failure undoes nothing.
local function wake(queue, wakes, key, owner)
  local all, time = holders(key)
  if not all then return end
  if owner then step_out(queue, owner) end
  -- guard: rw-nobody-reads-yet
  local is_read = false
  for i = 1, #all do
    if all[i].lives and not all[i].reads then return end
    is_read = is_read or all[i].lives
  end
  while true do
    -- guard: rw-first
    local first = call('ZRANGE', queue, 0, 0)
    -- guard: rw-queue-empty
    if failed(first) or #first == 0 then return end
    local writer = match(first[1], '^w:(.*)$')
    if writer then
      if is_read or its_turn(queue, first[1], writer, time, wakes) then return end
    else
      first = call('ZPOPMIN', queue)
      if failed(first) then return end
      local client, number = match(first[1], '^r:(.*):(%d+)$')
      local heard = client and call('PUBLISH', wakes .. client, number) or 0
      if failed(heard) then
        call('ZADD', queue, first[2], first[1]) -- this user may call nobody
        return
      end
      is_read = is_read or heard > 0
    end
  end
end

-- Readers are let in behind a writer that came before them and waits, so that they do not starve it, whether others read or
-- nobody: the reply to give, or nil. A writer whose client does not hear the number 0, which is nobody's, is gone, and is taken
-- off. Who writes begins to read at once, and to a writer no reader is absent.
local function out_of_turn(key, owner, queue, since, waited, wakes)
  -- guard: rw-only-readers-wait
  if not queue or not is_reader(owner) then return nil end
  local waiting = call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  -- guard: rw-nobody-waits
  if #waiting == 0 then return nil end -- or it cannot be read
  local all, time = holders(key)
  if not all then return time end
  local held_by, its = who(all, time)
  if its and not its.reads then return nil end
  since = since and believed(since, waited, time)
  for i = 1, #waiting, 2 do
    local ticket = waiting[i]
    if since and tonumber(waiting[i + 1]) >= since then return nil end
    local client = match(ticket, '^w:(.*):%d+$')
    if client and its then
      if call('PUBLISH', wakes .. client, '0') ~= 0 then return held_by end
      step_out(queue, ticket)
    elseif client then
      local reply = its_turn(queue, ticket, string.sub(ticket, 3), time, wakes)
      if reply then return reply end
    end
  end
end
