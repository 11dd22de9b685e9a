-- queue: acquire; refused, take a place in the lock's queue.
-- KEYS     the lock, its record, and its queue
-- ARGV     as for acquire; then the ticket of the same waiter's acquire before, whose place is given up, or nothing; a ticket,
--          or nothing when it takes no place; since when it waits (us) and for how long (us), or nothing twice when it does not
--          wait; and what wake channels begin with
-- Replies  as for acquire
-- Again    as for acquire. A place is taken once.
local function acquire_or_queue(key, record, queue, owner, count, ttl, round, proposal, watch, seen, before, ticket, since,
                                waited, wakes)
  -- guard: place-before
  if before ~= '' then step_out(queue, before) end
  local reply = acquire(key, record, owner, count, ttl, round, proposal, watch, seen, queue, since, waited, wakes)
  if type(reply) == 'number' then pass_on(queue, wakes, key) end
  if ticket ~= '' and type(reply) == 'table' and reply[1] == 'held' then
    reply[5] = stand(queue, ticket, since, waited)
  end
  return reply
end
