-- fence: the record beside a lock, which outlives it: the last fencing token that was granted here, and whether that grant
-- was released. A STRING of one of these forms:
--   'FENCE'                              released
--   'FENCE:ROUND:WATCH:UNTIL:OWNER'      granted to OWNER in ROUND, and not released. Once the lock's key is gone, nobody
--                                        else gets it before UNTIL (us), by this master's clock and by the others', or,
--                                        where clients do not trust clocks, before they have watched this record unchanged
--                                        for WATCH (ms)
--   'FENCE:ROUND:WATCH:UNTIL:OWNER|BEFORE'   the same, and what was here before it, where the lock has no place for that
-- So a key that was evicted, deleted, or expired early by a clock that jumped does not give the lock away. A grant that came
-- to nothing leaves the record as it was: it is kept for so long, with the lock or here. Otherwise a holder could not take back what a
-- master forgot, because others had tried to. Tokens are microseconds since 1970 where nothing else forces them higher:
-- records may be forgotten, and tokens rise all the same. They stay below 2^53, which Lua's numbers hold exactly.
-- KEYS     the record, as the files of the verbs say
-- ARGV     as the files of the verbs say
-- Replies  as the files of the verbs say
-- Again    as the files of the verbs say

-- How long (ms) a record is kept: of a grant that was not released, longer than any clock should jump, and of one that was,
-- longer than clocks differ.
local UNRELEASED_FOR, RELEASED_FOR = '2592000000', '3600000'

-- How far (us) a proposal may be behind the time here, and ahead of it. One that is older may have been sent before this
-- master lost its records, and one that is newer would force all tokens to come: either the proposal is wrong, or this
-- clock. Both together are less than the shortest quarantine.
local OLDEST, NEWEST = 2000000, 500000

-- What the record says: the last token, the grant if it was not released, and its text; or nil, and the reply to give.
local function last_fence(record)
  local text = call('GET', record)
  if failed(text) then return nil, refused(text) end
  if not text then return 0, nil, '' end
  local released = tonumber(text)
  if released then return released, nil, text end
  local fence, round, watch, until_us, owner, tail = match(text, '^(%d+):(%d+):(%d+):(%d+):([^|]*)(.*)$')
  if not fence then return nil, {'refused', 'WRONGTYPE the record beside this lock is not one'} end
  local grant = {version = fence .. ':' .. round, fence = fence, round = round, watch = watch, ends = until_us,
    owner = owner, before = tail ~= '' and string.sub(tail, 2)}
  return tonumber(fence), grant, text
end

-- The token of the next grant, as text; or nil, and the reply to give.
local function next_fence(last, proposal)
  local fence = tonumber(proposal)
  local ahead = fence - now
  if ahead > NEWEST or -ahead > OLDEST then
    return nil, {'refused', format('CLOCK the token proposed is %.3f s from the time here', ahead / 1000000)}
  end
  if fence > last then return proposal end
  return format('%.0f', last + 1)
end

-- Whether the next owner has to wait for a grant that was not released: the reply to give, or nil. `seen` is nothing where
-- clocks are trusted, and otherwise the versions that were watched for long enough, each with a comma on both sides.
-- The token proposed is the time that most masters show: a clock that jumps here does not end the wait.
local function unreleased(grant, seen, proposal)
  if seen == '' then
    local time = math.min(now, tonumber(proposal))
    if time > tonumber(grant.ends) then return nil end
    return {'held', grant.owner, '0', math.ceil((grant.ends - time) / 1000)}
  end
  if string.find(seen, ',' .. grant.version .. ',', 1, true) then return nil end
  return {'held', grant.owner, '0', tonumber(grant.watch), -1, grant.version, tonumber(grant.watch)}
end

-- Whether `owner`, which was granted `token`, may take the lock back where its key is gone: nobody was granted it since.
local function may_heal(last, grant, owner, token)
  local newer = last - token
  return newer < 0 or (newer == 0 and grant and grant.owner == owner)
end

-- Notes a grant, and what was here before it if that is given. It is kept until `ends`, or for `watch`. Answers an error, or
-- nil.
local function note_grant(record, fence, round, watch, owner, before, ends)
  ends = format('%.0f', ends or now + watch * 1000)
  local text = fence .. ':' .. round .. ':' .. watch .. ':' .. ends .. ':' .. owner
  if before then text = text .. '|' .. match(before, '^[^|]*') end
  return failed(call('SET', record, text, 'PX', UNRELEASED_FOR))
end

-- Notes that the grant with this token is released. Where that fails, the next owner waits.
local function note_release(record, fence)
  call('SET', record, fence, 'PX', RELEASED_FOR)
end

-- The grant came to nothing: nobody has seen its token, and the record is as it was before.
local function undo_grant(record, before)
  if before == '' then
    call('DEL', record)
  else
    call('SET', record, before, 'PX', tonumber(before) and RELEASED_FOR or UNRELEASED_FOR)
  end
end

-- What `look` answers for a lock of `owner` whose token is in the record.
local function its_own(record, owner, round)
  if not guarded then return 'mine' end
  local last, grant = last_fence(record)
  -- guard: own-grant
  if not last or not grant or grant.owner ~= owner then return 'mine' end
  if tonumber(grant.round) > tonumber(round) then return nil, {'stale', grant.round} end
  return 'mine', nil, grant.fence, grant.before
end
