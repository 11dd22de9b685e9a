-- release: leave each lock's owner with fewer holds; with none left, delete the lock and tell the waiters.
-- KEYS     one lock an operation
-- ARGV     five an operation: owner, hold count to end up with, round, channel, message
-- Replies  granted, held, absent, stale or refused (see lock.lua), in the order of KEYS
-- Again    a repeated run finds the same count, or no lock of this owner: it never touches another owner's lock, and
--          never one that the same owner took in a later round. The lease is left as it is while holds remain.
local function release(key, owner, count, round, channel, message)
  local found, reply = look(key, owner, round)
  if found ~= 'mine' then return reply end
  if count > 0 then
    local wrote = redis.pcall('HSET', key, owner, count, 'round', round)
    if failed(wrote) then return {'refused', wrote['err']} end
    return {'granted'}
  end
  local gone = redis.pcall('DEL', key)
  if failed(gone) then return {'refused', gone['err']} end
  redis.pcall('PUBLISH', channel, message) -- a hint: its failure undoes nothing
  return {'granted'}
end

local replies = {}
for i, key in ipairs(KEYS) do
  local a = (i - 1) * 5
  replies[i] = release(key, ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5])
end
return replies
