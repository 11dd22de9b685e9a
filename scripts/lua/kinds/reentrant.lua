-- reentrant: how a reentrant lock is kept. Beside the owner's hold count the HASH holds `round`, the number of the last round
-- that wrote (a number that only rises within one owner's client), `fence`, the token of the grant, and `before`, what the
-- record beside the lock was (see fence.lua).
-- KEYS     the lock
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    writes the same

-- Whether a grant's token, and what was before it, are in the record only.
-- guard: reentrant-tells-itself
local RECORD_TELLS = false

-- What is at `key` for `owner`, before anything is written: 'mine', 'absent', or nil; the reply to give when the operation
-- cannot go on; and the token of what is mine, and the record before, if it has them. `found` is how much is there, where
-- that is known.
local function look(key, record, owner, round, found)
  local mine = call('HMGET', key, owner, 'round', 'fence', 'before')
  if failed(mine) then return nil, refused(mine) end
  if mine[1] and match(mine[1], COUNT) then
    if (tonumber(mine[2]) or 0) > tonumber(round) then return nil, {'stale', mine[2]} end
    return 'mine', nil, mine[3], mine[4]
  end
  -- guard: reentrant-size-once
  found = found or size(key)
  if failed(found) then return nil, refused(found) end
  if found == 0 then return 'absent', ABSENT end
  return nil, held(key, found)
end

-- Writes the hold, its TTL left as it is; of a new grant `before` is what the record was. Answers what Redis does.
local function put(key, owner, count, round, fence, before)
  if before then return call('HSET', key, owner, count, 'round', round, 'fence', fence, 'before', before) end
  if fence then return call('HSET', key, owner, count, 'round', round, 'fence', fence) end
  return call('HSET', key, owner, count, 'round', round)
end

-- Nobody but Quorate's own waiters has to be told of a release.
local function tell_others() end
