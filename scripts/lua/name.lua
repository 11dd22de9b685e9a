-- name: reads and writes what a master knows of a name, which is a HASH. docs/PROTOCOL.md lists its
-- fields, and says in H4 to H7 who may heal, which `raise`, `judged` and `floor` are for. An entry
-- is UNTIL TOKEN ROUND HOLDS: others stay away until the moment UNTIL (us). With 0 holds it is a
-- reader's word: it says that the reader has left.
-- `function obstacle` assigns a local of hooks.lua.
local ENTRY = '^(%d+) (%d+) (%d+) (%d+)$'
local NO_LOCK = 'WRONGTYPE what is at this key is not a lock'

-- How many fields one command names: Lua has room for some 8,000 arguments.
-- guard: most-at-once
local MOST_AT_ONCE = 3000

local function entry_of(field, text, owner)
  if not text then return nil end
  local ends, token, round, holds = match(text, ENTRY)
  owner = owner or match(field, '^r:(.*)$')
  if not ends or not owner then refuse(NO_LOCK) end
  return {field = field, owner = owner, ends = ends, token = token, round = round, holds = holds}
end

-- Reads what a name means to an operation of this owner. `it.entry` is the entry of the slot, of
-- whichever owner. `it.raises` is the field that is raised when this owner's lease is over. A heal
-- needs a token above the one in the field `it.judged`, and above `it.floor`.
local function read(k, slot, owner)
  local asked, field, owner_field, raises = fields_of(slot, owner)
  if not asked then refuse('ERR no such slot: %s', slot) end
  local values = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', field, owner_field, raises)
  -- guard: last-none
  local kind, fence, last = values[1], values[2] or '0', values[3] or '0'
  local is_odd = not find(fence, '^%d+$') or not find(last, '^%d')
  -- What hot.lua leaves of a lease that was released: a `fence`, which is also the `last`.
  local is_released = values[2] and not kind
  if is_released then last = fence end
  if is_odd or (not kind and call('HLEN', KEYS[k]) ~= (is_released and 1 or 0)) then refuse(NO_LOCK) end
  local it = {key = KEYS[k], queue = KEYS[k + 1], slot = slot, owner = owner, field = field, asked = asked,
    kind = kind, is_same = kind == asked, fence = fence, queued = values[4], judged = raises, raises = raises,
    is_released = is_released, floor = '0', gone = {}, noted = {}}
  it[raises] = values[7]
  it.last = last
  if it.is_same then it.entry = entry_of(field, values[5], values[6]) end
  if read_more then read_more(it) end
  return it
end

-- This owner's entry, or nil. If a later round of it came first: nil, and the reply.
local function own_entry(it, round)
  local entry = it.entry
  if not entry or entry.owner ~= it.owner then return nil end
  if round and less(round, entry.round) then return nil, {'stale', tonumber(entry.round)} end
  return entry
end

-- All entries of a hash, and all its fields.
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

-- Whether an entry counts.
local function lives(entry)
  return entry.holds ~= '0' and (earliest or time_here()) <= tonumber(entry.ends)
end

-- Whether an entry blocks a grant, or a heal with this token.
local function blocks(entry, token)
  return lives(entry) or (token and not less(entry.token, token))
end

function obstacle(it, token)
  local entry = it.entry
  return entry and entry.owner ~= it.owner and blocks(entry, token) and entry
end

-- Whether a waiter may be granted the name.
local function is_open(it)
  if not it.is_same then return false end
  if has_room then return has_room(it) end
  return not (it.entry and lives(it.entry))
end

-- Notes a field to be written.
local function note(it, field, value)
  local noted, at = it.noted, #it.noted
  noted[at + 1], noted[at + 2] = field, value
end

-- Raises `field` (`last`, ...) to `token`: from now on no lease at or below it heals. If `owner` is
-- given, that owner still may, at exactly `token`. Callers raise `fence` where that has to rise,
-- too.
local function raise(it, field, token, owner)
  local last, whose = match(it[field] or '0', '^(%d+) ?(.*)$')
  if less(token, last) or (token == last and (owner or whose == '')) then return end
  it[field] = owner and token .. ' ' .. owner or token
  note(it, field, it[field])
end

-- Notes that an entry is to be removed, with its owner and its label.
local function drop(it, field)
  local gone, at = it.gone, #it.gone
  gone[at + 1], gone[at + 2], gone[at + 3] = field, 'o:' .. field, 'l:' .. field
end

-- For a name of another kind: returns an entry that still blocks; if there is none, drops all
-- fields of that kind.
local function change_kind(it, token)
  local entries, fields = read_all(it.key)
  local top = '0'
  for i = 1, #entries do
    if blocks(entries[i], token) then return entries[i] end
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

-- Removes the dropped fields. This comes before all other writes: Redis runs HDEL even if memory is
-- full, and after it the other writes of the same script.
local function delete_noted(it)
  for i = 1, #it.gone, MOST_AT_ONCE do
    -- guard: gone-in-parts
    call('HDEL', it.key, unpack(it.gone, i, min(i + MOST_AT_ONCE - 1, #it.gone)))
  end
end

local function write_noted(it)
  delete_noted(it)
  -- guard: noted-any
  if not it.noted[1] then return end
  if it.is_released then note(it, 'last', it.last) end
  call('HSET', it.key, 'kind', it.kind or it.asked, unpack(it.noted))
end

-- Writes this owner's entry, with a new end, and the label unless that is ''.
local function put(it, ends, token, round, holds, label)
  local field, fence = it.field, less(it.fence, token) and token or it.fence
  if not it.reads then note(it, 'o:' .. field, it.owner) end
  if label ~= '' then note(it, 'l:' .. field, label) end
  if it.is_released then note(it, 'last', it.last) end
  if note_end then note_end(it, ends) end
  local text = ends .. ' ' .. token .. ' ' .. round .. ' ' .. holds
  delete_noted(it)
  call('HSET', it.key, 'kind', it.asked, 'fence', fence, field, text, unpack(it.noted))
end

-- What a reply says about an entry: owner, holds, how long (ms) it lives, token and label; and then
-- `more`.
local function description_of(entry, label, more)
  earliest = earliest or time_here()
  local left = max(0, ceil((entry.ends - earliest) / 1000))
  return entry.owner, tonumber(entry.holds), left, tonumber(entry.token), label or '', more
end

-- The refusal because of this entry. Its 7th item is for the place in the queue.
local function held(it, entry)
  local reply = {'held', description_of(entry, call('HGET', it.key, 'l:' .. entry.field), -1)}
  if add_to_held then add_to_held(it, reply) end
  return reply
end
