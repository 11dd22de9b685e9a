-- inspect: say who holds the lock.
-- KEYS     the lock
-- ARGV     none
-- Replies  held (by anybody), absent or refused (see lock.lua)
-- Again    writes nothing, so a repeated run changes nothing.
local function inspect(key)
  local fields = redis.pcall('HLEN', key)
  if failed(fields) then return refused(fields) end
  if fields == 0 then return ABSENT end
  return held(key, fields)
end
