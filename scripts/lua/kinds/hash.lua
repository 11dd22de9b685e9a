-- hash: what the kinds of locks share that are a HASH on a master, owner -> hold count, with the lease as its PEXPIRE.
-- Defines functions and runs nothing, as the files of the other kinds.
-- KEYS     the lock
-- ARGV     none
-- Replies  as replies.lua has them
-- Again    writes nothing

-- A hash with more fields than this is not a lock: its fields are not listed.
local MOST_FIELDS = 8

-- The fields that are no owners.
local OURS = {round = true, fence = true, before = true}

-- What a hold count looks like in its field; kinds/fair.lua has another one.
local COUNT = '^(%d+)$'

-- How much is at `key`: 0 where there is nothing.
local function size(key)
  return call('HLEN', key)
end

-- Who holds the lock at `key`, which is known to be a hash that exists and not the asker's.
local function held(key, fields)
  if fields > MOST_FIELDS then return {'refused', 'WRONGTYPE the hash at this key is not a lock'} end
  local hash = call('HGETALL', key)
  if failed(hash) then return refused(hash) end
  local ttl = call('PTTL', key)
  if failed(ttl) then return refused(ttl) end
  for i = 1, #hash, 2 do
    local count = not OURS[hash[i]] and match(hash[i + 1], COUNT)
    if count then return {'held', hash[i], count, ttl} end
  end
  return {'refused', 'WRONGTYPE the hash at this key is not a lock'}
end
