-- extend: make the lock live for at least another TTL, where it is still its owner's.
-- KEYS     the lock
-- ARGV     owner, hold count it has, TTL in ms, round
-- Replies  granted, held, absent, stale or refused (see lock.lua)
-- Again    a repeated run sets the TTL again from the moment it runs, and never shortens it. It never makes a lock that
--          is not there. It always writes, so that a replica cannot answer in its master's place.
local function extend(key, owner, count, ttl, round)
  local found, reply = look(key, owner, round)
  if found ~= 'mine' then return reply end
  local err = write(found, key, owner, count, ttl, round)
  if err then return {'refused', err} end
  return GRANTED
end
