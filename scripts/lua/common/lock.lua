-- lock: taking and leaving a lock of any kind. The files of `common`, of one of the `kinds` and of the `verbs` are one script:
-- head.lua, fence.lua, replies.lua and queue.lua, the kind, this one, the verbs, and run.lua, which carries out a call's
-- operations. All but the last define functions and run nothing. The files of `all` make another script of them, for several
-- names at once.
--
-- A kind says how a lock is kept on a master. Lua does not roll back, so every verb reads and refuses first and writes last,
-- and an error of one operation stays in that operation's reply. Arguments stay the strings they came as, but where they are
-- compared: Redis takes numbers of Lua slowly.
-- KEYS     as the files of the verbs say
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    as the files of the verbs say

-- Writes the hold, makes the key live for at least `ttl` ms, and writes the grant into the record; `fence` is nil where there
-- are no guards. A TTL is never shortened, and neither is what others have to wait for. `found` is what `look` found, `left`
-- the TTL of what was another owner's a moment ago, and `before` the record before a new grant. Answers an error, or nil, and
-- leaves no key without a TTL.
local function write(found, key, record, owner, count, ttl, round, fence, watch, left, before)
  if found == 'mine' then
    left = call('PTTL', key)
    if failed(left) then return left['err'] end
  end
  -- guard: lives-beyond
  local beyond = (left or -1) - ttl -- how much longer it lives already
  local done = put(key, owner, count, round, fence, before)
  -- guard: ttl-rises
  if not failed(done) and (beyond < 0 or found ~= 'mine') then
    -- guard: ttl-kept
    done = call('PEXPIRE', key, beyond > 0 and left or ttl)
  end
  -- guard: watch-rises
  local err, kept = failed(done), beyond > 0 and watch + beyond or watch
  if not err then err = count_in(key, kept) end
  if not err and fence then err = note_grant(record, fence, round, kept, owner, RECORD_TELLS and before) end
  if err and found == 'absent' then
    call('DEL', key)
    count_out(key)
  end
  return err
end

-- Leaves the lock, which is `owner`'s, with `count` holds; with none, deletes it. `before` is what the record was before a
-- grant that came to nothing. Answers granted or refused.
local function leave(key, record, owner, count, round, fence, before)
  local done
  if count ~= '0' then
    done = put(key, owner, count, round)
  else
    done = call('DEL', key)
  end
  if failed(done) then return refused(done) end
  -- guard: release-noted
  if count == '0' and guarded and fence then
    if before then undo_grant(record, before) else note_release(record, fence) end
  end
  if count == '0' then
    count_out(key)
    tell_others(key)
  end
  return GRANTED
end

-- Gives the lock from its owner to another one. Answers what it is to that one until it is written, and how long (ms) it still
-- lives; or nil, and the reply to give.
local function give(key)
  local left = call('PTTL', key)
  if failed(left) then return nil, refused(left) end
  local gone = call('DEL', key)
  if failed(gone) then return nil, refused(gone) end
  return 'absent', left
end

-- The same where its key is gone already, which may have been too early, or was never there. `token` is that of an owner that
-- is not asked, if it is one.
local function leave_gone(record, owner, round, token)
  if not guarded then return end
  local fence, grant = last_fence(record)
  -- guard: gone-token-is-higher
  if fence and fence < (tonumber(token) or 0) and #token > 1 then return note_release(record, token) end
  -- guard: gone-grant-is-own
  if fence and grant and grant.owner == owner and tonumber(grant.round) <= tonumber(round) then
    note_release(record, format('%.0f', fence))
  end
end
