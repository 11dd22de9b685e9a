-- rw: many readers, or one writer, which may read, too. `last_read` is to writers what `last` is:
-- readers raise it, and are not judged by it. `readers` counts their entries, `longest` has the
-- latest end (us) of a reader and its field, and `read_by`, for those who are strict, the version
-- that all readers have, that of the last one that wrote, and for how long (ms) to watch it.

-- One of SWEEP_EVERY grants to readers removes entries and words that are over, of so many fields:
-- more than readers leave behind meanwhile.
-- guard: sweep-size
local SWEEP = 16

function note_more(it)
  local said = call('HMGET', it.key, 'last_read', 'readers', 'longest', 'read_by', 'x', 'o:x')
  it.reads, it.last_read, it.read_by = it.slot == 'read', said[1], said[4] or ''
  -- guard: readers-of-rw
  it.readers = it.is_same and tonumber(said[2]) or 0
  -- guard: longest-known
  it.longest = it.readers > 0 and said[3] or ''
  -- guard: rw-floor
  it.floor = it.reads and match(it.last, '^%d+') or it.last_read or '0'
  -- guard: judged-by-none
  if it.reads then it.judged = 'none' end
  -- guard: writer-of-rw
  it.writer = it.is_same and entry_of('x', said[5], said[6])
end

local function reader_counts(it, reader, token)
  -- guard: read-by-strict
  if STRICT and it.read_by ~= '' then reader.version, reader.kept = match(it.read_by, '^(.*) (%d+)$') end
  return stands(reader, token)
end

