-- name: what a master knows of a name, which is a HASH: docs/PROTOCOL.md lists its fields. The value of
-- an entry is UNTIL TOKEN ROUND HOLDS KEPT: others stay away until (us), which was to be for so long
-- (ms). Without holds it is a reader's word that it has left.
local ENTRY = '^(%d+) (%d+) (%d+) (%d+) (%d+)$'
local NO_LOCK = 'WRONGTYPE what is at this key is not a lock'

-- How many fields a command names at most: Lua has room for some 8,000 arguments.
-- guard: most-at-once
local MOST_AT_ONCE = 3000

local function entry_of(field, text, owner)
  if not text then return nil end
  local ends, token, round, holds, kept = match(text, ENTRY)
  owner = owner or match(field, '^r:(.*)$')
  if not ends or not owner then refuse(NO_LOCK) end
  return {field = field, owner = owner, ends = ends, token = token, round = round, holds = holds, kept = kept}
end

-- What a name says to an operation of this owner. `last`, or what a kind puts in its place, is what a
-- heal has to be above: `judged` is its field, `raises` the one that its own lease raises, and `floor`
-- another bound.
local function read(k, slot, owner)
  local asked, field, said = slot, 'x', nil
  if fields_of then
    asked, field = kind_of(slot), fields_of(slot, owner)
    said = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', fields_of(slot, owner))
  else
    said = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', 'x', 'o:x')
  end
  -- guard: last-none
  local kind, fence, last = said[1], said[2] or '0', said[3] or '0'
  local is_odd = not find(fence, '^%d+$') or not find(last, '^%d')
  if is_odd or (not kind and call('EXISTS', KEYS[k]) == 1) then refuse(NO_LOCK) end
  local it = {key = KEYS[k], queue = KEYS[k + 1], slot = slot, owner = owner, field = field, asked = asked,
    kind = kind, is_same = kind == asked, fence = fence, last = last, queued = said[4], judged = 'last',
    raises = 'last', floor = '0'}
  if it.is_same then it.entry = entry_of(field, said[5], said[6]) end
  if note_more then note_more(it, said) end
  return it
end

-- Its own entry, or nil; and the reply, where a later round has overtaken this one.
local function own_entry(it, round)
  local entry = it.entry
  if not entry or entry.owner ~= it.owner then return nil end
  if round and less(round, entry.round) then return nil, {'stale', tonumber(entry.round)} end
  return entry
end

-- All entries, and all fields.
local function read_all(key)
  local list, fields, entries = call('HGETALL', key), {}, {}
  for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
  for i = 1, #list, 2 do
    local field = list[i]
    local is_entry = field == 'x' or find(field, '^[rp]:')
    if is_entry then entries[#entries + 1] = entry_of(field, list[i + 1], fields['o:' .. field]) end
  end
  return entries, fields
end

local function version_of(entry)
  return entry.version or entry.owner .. ':' .. entry.round
end

-- Whether an entry counts: no clock ends one for those who are strict.
local function lives(entry)
  if entry.holds == '0' then return false end
  if STRICT then return not find(watched, ',' .. version_of(entry) .. ',', 1, true) end
  return (earliest or time_here()) <= tonumber(entry.ends)
end

-- Whether it is in the way of a grant, or of a heal with this token.
local function stands(entry, token)
  return lives(entry) or (token and not less(entry.token, token))
end

function obstacle(it, token)
  local entry = it.entry
  return entry and entry.owner ~= it.owner and stands(entry, token) and entry
end

-- Whether somebody who waits may get in.
local function is_open(it)
  if not it.is_same then return false end
  if has_room then return has_room(it) end
  return not (it.entry and lives(it.entry))
end

-- Notes that nobody at or below `token` heals any more, by this field, but `owner` at it, if given; so
-- `fence` rises, too.
local function raise(it, field, token, owner)
  -- guard: raise-none
  local last, whose = match(it[field] or '0', '^(%d+) ?(.*)$')
  if less(token, last) or (token == last and (owner or whose == '')) then return end
  it[field] = owner and token .. ' ' .. owner or token
  local noted = it.noted or {}
  noted[#noted + 1] = field
  noted[#noted + 1] = it[field]
  it.noted = noted
end

-- Notes that an entry goes away, with all that is beside it.
local function drop(it, field)
  it.gone = it.gone or {}
  local gone, at = it.gone, #it.gone
  gone[at + 1], gone[at + 2], gone[at + 3] = field, 'o:' .. field, 'l:' .. field
end

-- Where the name is of another kind: the entry that keeps it so; or all that was of that kind goes.
local function change_kind(it, token)
  -- guard: longest-of-kind
  local known = match(call('HGET', it.key, 'longest') or '', ' (.*)$') -- of many readers
  -- guard: longest-of-kind-entry
  local first = known and entry_of(known, call('HGET', it.key, known))
  -- guard: longest-of-kind-stands
  if first and stands(first, token) then return first end
  local entries, fields = read_all(it.key)
  local top = '0'
  for i = 1, #entries do
    if stands(entries[i], token) then return entries[i] end
    if less(top, entries[i].token) then top = entries[i].token end
  end
  for field, text in pairs(fields) do
    local last = find(field, '^last') and match(text, '^%d+')
    if last and less(top, last) then top = last end
    local stays = field == 'kind' or field == 'fence' or field == 'last' or field == 'queued'
    if not stays then drop(it, field) end
  end
  it.floor = top
  raise(it, 'last', top)
end

-- Writes what was noted. HDEL comes first: it is let in where memory is full, and what follows it too.
local function write_noted(it)
  local gone = it.gone
  for i = 1, gone and #gone or 0, MOST_AT_ONCE do
    -- guard: gone-in-parts
    call('HDEL', it.key, unpack(gone, i, min(i + MOST_AT_ONCE - 1, #gone)))
  end
  if it.noted then call('HSET', it.key, 'kind', it.kind or it.asked, unpack(it.noted)) end
end

-- Writes its entry, with a new end, and the label where that is not there yet. For those who are strict it
-- is to be watched for no shorter than before, as no lease is shortened.
local function write_entry(it, ends, token, round, holds, kept, label)
  local field, fence, old = it.field, less(it.fence, token) and token or it.fence, it.entry
  if STRICT and old and old.owner == it.owner then kept = max(kept, old.kept) end
  local text = ends .. ' ' .. token .. ' ' .. round .. ' ' .. holds .. ' ' .. kept
  if it.reads then
    call('HSET', it.key, 'kind', it.asked, 'fence', fence, field, text)
  else
    call('HSET', it.key, 'kind', it.asked, 'fence', fence, field, text, 'o:' .. field, it.owner)
  end
  if label ~= '' then call('HSET', it.key, 'l:' .. field, label) end
  if note_end then note_end(it, ends, round, kept) end
end

-- Who has the lock, as whoever is refused is told.
local function held(it, entry)
  earliest = earliest or time_here()
  local left = max(0, ceil((entry.ends - earliest) / 1000))
  local label = call('HGET', it.key, 'l:' .. entry.field) or ''
  local reply = {'held', entry.owner, tonumber(entry.holds), left, tonumber(entry.token), label, -1,
    version_of(entry), tonumber(entry.kept)}
  if tell then tell(it, reply) end
  return reply
end
