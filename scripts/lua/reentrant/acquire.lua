-- acquire: take the lock for its owner, or re-enter it.
-- KEYS     the lock
-- ARGV     owner, hold count to end up with, TTL in ms, round
-- Replies  granted, held, stale or refused (see lock.lua)
-- Again    a repeated run writes the same count and the same or a longer TTL: the count is absolute, never added to.
--          After a later round of the same owner it is stale and writes nothing.
local function acquire(key, owner, count, ttl, round)
  local fields = redis.pcall('HLEN', key) -- a free lock is known by one look
  if failed(fields) then return refused(fields) end
  local found, reply = 'absent', nil
  if fields > 0 then found, reply = look(key, owner, round, fields) end
  if not found then return reply end
  local err = write(found, key, owner, count, ttl, round)
  if not err then return GRANTED end
  if found == 'absent' then redis.pcall('DEL', key) end -- never leave a key without a TTL
  return {'refused', err}
end
