-- The reentrant hash lock on one master, as every verb of this folder sees it. The files of `common` and of this folder are
-- one script: head.lua and fence.lua, this one, the verbs, and run.lua, which carries out a call's operations. All but the
-- last define functions and run nothing.
--
-- The lock is a HASH: the owner's field holds the hold count, `round` holds the number of the last round that wrote
-- (a number that only rises within one owner's client), `fence` the token of the grant, `before` what the record beside the
-- lock was (see fence.lua), and the key's PEXPIRE is the lease. Lua does not roll back, so every verb reads and refuses
-- first and writes last, and an error of one operation stays in that operation's reply.
-- Arguments stay the strings they came as, but where they are compared: Redis takes numbers of Lua slowly.
--
-- Replies, one an operation; those that carry one number are that number, which costs least
--   1                                  granted: done, and written
--   more than 1                        granted, and the token of the grant
--   0                                  absent: there is no such lock here
--   {'held', owner, count, ttl}        another owner holds it; ttl in ms, -1 when the key never expires. A count of 0 is a
--                                      grant that was not released, though its key is gone. Where the asker was to have a
--                                      place in the queue, a fifth says how many are ahead of it, or -1 where it got none.
--                                      To those who trust no clocks a sixth and a seventh say which version of the record
--                                      to watch, and for how long (ms)
--   {'stale', round or token}          a later round, or a higher token, of the same owner was here first; nothing was
--                                      written
--   {'refused', error}                 Redis's own words, or those of head.lua and fence.lua; nothing was written
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

-- The fields that are no owners.
local OURS = {round = true, fence = true, before = true}

-- Who holds the lock at `key`, which is known to be a hash that exists and not the asker's.
local function held(key, fields)
  if fields > MOST_FIELDS then return {'refused', 'WRONGTYPE the hash at this key is not a lock'} end
  local hash = call('HGETALL', key)
  if failed(hash) then return refused(hash) end
  local ttl = call('PTTL', key)
  if failed(ttl) then return refused(ttl) end
  for i = 1, #hash, 2 do
    if not OURS[hash[i]] and tonumber(hash[i + 1]) then return {'held', hash[i], hash[i + 1], ttl} end
  end
  return {'refused', 'WRONGTYPE the hash at this key is not a lock'}
end

-- Adds to such a reply what is to be watched, for those who trust no clocks.
local function to_watch(reply, record, seen)
  if seen == '' or not now or reply[1] ~= 'held' then return reply end
  local fence, grant = last_fence(record)
  if fence and grant then reply[5], reply[6], reply[7] = -1, grant.version, tonumber(grant.watch) end
  return reply
end

-- What is at `key` for `owner`, before anything is written: 'mine', 'absent', or nil; the reply to give when the operation
-- cannot go on; and the token of what is mine, and the record before, if it has them. `fields` is how many the hash has,
-- where that is known.
local function look(key, owner, round, fields)
  local mine = call('HMGET', key, owner, 'round', 'fence', 'before')
  if failed(mine) then return nil, refused(mine) end
  if mine[1] then
    if (tonumber(mine[2]) or 0) > tonumber(round) then return nil, {'stale', mine[2]} end
    return 'mine', nil, mine[3], mine[4]
  end
  fields = fields or call('HLEN', key)
  if failed(fields) then return nil, refused(fields) end
  if fields == 0 then return 'absent', ABSENT end
  return nil, held(key, fields)
end

-- Writes the hold, makes the key live for at least `ttl` ms, and writes the grant into the record; `fence` is nil where there
-- are no guards. A TTL is never shortened, and neither is what others have to wait for. `found` is what `look` found, `left`
-- the TTL of what was another owner's a moment ago, and `before` the record before a new grant. Answers an error, or nil, and
-- leaves no key without a TTL.
local function write(found, key, record, owner, count, ttl, round, fence, watch, left, before)
  if found == 'mine' then
    left = call('PTTL', key)
    if failed(left) then return left['err'] end
  end
  local beyond = (left or -1) - ttl -- how much longer it lives already
  local done
  if before then
    done = call('HSET', key, owner, count, 'round', round, 'fence', fence, 'before', before)
  elseif fence then
    done = call('HSET', key, owner, count, 'round', round, 'fence', fence)
  else
    done = call('HSET', key, owner, count, 'round', round)
  end
  if not failed(done) and (beyond < 0 or found ~= 'mine') then
    done = call('PEXPIRE', key, beyond > 0 and left or ttl)
  end
  local err = failed(done)
  if not err and fence then
    err = note_grant(record, fence, round, beyond > 0 and watch + beyond or watch, owner)
  end
  if err and found == 'absent' then call('DEL', key) end
  return err
end

-- Leaves the lock, which is `owner`'s, with `count` holds; with none, deletes it. `before` is what the record was before a
-- grant that came to nothing. Answers granted or refused.
local function leave(key, record, owner, count, round, fence, before)
  local done
  if count ~= '0' then
    done = call('HSET', key, owner, count, 'round', round)
  else
    done = call('DEL', key)
  end
  if failed(done) then return refused(done) end
  if count == '0' and guarded and fence then
    if before then undo_grant(record, before) else note_release(record, fence) end
  end
  return GRANTED
end

-- The same where its key is gone already, which may have been too early, or was never there. `token` is that of an owner that
-- is not asked, if it is one.
local function leave_gone(record, owner, round, token)
  if not guarded then return end
  local fence, grant = last_fence(record)
  if fence and fence < (tonumber(token) or 0) and #token > 1 then return note_release(record, token) end
  if fence and grant and grant.owner == owner and tonumber(grant.round) <= tonumber(round) then
    note_release(record, format('%.0f', fence))
  end
end

-- Gives `ticket` a place in the queue, since `since` (its own wall clock, us), after it has waited for `waited` us. Answers
-- how many are ahead of it, or -1 when it got none.
local function stand(queue, ticket, since, waited)
  local time = call('TIME')
  if failed(time) then return -1 end
  local began = tonumber(time[1]) * 1000000 + tonumber(time[2]) - waited
  if math.abs(since - began) > BAND then since = began end
  local waiting = call('ZCARD', queue)
  if failed(waiting) or waiting >= MOST_WAITING then return -1 end
  if failed(call('ZADD', queue, format('%.0f', since), ticket)) then return -1 end
  call('PEXPIRE', queue, QUEUE_LIFE)
  local ahead = call('ZRANK', queue, ticket)
  return tonumber(ahead) or -1
end

-- Wakes the first in the queue whose client hears it, and takes it and those before it, which are gone, off. A hint: its
-- failure undoes nothing.
local function wake(queue, wakes)
  while true do
    local first = call('ZPOPMIN', queue)
    if failed(first) or #first == 0 then return end
    local client, number = match(first[1], '^(.*):(%d+)$')
    local heard = client and call('PUBLISH', wakes .. client, number) or 0
    if failed(heard) then call('ZADD', queue, first[2], first[1]) end -- this user may call nobody
    if failed(heard) or heard > 0 then return end
  end
end
