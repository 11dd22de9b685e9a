-- acquire: take each lock for its owner, or re-enter it.
-- KEYS     one lock an operation
-- ARGV     four an operation: owner, hold count to end up with, TTL in ms, round
-- Replies  granted, held, stale or refused (see lock.lua), in the order of KEYS
-- Again    a repeated run writes the same count and the same or a longer TTL: the count is absolute, never added to.
--          After a later round of the same owner it is stale and writes nothing.
local function acquire(key, owner, count, ttl, round)
  local found, reply = look(key, owner, round)
  if not found then return reply end
  local err = write(found, key, owner, count, ttl, round)
  if not err then return {'granted'} end
  if found == 'absent' then redis.pcall('DEL', key) end -- never leave a key without a TTL
  return {'refused', err}
end

local replies = {}
for i, key in ipairs(KEYS) do
  local a = (i - 1) * 4
  replies[i] = acquire(key, ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]))
end
return replies
