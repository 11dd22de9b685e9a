-- withdraw: take back a grant that came to nothing; with no hold left, delete the lock and take a place in its queue
-- instead of waking anybody.
-- KEYS     the lock, its record, and its queue
-- ARGV     owner, hold count to end up with, round; a ticket, since when it waits (us) and for how long (us)
-- Replies  granted, held, absent, stale or refused (see replies.lua)
-- Again    as for release. Where the lock is not its own it takes no place.
local function withdraw(key, record, queue, owner, count, round, ticket, since, waited)
  local found, reply, fence, before = look(key, record, owner, round)
  if found ~= 'mine' then
    if found == 'absent' and count == '0' then leave_gone(record, owner, round) end
    return reply
  end
  reply = leave(key, record, owner, count, round, fence, before)
  if reply == GRANTED and count == '0' then stand(queue, ticket, since, waited) end
  return reply
end
