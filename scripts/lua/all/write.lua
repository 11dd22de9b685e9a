-- write: what the verbs of a lock over several names share. On a master they are reentrant locks, one a name, of one owner,
-- with one token, and each with a record and a queue of its own: to a lock of one of the names it is just another holder. The
-- verbs of a single lock decide about each name, by their own rules; but nothing is written before all names may be, for
-- what they would write is noted here. So the files of `verbs` stand behind this one, and use its `write`.
-- KEYS     of each name the lock, its record and its queue, as the verbs of this folder say
-- ARGV     how many names there are; then as the files of the verbs say
-- Replies  one for all names, as replies.lua has them
-- Again    as the files of the verbs say

-- What is to be written: the arguments of `write`, for each name.
local pending
-- guard: arguments-of-write
local FOUND, KEY, RECORD, FENCE, ARGUMENTS = 1, 2, 3, 8, 11

local write_now = write

-- Notes what is to be written.
local function write(...)
  pending[#pending + 1] = {...}
end

-- The names that were free are so again, and their records as they were.
local function take_back(written)
  for i = 1, written do
    local one = pending[i]
    if one[FOUND] == 'absent' then
      call('DEL', one[KEY])
      if one[FENCE] then undo_grant(one[RECORD], one.text or '') end
    end
  end
end

-- Writes all that is pending, each with the highest token of all names, so that there is one, and it is above the last of each
-- name. Answers the token, granted where there is none, or refused: what was free before stays free then.
local function write_all()
  local highest
  for i = 1, #pending do
    local fence = pending[i][FENCE]
    -- guard: highest-token
    if fence and tonumber(fence) > (tonumber(highest) or 0) then highest = fence end
  end
  for i = 1, #pending do
    local one = pending[i]
    one[FENCE] = highest
    -- guard: record-before
    one.text = highest and call('GET', one[RECORD])
    local err = write_now(unpack(one, 1, ARGUMENTS))
    if err then
      -- guard: take-back-written
      take_back(i - 1)
      return {'refused', err}
    end
  end
  return tonumber(highest) or GRANTED
end

-- Asks a verb about each name, and writes all where none is refused. Answers the token or granted; or the first other reply,
-- and which name it is about.
local function all_or_none(names, verb, ...)
  pending = {}
  for i = 1, #names do
    local reply = verb(names[i].key, names[i].record, ...)
    if reply == ABSENT or type(reply) == 'table' then return reply, i end
  end
  return write_all()
end

-- The same for verbs that tell no token.
local function without_token(reply)
  if reply == ABSENT or type(reply) == 'table' then return reply end
  return GRANTED
end

-- What was done to each name, in one reply: granted where all are. What was refused for one has to be done again.
local function together(reply, other)
  if reply == GRANTED or (type(other) == 'table' and other[1] == 'refused') then return other end
  return reply
end
