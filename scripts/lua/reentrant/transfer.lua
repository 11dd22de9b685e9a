-- transfer: give the lock from one owner to another, and make it live for at least another TTL.
-- KEYS     the lock
-- ARGV     the owner that is to have it, its hold count, TTL in ms, round of the new owner's client, and the owner that has
--          it
-- Replies  granted, held, absent, stale or refused (see lock.lua)
-- Again    a repeated run finds the new owner there and writes the same again.
local function transfer(key, to, count, ttl, round, from)
  local found, reply = look(key, to, round)
  if found ~= 'mine' then
    -- Rounds of two clients do not compare, so none is later than another here.
    if reply ~= ABSENT and reply[1] == 'stale' then return reply end
    found, reply = look(key, from, math.huge)
    if found ~= 'mine' then return reply end
    local left = redis.pcall('PTTL', key)
    if failed(left) then return refused(left) end
    local gone = redis.pcall('DEL', key)
    if failed(gone) then return refused(gone) end
    found, ttl = 'absent', math.max(tonumber(ttl), left)
  end
  local err = write(found, key, to, count, ttl, round)
  if not err then return GRANTED end
  if found == 'absent' then redis.pcall('DEL', key) end -- never leave a key without a TTL
  return {'refused', err}
end
