-- inspect: say who holds each lock.
-- KEYS     one lock an operation
-- ARGV     none
-- Replies  held (by anybody), absent or refused (see lock.lua), in the order of KEYS
-- Again    writes nothing, so a repeated run changes nothing.
local function inspect(key)
  local fields = redis.pcall('HLEN', key)
  if failed(fields) then return {'refused', fields['err']} end
  if fields == 0 then return {'absent'} end
  return held(key, fields)
end

local replies = {}
for i, key in ipairs(KEYS) do replies[i] = inspect(key) end
return replies
