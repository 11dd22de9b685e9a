-- write: taking and leaving a read-write lock: what common/lock.lua is to the other kinds. The record beside it is that of
-- the writer, or of all readers: the highest token, and the latest end. Readers come and go by it, and the last one marks it
-- released. What stands in it as `before` is the highest token of those who wrote here, or read and left: a reader takes back
-- what this master forgot whoever was granted to read since then, but neither behind a writer nor behind its own release.
-- KEYS     as the files of the verbs say
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    as the files of the verbs say

-- Whether a grant's token, and what was before it, are in the record only.
-- guard: rw-tells-itself
local RECORD_TELLS = false

-- The highest token of those who wrote, or read and left, as far as the record tells: that of another kind of lock does not.
local function wrote_last(last, grant)
  local wrote = grant and match(grant.owner, HOLDER) and grant.before
  return tonumber(wrote) or last
end

-- Whether a grant that came to nothing may leave the record as it was before, with that token at the end then: nobody wrote, came
-- or left since; where readers were there before, they are still.
local function is_as_before(owner, fence, before, wrote, grant)
  if not is_reader(owner) then return wrote == tonumber(fence) end
  local round, tail = match(before, '^%d+:(%d+):%d+:%d+:r:[^|]*|(%d+)$')
  return round and grant and grant.round - round == 1 and wrote == tonumber(tail)
end

-- As for a single lock, but that readers do not wait for readers, and a writer that begins to read not for itself. The record is kept
-- until the last of all leases, which may be that of the writer as a reader; readers wait until the writer's own, where it is known.
local unreleased_by = unreleased
local function unreleased(grant, seen, proposal, owner, key)
  if is_reader(owner) then
    if is_reader(grant.owner) or grant.owner == as_writer(owner) then return nil end
    local all, reply = holders(key)
    if not all then return reply end
    if all[grant.owner] then grant.ends = all[grant.owner].till end
  end
  local reply = unreleased_by(grant, seen, proposal)
  if reply then reply[2] = match(grant.owner, HOLDER) and string.sub(grant.owner, 3) or grant.owner end
  return reply
end

-- As for a single lock, but that readers do not mind whom else was granted to read.
local may_heal_alone = may_heal
local function may_heal(last, grant, owner, token)
  if is_reader(owner) then return wrote_last(last, grant) < tonumber(token) end
  return may_heal_alone(last, grant, owner, token)
end

local function hold(count, round, ends, till, fence, before)
  local text = count .. ',' .. round .. format(',%.0f,%.0f,', ends, till) .. (fence or '')
  return before and text .. ',' .. before or text
end

-- What follows for the record from those who are noted: who it is about, until when it is kept, and a token that is no less than
-- theirs.
local function summary(all, last)
  local of, till = all[1], all[1].till
  for i = 1, #all do
    local one = all[i]
    -- guard: record-about-longest
    if not one.reads or (of.reads and one.till > of.till) then of = one end
    till, last = max(till, one.till), max(last, tonumber(one.fence) or last)
  end
  return of, till, last
end

-- Makes the key live as long as the last lease of these. Answers what Redis does.
local function live(key, all, time)
  return call('PEXPIRE', key, math.ceil((latest(all) - time) / 1000))
end

-- Notes in the record what follows from those who are noted. Answers an error, or nil. The version of readers rises with every
-- note, whoever's round it is: whoever watches it would take one that came back for one that stood still.
local function note_all(record, all, last, grant, round, watch, wrote)
  local of, till, highest = summary(all, last)
  if of.reads then round = format('%.0f', (grant and grant.round or 0) + 1) end
  return note_grant(record, format('%.0f', highest), round, watch, of.field, format('%.0f', wrote), till)
end

