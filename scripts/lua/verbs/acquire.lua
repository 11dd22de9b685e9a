-- acquire: take the lock for its owner, by a new grant with a token of its own.
-- KEYS     the lock, and its record
-- ARGV     owner, hold count to end up with, TTL in ms, round; the token that the client proposes (us since 1970), how long
--          the lock is kept from others if it is not released (ms), and the versions of the record that were watched for
--          that long, or nothing where clocks are trusted (see fence.lua); and, of an acquire that may stand in the queue, what
--          it has to say about its turn: the queue, since when it waits and for how long (us), and what wake channels begin with
-- Replies  its token, granted where there are no guards, held, stale or refused (see replies.lua)
-- Again    a repeated run writes the same count and the same or a longer TTL: the count is absolute, never added to. It
--          is a new grant, with a higher token. After a later round of the same owner it is stale and writes nothing.
local function acquire(key, record, owner, count, ttl, round, proposal, watch, seen, ...)
  local no_vote = withheld()
  if no_vote then return no_vote end
  local there = size(key) -- a free lock is known by one look
  if failed(there) then return refused(there) end
  local found, reply, had = 'absent', nil, nil
  -- guard: free-at-one-look
  if there > 0 then found, reply, had = look(key, record, owner, round, there) end
  if not found then return tell_permits(to_watch(reply, record, seen), key) end
  local fence, before
  if now then
    local last, grant, text = last_fence(record)
    if not last then return grant end
    reply = found == 'absent' and grant and unreleased(grant, seen, proposal, owner, key)
    if reply then return tell_permits(reply, key) end
    -- guard: above-own-token
    if had then last = max(last, tonumber(had) or 0) end
    fence, reply = next_fence(last, proposal)
    if not fence then return reply end
    before = had and format('%.0f', last) or text -- what it has already may have been a lease
  end
  reply = found == 'absent' and out_of_turn(key, owner, ...)
  if reply then return reply end
  local err = write(found, key, record, owner, count, ttl, round, fence, watch, nil, before)
  if err then return {'refused', err} end
  return tonumber(fence) or GRANTED
end
