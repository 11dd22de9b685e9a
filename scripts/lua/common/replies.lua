-- replies: what every verb answers to an operation. Defines what they share, and runs nothing.
-- KEYS     none
-- ARGV     none
-- Replies  one an operation; those that carry one number are that number, which costs least
--   1                                  granted: done, and written
--   more than 1                        granted, and the token of the grant
--   0                                  absent: there is no such lock here
--   {'held', owner, count, ttl}        another owner holds it; ttl in ms, -1 when the key never expires. A count of 0 is a
--                                      grant that was not released, though its key is gone, or, of several names, a hold of
--                                      some of them only. Where the asker was to have a place in the queue, a fifth says how
--                                      many are ahead of it, or -1 where it got none. To those who trust no clocks a sixth
--                                      and a seventh say which version of the record to watch, and for how long (ms)
--                                      To those who ask for a permit of a semaphore an eighth lists the permits that are
--                                      taken here, and a ninth says how soon (ms) one of them is over, or -1
--   {'stale', round or token}          a later round, or a higher token, of the same owner was here first; nothing was
--                                      written
--   {'refused', error}                 Redis's own words, or those of head.lua, fence.lua or the kind; nothing was written
-- Again    as the files of the verbs say
local GRANTED, ABSENT = 1, 0

-- Adds to such a reply what is to be watched, for those who trust no clocks.
local function to_watch(reply, record, seen)
  -- guard: watch-only-where-held
  if seen == '' or not now or reply[1] ~= 'held' then return reply end
  local fence, grant = last_fence(record)
  if fence and grant then reply[5], reply[6], reply[7] = -1, grant.version, tonumber(grant.watch) end
  return reply
end
