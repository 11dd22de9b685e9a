-- mutex: how a lock is kept that its owner cannot enter again: a STRING, which says who the owner is, with the lease as its
-- PEXPIRE. That is what SET NX PX leaves, and what redsync, node-redlock, redis-py, rslock and others have: they see it as
-- one of theirs, and it is theirs where they have it. The token of a grant has no place in it, and is in the record.
-- KEYS     the lock, and its record
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    writes the same

-- Whether a grant's token, and what was before it, are in the record only.
local RECORD_TELLS = true

-- A string that is longer is no owner of anybody's lock.
local LONGEST_OWNER = 512

-- How much is at `key`: 0 where there is nothing. Where that cannot be read, the next look says so.
local function size(key)
  -- guard: mutex-exists
  return call('GET', key) and 1 or 0
end

-- Says that `owner` holds the lock at `key`.
local function held_by(owner, key)
  if #owner > LONGEST_OWNER then return {'refused', 'WRONGTYPE the string at this key is not a lock'} end
  local ttl = call('PTTL', key)
  if failed(ttl) then return refused(ttl) end
  return {'held', owner, '1', ttl}
end

-- Who holds the lock at `key`, which exists.
local function held(key)
  local owner = call('GET', key)
  if failed(owner) then return refused(owner) end
  return held_by(owner, key)
end

-- What is at `key` for `owner`, as for a reentrant lock.
local function look(key, record, owner, round)
  local found = call('GET', key)
  if failed(found) then return nil, refused(found) end
  if not found then return 'absent', ABSENT end
  if found ~= owner then return nil, held_by(found, key) end
  return its_own(record, owner, round)
end

-- Writes the hold, its TTL left as it is. Answers what Redis does.
local function put(key, owner)
  return call('SET', key, owner, 'KEEPTTL')
end

-- Nobody but Quorate's own waiters has to be told of a release: clients of others' libraries ask again by themselves.
local function tell_others() end
