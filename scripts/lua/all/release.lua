-- release: leave each name as a single lock is left, whatever became of the others; with no hold left, wake the first in the
-- queue of each. Here nothing is all or none: what is still its own has to go, and what is not is not touched.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names; as for a single lock
-- Replies  granted where all names were its own, and otherwise what a single lock says of the first that was not; refused where
--          one was
-- Again    as for a single lock
local function release_all(names, ...)
  local reply = GRANTED
  for i = 1, #names do
    reply = together(reply, release(names[i].key, names[i].record, names[i].queue, ...))
  end
  return reply
end
