-- transfer: give each lock from one owner to another, and make it live for at least another TTL.
-- KEYS     one lock an operation
-- ARGV     five an operation: the owner that is to have it, its hold count, TTL in ms, round of the new owner's client, and
--          the owner that has it
-- Replies  granted, held, absent, stale or refused (see lock.lua), in the order of KEYS
-- Again    a repeated run finds the new owner there and writes the same again.
local function transfer(key, to, count, ttl, round, from)
  local found, reply = look(key, to, round)
  if found ~= 'mine' then
    -- Rounds of two clients do not compare, so none is later than another here.
    if reply[1] == 'stale' then return reply end
    found, reply = look(key, from, math.huge)
    if found ~= 'mine' then return reply end
    local left = redis.pcall('PTTL', key)
    if failed(left) then return {'refused', left['err']} end
    local gone = redis.pcall('DEL', key)
    if failed(gone) then return {'refused', gone['err']} end
    found, ttl = 'absent', math.max(ttl, left)
  end
  local err = write(found, key, to, count, ttl, round)
  if not err then return {'granted'} end
  if found == 'absent' then redis.pcall('DEL', key) end -- never leave a key without a TTL
  return {'refused', err}
end

local replies = {}
for i, key in ipairs(KEYS) do
  local a = (i - 1) * 5
  replies[i] = transfer(key, ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), ARGV[a + 5])
end
return replies
