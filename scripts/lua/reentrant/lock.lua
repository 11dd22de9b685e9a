-- The reentrant hash lock on one master, as every script of this folder sees it. Put in front of each script when the
-- crate is built; it defines functions and runs nothing.
--
-- The lock is a HASH: the owner's field holds the hold count, `round` holds the number of the last round that wrote
-- (a number that only rises within one owner's client), and the key's PEXPIRE is the lease. Lua does not roll back, so
-- every script reads and refuses first and writes last, and an error of one operation stays in that operation's reply.
--
-- Replies, one array an operation:
--   {'granted'}                        done, and written
--   {'held', owner, count, ttl}        another owner holds it; ttl in ms, -1 when the key never expires
--   {'absent'}                         there is no such lock here
--   {'stale', round}                   a later round of the same owner was here first; nothing was written
--   {'refused', error}                 Redis's own words; nothing was written

-- A hash with more fields than this is not a lock: its fields are not listed.
local MOST_FIELDS = 8

local function failed(reply)
  return type(reply) == 'table' and reply['err']
end

-- Who holds the lock at `key`, which is known to be a hash that exists and not the asker's.
local function held(key, fields)
  if fields > MOST_FIELDS then return {'refused', 'WRONGTYPE the hash at this key is not a lock'} end
  local hash = redis.pcall('HGETALL', key)
  if failed(hash) then return {'refused', hash['err']} end
  local ttl = redis.pcall('PTTL', key)
  if failed(ttl) then return {'refused', ttl['err']} end
  for i = 1, #hash, 2 do
    if hash[i] ~= 'round' and tonumber(hash[i + 1]) then return {'held', hash[i], hash[i + 1], ttl} end
  end
  return {'refused', 'WRONGTYPE the hash at this key is not a lock'}
end

-- What is at `key` for `owner`, before anything is written: 'mine', 'absent', or nil; and the reply to give when the
-- operation cannot go on.
local function look(key, owner, round)
  local mine = redis.pcall('HMGET', key, owner, 'round')
  if failed(mine) then return nil, {'refused', mine['err']} end
  if mine[1] then
    if tonumber(mine[2] or 0) > round then return nil, {'stale', mine[2]} end
    return 'mine'
  end
  local fields = redis.pcall('HLEN', key)
  if failed(fields) then return nil, {'refused', fields['err']} end
  if fields == 0 then return 'absent', {'absent'} end
  return nil, held(key, fields)
end

-- Writes the hold and makes the key live for at least `ttl` ms: a TTL is never shortened. `found` is what `look` found.
-- Answers an error, or nil.
local function write(found, key, owner, count, ttl, round)
  local wrote = redis.pcall('HSET', key, owner, count, 'round', round)
  if failed(wrote) then return wrote['err'] end
  if found == 'mine' then
    local left = redis.pcall('PTTL', key)
    if failed(left) then return left['err'] end
    if left >= ttl then return nil end
  end
  return failed(redis.pcall('PEXPIRE', key, ttl))
end
