-- acquire: take each lock for its owner, or re-enter it; refused, take a place in its queue.
-- KEYS     two an operation: the lock, and its queue
-- ARGV     eight an operation: owner, hold count to end up with, TTL in ms, round; the ticket of the same waiter's acquire
--          before, whose place is given up, or nothing; a ticket, since when it waits (us, wall clock) and for how long
--          (us), or nothing three times when it takes no place
-- Replies  granted, held, stale or refused (see lock.lua), in the order of the operations
-- Again    a repeated run writes the same count and the same or a longer TTL: the count is absolute, never added to.
--          After a later round of the same owner it is stale and writes nothing. A place is taken once.
local function acquire(key, queue, owner, count, ttl, round, before, ticket, since, waited)
  local found, reply = look(key, owner, round)
  if not found then
    if before ~= '' then redis.pcall('ZREM', queue, before) end
    if reply[1] == 'held' and since then reply[5] = stand(queue, ticket, since, waited) end
    return reply
  end
  local err = write(found, key, owner, count, ttl, round)
  if not err then
    if before ~= '' then redis.pcall('ZREM', queue, before) end
    return {'granted'}
  end
  if found == 'absent' then redis.pcall('DEL', key) end -- never leave a key without a TTL
  return {'refused', err}
end

local replies = {}
for i = 1, #KEYS / 2 do
  local a = (i - 1) * 8
  replies[i] = acquire(KEYS[2 * i - 1], KEYS[2 * i], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]),
    tonumber(ARGV[a + 4]), ARGV[a + 5], ARGV[a + 6], tonumber(ARGV[a + 7]), tonumber(ARGV[a + 8]))
end
return replies
