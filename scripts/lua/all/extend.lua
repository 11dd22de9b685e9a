-- extend: make all names live for at least another TTL, by the same grant, those among them that are gone and may be taken back;
-- or none. What one name lost here, all have: nothing is kept of a lock that is not whole.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names; as for a single lock
-- Replies  granted; what a single lock says of the first name that is not its own any more
-- Again    as for a single lock
local function extend_all(names, ...)
  return without_token((all_or_none(names, extend, ...)))
end