-- Those who stay beside `owner` when it is granted the lock, and the fields of those who do not: their leases are over, and
-- whom they kept away from it, they do not any more. Of readers that did not release, the one stays that is kept longest.
local function staying(all, owner)
  local stay, gone, kept = {}, {}, nil
  for i = 1, #all do
    local one = all[i]
    if one.lives or one.field == as_writer(owner) then
      stay[#stay + 1] = one
    -- guard: longest-reader-stays
    elseif is_reader(owner) and one.reads and (not kept or one.till > kept.till) then
      if kept then gone[#gone + 1] = kept.field end
      kept = one
    else
      gone[#gone + 1] = one.field
    end
  end
  -- guard: unreleased-reader-stays
  stay[#stay + 1] = kept
  return stay, gone
end

-- Who was lost with the key, for a reader that makes it again: other readers, of whom the record tells no more, or this owner as
-- the writer that it is. Nil where that is neither.
local function lost_with(owner, grant)
  local ends = tonumber(grant.ends)
  if is_reader(grant.owner) then return {field = FORGOTTEN, reads = true, ends = ends, till = ends} end
  if grant.owner ~= as_writer(owner) then return nil end
  return {field = grant.owner, reads = false, ends = ends, till = ends, fence = grant.before}
end

-- Writes the hold, makes the key live for at least `ttl` ms, and writes the grant into the record, as for a single lock.
local function write(found, key, record, owner, count, ttl, round, fence, watch, left, before)
  local all, time = noted(key)
  if not all then return time[2] end
  local last, grant
  if fence then
    last, grant = last_fence(record)
    if not last then return grant[2] end
  end
  local mine = all[owner] or {}
  local stay, gone = all, {}
  if found ~= 'mine' then stay, gone = staying(all, owner) end
  mine.field, mine.reads = owner, is_reader(owner)
  -- guard: rw-ttl-kept
  local ends = time + max(ttl, left or 0) * 1000
  mine.ends = max(mine.ends or ends, ends)
  mine.till = mine.ends + (watch - ttl) * 1000
  if not all[owner] then stay[#stay + 1] = mine end
  local words = {owner, hold(count, round, mine.ends, mine.till, fence or mine.fence, before or mine.before)}
  local lost = #all == 0 and grant and mine.reads and lost_with(owner, grant)
  if lost and lost.ends > time then
    words[3], words[4] = lost.field, hold('1', '0', lost.ends, lost.till, lost.fence)
    stay[#stay + 1] = lost
  end
  local done = call('HSET', key, unpack(words))
  if not failed(done) then done = live(key, stay, time) end
  local err = failed(done)
  if not err and fence then
    local longest = math.ceil((mine.till - time) / 1000)
    if #stay > 1 and grant then longest = max(longest, grant.watch) end
    local wrote = wrote_last(last, grant)
    if not mine.reads then wrote = max(wrote, fence) end
    err = note_all(record, stay, max(last, fence), grant, round, longest, wrote)
  end
  if err then
    if #all == 0 then call('DEL', key) elseif found == 'absent' then call('HDEL', key, owner) end
    return err
  end
  -- guard: rw-gone-taken-out
  if #gone > 0 then call('HDEL', key, unpack(gone)) end
end

-- Leaves the lock, which is `owner`'s, as for a single lock. The record is about the others then, or released.
local function leave(key, record, owner, count, round, fence, before)
  local all, time = noted(key)
  local mine, others, is_held = all[owner], {}, false
  if count ~= '0' then
    local done = call('HSET', key, owner, hold(count, round, mine.ends, mine.till, fence, mine.before))
    return failed(done) and refused(done) or GRANTED
  end
  for i = 1, #all do
    if all[i] ~= mine then
      others[#others + 1] = all[i]
      is_held = is_held or all[i].lives
    end
  end
  local done
  if is_held then done = call('HDEL', key, owner) else done = call('DEL', key) end
  if failed(done) then return refused(done) end
  if is_held then live(key, others, time) end
  if not guarded or not fence then return GRANTED end
  local last, grant = last_fence(record)
  if not last then return GRANTED end
  local wrote = wrote_last(last, grant)
  if #others > 0 then
    if not grant then return GRANTED end
    wrote = max(wrote, tonumber(before) or not before and fence or 0)
    note_all(record, others, last, grant, grant.round, grant.watch, wrote)
  elseif not before then
    note_release(record, format('%.0f', max(last, fence)))
  elseif is_as_before(owner, fence, before, wrote, grant) then
    undo_grant(record, before)
  else
    -- guard: record-of-last-writer
    undo_grant(record, wrote > 0 and format('%.0f', wrote) or '') -- others left since
  end
  return GRANTED
end

-- The same where it is not among the holders. Readers that are not known may go by the record. `token` is that of an owner
-- that is not asked, if it is one: it is not let in again.
local function leave_gone(record, owner, round, token)
  if not guarded then return end
  local last, grant = last_fence(record)
  if not last then return end
  -- guard: rw-gone-token
  token = token and #token > 1 and tonumber(token) or 0
  if not grant then
    if last < token then note_release(record, format('%.0f', token)) end
    return
  end
  local wrote, of = wrote_last(last, grant), grant.owner
  if is_reader(owner) then
    -- guard: rw-token-known
    if wrote >= token then return end
    wrote = token
  else
    local is_its_own = of == owner and tonumber(grant.round) <= tonumber(round)
    if not is_its_own and last >= token then return end
    if not is_its_own or last == wrote then return note_release(record, format('%.0f', max(last, token))) end
    of = as_reader(owner) -- it reads still, it may be
  end
  note_grant(record, format('%.0f', max(last, token)), grant.round, grant.watch, of, format('%.0f', wrote), tonumber(grant.ends))
end

-- Gives what is `from`'s to `to`, but not while it both reads and writes: nobody else may have one of the two. Answers that it is
-- `to`'s; or nil, and the reply to give.
local function give(key, from, to)
  local all, time = noted(key)
  local its, other = all[from], all[is_reader(from) and as_writer(from) or as_reader(from)]
  if other and other.lives then return nil, shown(other, other.ends, time) end
  local done = call('HSET', key, to, hold(its.count, its.round, its.ends, its.till, its.fence, its.before))
  if failed(done) then return nil, refused(done) end
  call('HDEL', key, from)
  return 'mine'
end
