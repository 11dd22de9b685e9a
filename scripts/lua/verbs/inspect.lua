-- inspect: say who holds the lock, and by which version of the record.
-- KEYS     the lock, and its record
-- ARGV     an owner to look for, where there may be several, or nothing
-- Replies  held (by anybody), absent or refused (see replies.lua)
-- Again    writes nothing, so a repeated run changes nothing.
local function inspect(key, record, asked)
  local there = size(key)
  if failed(there) then return refused(there) end
  withheld() -- it tells all the same, if it knows the time
  local reply = there > 0 and held(key, there, asked)
  -- guard: inspect-shows-version
  if reply then return to_watch(reply, record, ',') end
  if not now then return ABSENT end
  local last, grant = last_fence(record)
  if not last then return grant end
  -- guard: inspect-nobody
  return grant and unreleased(grant, '', now, '') or ABSENT
end
