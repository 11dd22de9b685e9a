-- redisson: how a lock is kept that Java services have, too: the HASH of Redisson's RLock, owner -> hold count, and nothing
-- else in it, with the lease as its PEXPIRE. Whoever waits there is told of a release on the channel of the lock. The
-- token of a grant has no place in it, and is in the record.
-- KEYS     the lock, and its record
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    writes the same; a release is told once

-- Whether a grant's token, and what was before it, are in the record only.
local RECORD_TELLS = true

-- What is at `key` for `owner`, as for a reentrant lock.
local function look(key, record, owner, round, found)
  local mine = call('HMGET', key, owner)
  if failed(mine) then return nil, refused(mine) end
  if mine[1] then return its_own(record, owner, round) end
  -- guard: redisson-size-once
  found = found or size(key)
  if failed(found) then return nil, refused(found) end
  if found == 0 then return 'absent', ABSENT end
  return nil, held(key, found)
end

-- Writes the hold, its TTL left as it is. Answers what Redis does.
local function put(key, owner, count)
  return call('HSET', key, owner, count)
end

-- Wakes those who wait as Redisson does. A hint: its failure undoes nothing.
local function tell_others(key)
  local name = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
  call('PUBLISH', 'redisson_lock__channel:' .. name, '0')
end
