-- The reentrant hash lock on one master, as every verb of this folder sees it. The files of this folder are one script: this
-- one, the verbs, and run.lua, which carries out a call's operations. All but the last define functions and run nothing.
--
-- The lock is a HASH: the owner's field holds the hold count, `round` holds the number of the last round that wrote
-- (a number that only rises within one owner's client), and the key's PEXPIRE is the lease. Lua does not roll back, so
-- every verb reads and refuses first and writes last, and an error of one operation stays in that operation's reply.
-- Arguments stay the strings they came as, but where they are compared: Redis takes numbers of Lua slowly.
--
-- Replies, one an operation; the two that carry nothing are numbers, which cost least
--   1                                  granted: done, and written
--   0                                  absent: there is no such lock here
--   {'held', owner, count, ttl}        another owner holds it; ttl in ms, -1 when the key never expires. Where the asker
--                                      was to have a place in the queue, a fifth says how many are ahead of it, or -1
--                                      where it got none
--   {'stale', round}                   a later round of the same owner was here first; nothing was written
--   {'refused', error}                 Redis's own words; nothing was written
local GRANTED, ABSENT = 1, 0

-- The queue is a ZSET beside the lock: the tickets of those that wait for it, by the moment since when, in microseconds. A
-- ticket is `{client uuid}:{number}`, used for one acquire only, and is called by its number on its client's own channel. A
-- place is taken by a refused acquire and given up by the next one of the same waiter, by a grant, by a release, or by
-- being called.

-- A hash with more fields than this is not a lock: its fields are not listed.
local MOST_FIELDS = 8

-- Who comes when so many are waiting gets no place, and comes back by itself.
local MOST_WAITING = 1024

-- A queue that nobody was added to for so long (ms) is forgotten: twice the longest time between two looks of a waiter.
local QUEUE_LIFE = 120000

-- How far (us) the moment that a waiter names may lie from what this master makes of it. Within it all masters have the
-- same order; beyond it, a waiter whose clock is wrong gains nothing.
local BAND = 500000

local function failed(reply)
  return type(reply) == 'table' and reply['err']
end

local function refused(reply)
  return {'refused', reply['err']}
end

-- Who holds the lock at `key`, which is known to be a hash that exists and not the asker's.
local function held(key, fields)
  if fields > MOST_FIELDS then return {'refused', 'WRONGTYPE the hash at this key is not a lock'} end
  local hash = redis.pcall('HGETALL', key)
  if failed(hash) then return refused(hash) end
  local ttl = redis.pcall('PTTL', key)
  if failed(ttl) then return refused(ttl) end
  for i = 1, #hash, 2 do
    if hash[i] ~= 'round' and tonumber(hash[i + 1]) then return {'held', hash[i], hash[i + 1], ttl} end
  end
  return {'refused', 'WRONGTYPE the hash at this key is not a lock'}
end

-- What is at `key` for `owner`, before anything is written: 'mine', 'absent', or nil; and the reply to give when the
-- operation cannot go on. `fields` is how many the hash has, where that is known.
local function look(key, owner, round, fields)
  local mine = redis.pcall('HMGET', key, owner, 'round')
  if failed(mine) then return nil, refused(mine) end
  if mine[1] then
    if (tonumber(mine[2]) or 0) > tonumber(round) then return nil, {'stale', mine[2]} end
    return 'mine'
  end
  fields = fields or redis.pcall('HLEN', key)
  if failed(fields) then return nil, refused(fields) end
  if fields == 0 then return 'absent', ABSENT end
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
    if left >= tonumber(ttl) then return nil end
  end
  return failed(redis.pcall('PEXPIRE', key, ttl))
end

-- Leaves the lock, which is `owner`'s, with `count` holds; with none, deletes it. Answers granted or refused.
local function leave(key, owner, count, round)
  local done
  if count ~= '0' then
    done = redis.pcall('HSET', key, owner, count, 'round', round)
  else
    done = redis.pcall('DEL', key)
  end
  if failed(done) then return refused(done) end
  return GRANTED
end

-- Gives `ticket` a place in the queue, since `since` (its own wall clock, us), after it has waited for `waited` us. Answers
-- how many are ahead of it, or -1 when it got none.
local function stand(queue, ticket, since, waited)
  local time = redis.pcall('TIME')
  if failed(time) then return -1 end
  local began = tonumber(time[1]) * 1000000 + tonumber(time[2]) - waited
  if math.abs(since - began) > BAND then since = began end
  local waiting = redis.pcall('ZCARD', queue)
  if failed(waiting) or waiting >= MOST_WAITING then return -1 end
  if failed(redis.pcall('ZADD', queue, string.format('%.0f', since), ticket)) then return -1 end
  redis.pcall('PEXPIRE', queue, QUEUE_LIFE)
  local ahead = redis.pcall('ZRANK', queue, ticket)
  return tonumber(ahead) or -1
end

-- Wakes the first in the queue whose client hears it, and takes it and those before it, which are gone, off. A hint: its
-- failure undoes nothing.
local function wake(queue, wakes)
  while true do
    local first = redis.pcall('ZPOPMIN', queue)
    if failed(first) or #first == 0 then return end
    local client, number = string.match(first[1], '^(.*):(%d+)$')
    local heard = client and redis.pcall('PUBLISH', wakes .. client, number) or 0
    if failed(heard) then redis.pcall('ZADD', queue, first[2], first[1]) end -- this user may call nobody
    if failed(heard) or heard > 0 then return end
  end
end
