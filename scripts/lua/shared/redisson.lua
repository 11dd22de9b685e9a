-- redisson: the RLock of Redisson: a HASH of one field, owner -> number of holds, with the lease as
-- its TTL.

-- Who holds the lock at this key, with how many holds; nil where nobody does.
local function holder_of(key)
  local hash = call('HGETALL', key)
  -- guard: two-fields
  if #hash > 2 or (hash[2] and not find(hash[2], '^%d+$')) then
    refuse('WRONGTYPE the hash at this key is not a lock of Redisson')
  end
  return hash[1], tonumber(hash[2])
end

-- Writes the key. Without `kept` its end stays.
local function put(key, owner, holds, kept)
  call('HSET', key, owner, holds)
  if kept then call('PEXPIRE', key, kept) end
end

-- Wakes the other library's waiters after a release.
local function wake_others(key)
  call('PUBLISH', 'redisson_lock__channel:' .. (find(key, '{', 1, true) and key or '{' .. key .. '}'), '0')
end
