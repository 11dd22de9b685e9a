-- extend: make the lock live for at least another TTL, where it is still its owner's, by the same grant; or take it back
-- where its key is gone and nobody was granted it since. Where the owner enters again, its hold count rises with it.
-- KEYS     the lock, and its record
-- ARGV     owner, hold count to end up with, TTL in ms, round; the token of the grant, how long the lock is kept from
--          others if it is not released (ms), and 1 where a key that is gone may be made again
-- Replies  granted, held, absent, stale or refused (see replies.lua)
-- Again    a repeated run sets the TTL again from the moment it runs, and never shortens it. It makes no lock again that
--          was released or given to another owner, or after a higher token: who was granted that may hold it elsewhere. It
--          always writes, so that a replica cannot answer in its master's place.
local function extend(key, record, owner, count, ttl, round, token, watch, heals)
  local no_vote = withheld()
  if no_vote then return no_vote end
  local found, reply, fence, before = look(key, record, owner, round)
  local left
  if found == 'mine' then
    -- guard: extend-of-older-grant
    if now and (tonumber(fence) or 0) > tonumber(token) then return {'stale', fence} end
  elseif found == 'absent' and now and heals == '1' then
    local last, grant = last_fence(record)
    if not last then return grant end
    if not may_heal(last, grant, owner, token) then return ABSENT end
    local there = size(key) -- the name may be a semaphore of another size meanwhile
    if failed(there) then return refused(there) end
    if grant and grant.owner == owner then left = math.ceil((grant.ends - now) / 1000 - (watch - ttl)) end
  else
    return reply
  end
  local err = write(found, key, record, owner, count, ttl, round, now and token, watch, left, RECORD_TELLS and before)
  if err then return {'refused', err} end
  return GRANTED
end