-- Some entries of readers, or words.
local function some_readers(it)
  local some, readers = redis.pcall('HRANDFIELD', it.key, SWEEP, 'WITHVALUES'), {}
  for i = 1, #some, 2 do
    if find(some[i], '^r:') then readers[#readers + 1] = entry_of(some[i], some[i + 1]) end
  end
  return readers
end

local function note_longest(it, reader)
  it.longest = reader.ends .. ' ' .. reader.field
  redis.pcall('HSET', it.key, 'longest', it.longest)
  -- guard: noted-longest
  return reader
end

-- A reader that is in the way of a writer: the one with the latest end, or one of some, where that
-- one is gone and many are there; and, where none of these is, all entries. A word is in nobody's
-- way, and a writer's own entry as a reader not in its heal's.
local function longest_reader(it, token)
  -- guard: longest-first
  local field = not token and match(it.longest, ' (.*)$')
  -- guard: longest-entry
  local longest = field and entry_of(field, call('HGET', it.key, field))
  -- guard: longest-counts
  if longest and reader_counts(it, longest) then return longest end
  -- guard: some-readers
  local some = not token and it.readers > SWEEP and some_readers(it) or {}
  -- guard: each-of-some
  for i = 1, #some do
    -- guard: some-count
    if reader_counts(it, some[i]) then return note_longest(it, some[i]) end
  end
  local all = read_all(it.key)
  longest = nil
  for i = 1, #all do
    local one = all[i]
    one.stays = one.field == 'x' or one.holds == '0' or (token and one.owner == it.owner)
    local is_in_the_way = not one.stays and reader_counts(it, one, token)
    if is_in_the_way and not (longest and less(one.ends, longest.ends)) then longest = one end
  end
  if longest and not token then note_longest(it, longest) end
  return longest, all
end

-- A reader's entry, or its word, goes as if it had been released.
local function remove(it, one)
  drop(it, one.field)
  raise(it, 'last_read', one.token)
  if one.holds ~= '0' then it.readers = it.readers - 1 end
end

function obstacle(it, token)
  local writer = it.writer
  if writer and writer.owner ~= it.owner then
    if stands(writer, token) then return writer end
    drop(it, 'x')
    raise(it, 'last', writer.token, writer.owner)
    it.writer = nil
  end
  if it.reads or it.longest == '' then return nil end
  local reader, all = longest_reader(it, token)
  if reader then return reader end
  for i = 1, #all do
    if not all[i].stays then remove(it, all[i]) end
  end
  it.is_cleared = true
end

-- Some of what is over goes; of the strict, words only.
local function sweep(it)
  local some = some_readers(it)
  for i = 1, #some do
    local one = some[i]
    -- guard: sweep-over
    if tonumber(one.ends) < earliest and (one.holds == '0' or not STRICT) then remove(it, one) end
  end
end

function note_end(it, ends, round, kept)
  if it.is_cleared then note(it, 'readers', it.readers) end
  if not it.reads then return end
  local is_new = not it.entry or it.entry.holds == '0'
  local longest = less(match(it.longest, '^%d*'), ends) and ends .. ' ' .. it.field or it.longest
  if is_new then it.readers = it.readers + 1 end
  if is_new and it.fence % SWEEP_EVERY == 1 then sweep(it) end
  note(it, 'readers', it.readers)
  note(it, 'longest', longest)
  if STRICT then
    -- guard: no-others
    local others = it.readers > 1 and match(it.read_by, ' (%d+)$') or 0
    note(it, 'read_by', format('%s:%s %d', it.owner, round, max(kept, others)))
  end
end

-- A reader leaves a word, also where it was not found; so does an undo, for its grant may have
-- taken the place of one.
function note_gone(it, token, round, was_here)
  if not it.reads or (it.kind and not it.is_same) then return end
  it.readers = it.readers - (was_here and 1 or 0)
  note(it, 'readers', it.readers)
  -- guard: word-token
  note(it, it.field, format('%d %s %s 0 0', time_here() + WORD, token or it.last_read or '0', round))
end

-- Who writes and reads gives neither away: the other half would be in the way of the new owner.
function beside(it)
  if it.reads then return it.writer and lives(it.writer) and it.writer end
  -- guard: beside-readers
  return it.readers > 0 and longest_reader(it)
end

function is_left(it)
  return it.readers > 0 or (it.reads and it.writer)
end

function has_room(it)
  return it.is_same
end

-- Readers are let in behind a writer that came before them and waits, so that they do not starve
-- it, whether others read or nobody. Where others read, one that asked just now has to hear the
-- number 0, which is nobody's; later it is called: one that lives asks, and takes a place again,
-- and one that stands still is passed over.
function turn(it, since, waited, wakes)
  if not it.reads or it.writer or (it.entry and lives(it.entry)) then return nil end
  local waiting = call('ZRANGE', it.queue, 0, -1, 'WITHSCORES')
  -- guard: turn-readers
  local is_read = it.readers > 0 and longest_reader(it)
  local believed_for = TIME_TO_ASK - abs(time_here() - tonumber(it.queued))
  since = since and believed(since, waited)
  for i = 1, #waiting, 2 do
    local ticket = waiting[i]
    -- guard: rw-equal
    if since and tonumber(waiting[i + 1]) >= since then return nil end
    local name = match(ticket, '^w:(.*)$')
    local is_believed = name and is_read and believed_for > 0
    if is_believed and hears((gsub(name, '%d+$', '0')), wakes) then return behind(name, believed_for) end
    local reply = name and its_turn(it, ticket, name, wakes)
    if reply then return reply end
  end
end

-- Calls whoever may have the lock now: the writer that is first in the queue where nobody holds it,
-- or the readers before the first writer.
function wake(it, wakes)
  local writer = it.reads and it.writer or it.entry
  if writer and lives(writer) then return end
  -- guard: wake-readers
  local is_read = it.readers > 0 and longest_reader(it)
  while true do
    -- guard: rw-first
    local first = call('ZRANGE', it.queue, 0, 0)[1]
    if not first then return call('HDEL', it.key, 'queued') end
    local name = match(first, '^w:(.*)$')
    if name then
      if is_read or its_turn(it, first, name, wakes) then return end
    else
      call('ZREM', it.queue, first)
      is_read = hears(sub(first, 3), wakes) or is_read
    end
  end
end
