-- holders: who holds a read-write lock: many readers, or one writer, which may read, too. A HASH with a field for each:
--   'r:OWNER' or 'w:OWNER' -> 'COUNT,ROUND,ENDS,TILL,FENCE'         the hold count, the round that wrote it, when its lease
--                                                                ends, until when it is kept from others if it is never
--                                                                released (us), and the token of its grant, if it has one
--   'r:OWNER' or 'w:OWNER' -> 'COUNT,ROUND,ENDS,TILL,FENCE,BEFORE'  the same, and what the record was before the grant
-- So each lease ends by itself, whatever becomes of the others'; the key lives as long as the longest. An owner is an
-- argument in the form of its field, and a reply without what it begins with.
-- KEYS     the lock
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    writes nothing

-- Nobody else is let in to read where so many hold the lock: whatever is done to it looks at each.
local MOST_HOLDERS = 1000

-- Beside those who hold it one may be over, one not known, and one a writer that reads, too.
local MOST_FIELDS = MOST_HOLDERS + 3

-- In whose name the lock is kept from writers for readers of whom nothing is known but the record.
local FORGOTTEN = 'r:forgotten'

local NO_LOCK = {'refused', 'WRONGTYPE the hash at this key is not a read-write lock'}

local HOLD, HOLDER = '^(%d+),(%d+),(%d+),(%d+),(%d*)(.*)$', '^([rw]):(.*)$'

-- How much is at `key`: 0 where there is nothing.
local function size(key)
  return call('HLEN', key)
end

local function is_reader(owner)
  return string.sub(owner, 1, 2) == 'r:'
end

-- The name of the same owner as a writer, and as a reader.
local function as_writer(owner)
  return 'w' .. string.sub(owner, 2)
end

local function as_reader(owner)
  return 'r' .. string.sub(owner, 2)
end

-- All who are noted at `key`, of which it is known that it is not too large: each by its field, too, and what time it is; or nil, and
-- the reply to give. Those whose lease is over are among them, for as long as they keep others away, or nobody came after
-- them.
local function noted(key)
  local time = time_here()
  if failed(time) then return nil, refused(time) end
  local hash = call('HGETALL', key)
  if failed(hash) then return nil, refused(hash) end
  local all = {}
  for i = 1, #hash, 2 do
    local mode, owner = match(hash[i], HOLDER)
    local count, round, ends, till, fence, tail = match(hash[i + 1], HOLD)
    if not mode or not count then return nil, NO_LOCK end
    local one = {field = hash[i], reads = mode == 'r', owner = owner, count = count, round = round, ends = tonumber(ends),
      till = tonumber(till), fence = fence ~= '' and fence, before = tail ~= '' and string.sub(tail, 2)}
    one.lives = time < one.ends
    all[#all + 1], all[hash[i]] = one, one
  end
  return all, time
end

-- The same, where nobody has looked at it yet.
local function holders(key)
  local fields = size(key)
  if failed(fields) then return nil, refused(fields) end
  if fields > MOST_FIELDS then return nil, NO_LOCK end
  return noted(key)
end

-- When the last lease of these ends.
local function latest(all)
  local ends = all[1].ends
  for i = 2, #all do ends = max(ends, all[i].ends) end
  return ends
end

-- What is said of one that holds the lock, whose lease ends at `ends` or later.
local function shown(its, ends, time)
  return {'held', its.owner, its.count, math.ceil((ends - time) / 1000)}
end

-- Says that these hold the lock, by the writer, or by the reader whose name comes first, so that all masters name the same one,
-- and which one it is. The TTL is that of the longest lease; for `owner`, if that would read, of the one that is named, the writer:
-- no other is in its way. Nil where all leases are over.
local function who(all, time, owner)
  local its
  for i = 1, #all do
    local one = all[i]
    local comes_first = not its or not one.reads or one.owner < its.owner
    if one.lives and comes_first then its = one end
  end
  if not its then return nil end
  local ends = owner and is_reader(owner) and its.ends or latest(all)
  return shown(its, ends, time), its
end

-- Who holds the lock at `key`: `asked`, or anybody where that is nothing. Nil where that is nobody.
local function held(key, _, asked)
  local all, time = holders(key)
  if not all then return time end
  local reply, its
  if asked == '' then
    reply, its = who(all, time)
  elseif all[asked] and all[asked].lives then
    its = all[asked]
    reply = shown(its, its.ends, time)
  end
  if reply and its.fence then reply.version = its.fence .. ':' .. its.round end
  return reply
end

-- As for a single lock; who holds it is told with its own version.
local to_watch_record = to_watch
local function to_watch(reply, record, seen)
  reply = to_watch_record(reply, record, seen)
  if reply.version then reply[6] = reply.version end
  return reply
end

-- Whether these keep `owner` away, which is none of them.
local function keep_away(all, owner)
  local others = 0
  for i = 1, #all do
    local one = all[i]
    local is_in_its_way = not is_reader(owner) or (not one.reads and one.field ~= as_writer(owner))
    if one.lives and is_in_its_way then return true end
    if one.lives then others = others + 1 end
  end
  return others >= MOST_HOLDERS
end

-- What is at `key` for `owner`, as for a reentrant lock: absent, where it may be taken. What is its own is so though its lease
-- is over: nobody came after it.
local function look(key, record, owner, round)
  local all, time = holders(key)
  if not all then return nil, time end
  local mine = all[owner]
  if mine then
    if tonumber(mine.round) > tonumber(round) then return nil, {'stale', mine.round} end
    return 'mine', nil, mine.fence, mine.before
  end
  if keep_away(all, owner) then return nil, (who(all, time, owner)) end
  return 'absent', ABSENT
end
