-- rw: many readers, or one writer, which may read, too. The functions without `local` are hooks.
-- Readers raise `last_read`, as writers raise `last`. A writer's heal needs a token above both; a
-- reader's only one above `last`. `readers` is the number of readers' entries. `longest` is the
-- latest end (us) of a reader, and its field.

-- How many fields a sweep looks at: more than readers leave behind meanwhile.
-- guard: sweep-size
local SWEEP = 16

function read_more(it)
  local values = call('HMGET', it.key, 'last_read', 'readers', 'longest', 'x', 'o:x')
  it.reads, it.last_read = it.slot == 'read', values[1]
  -- guard: readers-of-rw
  it.readers = it.is_same and tonumber(values[2]) or 0
  -- guard: longest-known
  it.longest = it.readers > 0 and values[3] or ''
  -- guard: rw-floor
  it.floor = it.reads and match(it.last, '^%d+') or it.last_read or '0'
  -- guard: judged-by-none
  if it.reads then it.judged = 'none' end
  -- guard: writer-of-rw
  it.writer = it.is_same and entry_of('x', values[4], values[5])
end

-- Some entries of readers, words among them.
local function some_readers(it)
  local some, readers = redis.pcall('HRANDFIELD', it.key, SWEEP, 'WITHVALUES'), {}
  for i = 1, #some, 2 do
    if find(some[i], '^r:') then readers[#readers + 1] = entry_of(some[i], some[i + 1]) end
  end
  return readers
end

local function write_longest(it, reader)
  it.longest = reader.ends .. ' ' .. reader.field
  redis.pcall('HSET', it.key, 'longest', it.longest)
  -- guard: noted-longest
  return reader
end

-- A reader that blocks a writer, or nil and all entries. Looks first at the reader in `longest`,
-- then at some readers if there are many, and only then at all. A word blocks nobody, and an
-- owner's entry as a reader does not block its own heal as a writer. What does not block is marked
-- `stays`, if it is to be kept.
local function longest_reader(it, token)
  -- guard: longest-first
  local field = not token and match(it.longest, ' (.*)$')
  -- guard: longest-entry
  local longest = field and entry_of(field, call('HGET', it.key, field))
  -- guard: longest-counts
  if longest and lives(longest) then return longest end
  -- guard: some-readers
  local some = not token and it.readers > SWEEP and some_readers(it) or {}
  -- guard: each-of-some
  for i = 1, #some do
    -- guard: some-count
    if lives(some[i]) then return write_longest(it, some[i]) end
  end
  local all = read_all(it.key)
  longest = nil
  for i = 1, #all do
    local one = all[i]
    one.stays = one.field == 'x' or one.holds == '0' or (token and one.owner == it.owner)
    local is_in_the_way = not one.stays and blocks(one, token)
    if is_in_the_way and not (longest and less(one.ends, longest.ends)) then longest = one end
  end
  if longest and not token then write_longest(it, longest) end
  return longest, all
end

-- Removes a reader's entry as a release does, or its word.
local function remove(it, one)
  drop(it, one.field)
  raise(it, 'last_read', one.token)
  if one.holds ~= '0' then it.readers = it.readers - 1 end
end

function obstacle(it, token)
  local writer = it.writer
  if writer and writer.owner ~= it.owner then
    if blocks(writer, token) then return writer end
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

-- Removes some entries and words that are over.
local function sweep(it)
  for _, one in ipairs(some_readers(it)) do
    -- guard: sweep-over
    if tonumber(one.ends) < earliest then remove(it, one) end
  end
end

function note_end(it, ends)
  if it.is_cleared then note(it, 'readers', it.readers) end
  if not it.reads then return end
  local is_new = not it.entry or it.entry.holds == '0'
  local longest = less(match(it.longest, '^%d*'), ends) and ends .. ' ' .. it.field or it.longest
  if is_new then it.readers = it.readers + 1 end
  if is_new and it.fence % SWEEP_EVERY == 1 then sweep(it) end
  note(it, 'readers', it.readers)
  note(it, 'longest', longest)
end

-- A reader that leaves writes a word, even if it had no entry. So does an undo: its grant may have
-- replaced a word.
function note_gone(it, token, round, was_here)
  if not it.reads or (it.kind and not it.is_same) then return end
  it.readers = it.readers - (was_here and 1 or 0)
  note(it, 'readers', it.readers)
  -- guard: word-token
  note(it, it.field, format('%d %s %s 0', time_here() + WORD_LIFE, token or it.last_read or '0', round))
end

-- An owner that writes and reads hands neither over: its other half would block the new owner.
function other_half(it)
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

-- A reader is refused while a writer waits that came before it, so that readers do not starve
-- writers. If others read, that writer cannot be granted the lock, so it only has to be alive. For
-- TIME_TO_ASK after a writer asked, its client must receive the number 0, which wakes nobody. After
-- that it is woken: if it lives, it asks, and takes a place again; if it does not ask, readers pass
-- it.
function turn(it, since, waited, wakes)
  if not it.reads or it.writer or (it.entry and lives(it.entry)) then return nil end
  local waiting = call('ZRANGE', it.queue, 0, -1, 'WITHSCORES')
  -- guard: turn-readers
  local is_read = it.readers > 0 and longest_reader(it)
  local alive_for = TIME_TO_ASK - abs(time_here() - tonumber(it.queued))
  since = since and bounded_since(since, waited)
  for i = 1, #waiting, 2 do
    local ticket = waiting[i]
    -- guard: rw-equal
    if since and tonumber(waiting[i + 1]) >= since then return nil end
    local name = match(ticket, '^w:(.*)$')
    local is_alive = name and is_read and alive_for > 0 and publish_wake(name, wakes, '0')
    if is_alive then return held_by_waiter(name, alive_for) end
    local reply = name and give_turn(it, ticket, name, wakes)
    if reply then return reply end
  end
end

-- Wakes the waiters that may be granted the lock now: all readers before the first writer; if there
-- are none and nobody holds the lock, that writer.
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
      if is_read or give_turn(it, first, name, wakes) then return end
    else
      call('ZREM', it.queue, first)
      is_read = publish_wake(sub(first, 3), wakes) or is_read
    end
  end
end
