-- name: what a master knows of a name, which is a HASH: docs/PROTOCOL.md lists its fields. The value of
-- an entry is UNTIL TOKEN ROUND HOLDS KEPT: others stay away until (us), which was to be for so long
-- (ms). Without holds it is a reader's word that it has left.
local ENTRY = '^(%d+) (%d+) (%d+) (%d+) (%d+)$'
local NO_LOCK = 'WRONGTYPE what is at this key is not a lock'

-- How long (ms) a name with an entry is kept.
local KEPT_HELD = '2592000000'

-- How many fields a command names at most: Lua has room for some 8,000 arguments.
local MOST_AT_ONCE = 3000

local function entry_of(field, text, owner)
  if not text then return nil end
  local ends, token, round, holds, kept = match(text, ENTRY)
  owner = owner or match(field, '^r:(.*)$')
  if not ends or not owner then refuse(NO_LOCK) end
  return {field = field, owner = owner, ends = tonumber(ends), token = tonumber(token),
    round = tonumber(round), holds = holds, kept = kept, version = owner .. ':' .. round}
end

-- What a name says to an operation of this owner. `last`, or what a kind puts in its place, is what a
-- heal has to be above: `judged` is its field, `raises` the one that its own lease raises, and `floor`
-- another bound.
local function read(k, slot, owner)
  local asked, field = slot, 'x'
  local said
  if fields_of then
    asked, field = kind_of(slot), fields_of(slot, owner)
    said = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', fields_of(slot, owner))
  else
    said = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', 'x', 'o:x')
  end
  local kind, fence, last = said[1], tonumber(said[2] or 0), match(said[3] or '0', '^%d+')
  if not (fence and last) or (not kind and call('EXISTS', KEYS[k]) == 1) then refuse(NO_LOCK) end
  local it = {key = KEYS[k], queue = KEYS[k + 1], slot = slot, owner = owner, field = field,
    asked = asked, kind = kind, is_same = kind == asked, fence = fence, last = said[3], queued = said[4],
    judged = 'last', raises = 'last', floor = 0, gone = false, noted = false, entry = nil}
  if it.is_same then it.entry = entry_of(field, said[5], said[6]) end
  if note_more then note_more(it, said) end
  return it
end

-- Its own entry, or nil; and the reply, where a later round has overtaken this one.
local function own_entry(it, round)
  local entry = it.entry
  if not entry or entry.owner ~= it.owner then return nil end
  if entry.round > round then return nil, {'stale', entry.round} end
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

-- Whether an entry counts: no clock ends one for those who are strict.
local function lives(entry)
  if entry.holds == '0' then return false end
  if STRICT then return not find(watched, ',' .. entry.version .. ',', 1, true) end
  return (earliest or time_here()) <= entry.ends
end

-- Whether it is in the way of a grant, or of a heal with this token.
local function stands(entry, token)
  return lives(entry) or (token and entry.token >= token)
end

function obstacle(it, token)
  local entry = it.entry
  return entry and entry.owner ~= it.owner and stands(entry, token) and entry
end

-- Whether somebody who waits may get in.
local function is_open(it)
  if has_room then return has_room(it) end
  return not (it.entry and lives(it.entry))
end

-- Notes a field that is to be written.
local function note(it, field, value)
  it.noted = it.noted or {}
  it.noted[#it.noted + 1] = field
  it.noted[#it.noted + 1] = value
end

-- Notes that nobody at or below `token` heals any more, by this field, but `owner` at it, if given.
local function raise(it, field, token, owner)
  local last, whose = match(it[field] or '0', '^(%d+) ?(.*)$')
  local above = token - last
  if above < 0 or (above == 0 and (owner or whose == '')) then return end
  it[field] = format(owner and '%.0f %s' or '%.0f', token, owner)
  note(it, field, it[field])
end

-- Notes that an entry goes away, with all that is beside it.
local function drop(it, field)
  it.gone = it.gone or {}
  local gone, at = it.gone, #it.gone
  gone[at + 1], gone[at + 2], gone[at + 3] = field, 'o:' .. field, 'l:' .. field
end

-- Where the name is of another kind: the entry that keeps it so; or all that was of that kind goes.
local function change_kind(it, token)
  local entries, fields = read_all(it.key)
  local top = 0
  for i = 1, #entries do
    if stands(entries[i], token) then return entries[i] end
    top = max(top, entries[i].token)
  end
  for field, text in pairs(fields) do
    if find(field, '^last') then top = max(top, tonumber(match(text, '^%d+'))) end
    local stays = field == 'kind' or field == 'fence' or field == 'last' or field == 'queued'
    if not stays then drop(it, field) end
  end
  it.floor, it.kind = top, it.asked
  raise(it, 'last', top)
end

-- Writes what was noted. HDEL comes first: it is let in where memory is full, and what follows it too.
local function write_noted(it)
  local gone = it.gone
  for i = 1, gone and #gone or 0, MOST_AT_ONCE do
    call('HDEL', it.key, unpack(gone, i, min(i + MOST_AT_ONCE - 1, #gone)))
  end
  if it.noted then call('HSET', it.key, 'kind', it.kind or it.asked, unpack(it.noted)) end
end

local function text_of(ends, token, round, holds, kept)
  return format('%.0f %.0f %.0f %s %s', ends, token, round, holds, kept)
end

-- Writes its entry, with a new end, and the label where that is not there yet.
local function write_entry(it, ends, token, round, holds, kept, label)
  local field, text = it.field, text_of(ends, token, round, holds, kept)
  local fence = format('%.0f', max(it.fence, token))
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
  local reply = {'held', entry.owner, tonumber(entry.holds), left, entry.token, label, -1,
    entry.version, tonumber(entry.kept)}
  if tell then tell(it, reply) end
  return reply
end
