-- inspect: say who holds the lock, and by which version of the record.
-- KEYS     the lock, and its record
-- ARGV     none
-- Replies  held (by anybody), absent or refused (see lock.lua)
-- Again    writes nothing, so a repeated run changes nothing.
local function inspect(key, record)
  local fields = call('HLEN', key)
  if failed(fields) then return refused(fields) end
  withheld() -- it tells all the same, if it knows the time
  if fields > 0 then return to_watch(held(key, fields), record, ',') end
  if not now then return ABSENT end
  local last, grant = last_fence(record)
  if not last then return grant end
  return grant and unreleased(grant, '', now) or ABSENT
end
