-- Quorate's protocol 2: fair. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local call, format, match, find = redis.call, string.format, string.match, string.find
local sub, gsub = string.sub, string.gsub
local abs, max, min, ceil = math.abs, math.max, math.min, math.ceil
local KEYS, ARGV = KEYS, ARGV
local RECORD, STAMP, VOTES_FROM = ARGV[1], ARGV[2], tonumber(ARGV[3])
local KEY_TTL_FREE = ARGV[4]
local OLDEST, NEWEST = 2000000, 500000
local GRANTED, ABSENT = 1, 0
local KEY_TTL_HELD = '2592000000'
local replies, k, a = {false}, 1, 5
local now, forgot -- the time here (us), and whether the record is another one; nil before time_here()
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function time_here()
  if not now then
    local time = call('TIME')
    now, forgot = time[1] * 1000000 + time[2], call('HGET', RECORD, 'stamp') ~= STAMP
  end
  return now
end
local trusts, earliest, latest
local WHOLE = '^[1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d*$'
local function no_vote(trusted, round, kept, holds, token)
  local all = trusted .. ' ' .. round .. ' ' .. kept .. ' ' .. holds .. ' ' .. token
  if not find(all, WHOLE) then return 'ERR an argument is no whole number: ' .. all end
  if #kept > 10 or #round > 15 then
    return 'ERR kept has 10 digits at most, and a round 15: ' .. kept .. ', ' .. round
  end
  local time = time_here()
  trusts = tonumber(trusted)
  earliest, latest = min(time, trusts), max(time, trusts)
  if forgot then return 'FORGOT this master restarted, or lost keys, since this connection was opened' end
  local ahead = trusts - time
  if ahead > NEWEST or -ahead > OLDEST then
    if trusted == '1' then return 'NOTIME too few masters answer to tell the time, or their clocks differ' end
    return format('CLOCK the time that the client trusts is %.3f s from the time here', ahead / 1000000)
  end
  local left = VOTES_FROM - earliest
  return left > 0 and format('QUARANTINE %d ms left', ceil(left / 1000))
end
local full
local function is_full()
  if full == nil then
    local reply = redis.pcall('ZADD', KEYS[2], 'XX', '0', '')
    full = type(reply) == 'table' and find(reply.err, '^OOM') and reply.err
  end
  return full
end
if #KEYS > 2 then is_full() end
local function fields_of(slot)
  return slot, 'x', 'o:x', 'last'
end
return (function()
local function refuse(...)
  error({'refused', format(...)})
end
local function check_token(token)
  if less('9007199254740991', token) then refuse('ERR a token is 9007199254740991 at most, not %s', token) end
end
local function check_vote(trusted, round, kept, holds, token)
  local why = no_vote(trusted, round, kept, holds or '1', token or '1')
  if why then error({'refused', why}) end
  if token then check_token(token) end
end
local read_more -- (it): reads more fields into `it`
local obstacle -- (it, token): the entry that blocks a grant, or a heal with this token; drops what is over
local turn -- (it, since, waited, wakes): the refusal if a waiter goes first, though nothing blocks a grant
local note_end -- (it, ends): for an entry with a new end
local note_gone -- (it, token, round, was_here): for an entry that is removed; an undo has no token
local is_left -- (it): whether any entry is left; nil: this owner's was the only one
local has_room -- (it): whether a waiter may be granted it; nil: if no entry counts
local other_half -- (it): another entry of this owner, which forbids a transfer; nil: there is none
local wake -- (it, wakes): wakes the next waiter
local add_to_held -- (it, reply): adds items to a `held` reply
local ENTRY = '^(%d+) (%d+) (%d+) (%d+)$'
local NO_LOCK = 'WRONGTYPE what is at this key is not a lock'
local MOST_AT_ONCE = 3000
local function entry_of(field, text, owner)
  if not text then return nil end
  local ends, token, round, holds = match(text, ENTRY)
  owner = owner or match(field, '^r:(.*)$')
  if not ends or not owner then refuse(NO_LOCK) end
  return {field = field, owner = owner, ends = ends, token = token, round = round, holds = holds}
end
local function read(k, slot, owner)
  local asked, field, owner_field, raises = fields_of(slot, owner)
  if not asked then refuse('ERR no such slot: %s', slot) end
  local values = call('HMGET', KEYS[k], 'kind', 'fence', 'last', 'queued', field, owner_field, raises)
  local kind, fence, last = values[1], values[2] or '0', values[3] or '0'
  local is_odd = not find(fence, '^%d+$') or not find(last, '^%d')
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
local function own_entry(it, round)
  local entry = it.entry
  if not entry or entry.owner ~= it.owner then return nil end
  if round and less(round, entry.round) then return nil, {'stale', tonumber(entry.round)} end
  return entry
end
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
local function lives(entry)
  return entry.holds ~= '0' and (earliest or time_here()) <= tonumber(entry.ends)
end
local function blocks(entry, token)
  return lives(entry) or (token and not less(entry.token, token))
end
function obstacle(it, token)
  local entry = it.entry
  return entry and entry.owner ~= it.owner and blocks(entry, token) and entry
end
local function is_open(it)
  if not it.is_same then return false end
  if has_room then return has_room(it) end
  return not (it.entry and lives(it.entry))
end
local function note(it, field, value)
  local noted, at = it.noted, #it.noted
  noted[at + 1], noted[at + 2] = field, value
end
local function raise(it, field, token, owner)
  local last, whose = match(it[field] or '0', '^(%d+) ?(.*)$')
  if less(token, last) or (token == last and (owner or whose == '')) then return end
  it[field] = owner and token .. ' ' .. owner or token
  note(it, field, it[field])
end
local function drop(it, field)
  local gone, at = it.gone, #it.gone
  gone[at + 1], gone[at + 2], gone[at + 3] = field, 'o:' .. field, 'l:' .. field
end
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
local function delete_noted(it)
  for i = 1, #it.gone, MOST_AT_ONCE do
    call('HDEL', it.key, unpack(it.gone, i, min(i + MOST_AT_ONCE - 1, #it.gone)))
  end
end
local function write_noted(it)
  delete_noted(it)
  if not it.noted[1] then return end
  if it.is_released then note(it, 'last', it.last) end
  call('HSET', it.key, 'kind', it.kind or it.asked, unpack(it.noted))
end
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
local function description_of(entry, label, more)
  earliest = earliest or time_here()
  local left = max(0, ceil((entry.ends - earliest) / 1000))
  return entry.owner, tonumber(entry.holds), left, tonumber(entry.token), label or '', more
end
local function held(it, entry)
  local reply = {'held', description_of(entry, call('HGET', it.key, 'l:' .. entry.field), -1)}
  if add_to_held then add_to_held(it, reply) end
  return reply
end
local QUEUE_LIFE = '120000'
local MOST_WAITING = 1024
local SINCE_BAND = 500000
local function bounded_since(since, waited)
  local began = time_here() - waited
  return min(max(since, began - SINCE_BAND), began + SINCE_BAND)
end
local function take_place(it, ticket, since, waited)
  if call('ZCARD', it.queue) >= MOST_WAITING then return -1 end
  local is_ours = it.asked -- not a key of another library
  if is_ours and (not it.queued or it.slot == 'write') then
    call('HSET', it.key, 'kind', it.asked, 'queued', it.slot == 'write' and format('%d', time_here()) or '1')
  end
  if is_ours and call('PTTL', it.key) < tonumber(QUEUE_LIFE) then call('PEXPIRE', it.key, QUEUE_LIFE) end
  call('ZADD', it.queue, format('%d', bounded_since(since, waited)), ticket)
  call('PEXPIRE', it.queue, QUEUE_LIFE)
  return call('ZRANK', it.queue, ticket)
end
local function try_take_place(...)
  local is_done, ahead = pcall(take_place, ...)
  return is_done and ahead or -1
end
local function give_up_place(queue, ticket)
  return call('ZREM', queue, ticket, '!' .. ticket)
end
local function publish_wake(ticket, wakes, number)
  local client, its_number = match(ticket, '^(.-):(%d+)')
  local receivers = client and redis.pcall('PUBLISH', wakes .. client, number or its_number)
  return receivers and (type(receivers) == 'table' or receivers > 0)
end
function wake(it, wakes)
  while true do
    local first = call('ZPOPMIN', it.queue)[1]
    if not first then return it.asked and call('HDEL', it.key, 'queued') end
    if publish_wake(first, wakes) then return end
  end
end
local TIME_TO_ASK = 1000000
local function held_by_waiter(name, left)
  local waiter, label = match(name, '^([^ ]*) ?(.*)$')
  return {'held', waiter, 0, ceil(left / 1000), 0, label, -1}
end
local function give_turn(it, ticket, name, wakes)
  local ends = call('ZSCORE', it.queue, '!' .. ticket)
  if not ends and publish_wake(name, wakes) then
    ends = time_here() + TIME_TO_ASK
    redis.pcall('ZADD', it.queue, format('%d', ends), '!' .. ticket)
  end
  local left = (ends or 0) - time_here()
  if left > 0 and left <= TIME_TO_ASK then return held_by_waiter(name, left) end
  give_up_place(it.queue, ticket)
end
local function next_up(it, wakes, since)
  while true do
    local first = call('ZRANGE', it.queue, 0, 0, 'WITHSCORES')
    if not first[1] then
      call('HDEL', it.key, 'queued')
      return nil
    end
    if since and tonumber(first[2]) >= since then return nil end
    local reply = give_turn(it, first[1], first[1], wakes)
    if reply then return reply end
  end
end
function turn(it, since, waited, wakes)
  if it.entry and lives(it.entry) then return nil end -- its owner enters again
  return next_up(it, wakes, since and bounded_since(since, waited))
end
wake = next_up
return (function()
local function refusal(it, round, since, waited, wakes)
  local _, stale = own_entry(it, round)
  if stale then return stale end
  local is_other_kind = it.kind and not it.is_same and change_kind(it)
  if is_other_kind then return {'refused', 'KIND it is held as ' .. it.kind} end
  local other = obstacle(it)
  if other then return held(it, other) end
  return it.queued and turn and turn(it, since, waited, wakes)
end
local function grant(it, token, round, kept, label, first)
  local entry, ends = it.entry, format('%d', latest + tonumber(kept) * 1000)
  if entry and entry.holds ~= '0' and less(ends, entry.ends) then ends = entry.ends end
  if entry then
    drop(it, it.field)
    local other = entry.owner ~= it.owner and entry.owner
    if other or less(entry.round, first) then raise(it, it.raises, entry.token, other) end
  end
  put(it, ends, token, round, '1', label)
  call('PEXPIRE', it.key, KEY_TTL_HELD)
end
local function acquire(k, names, slot, owner, round, trusted, kept, label, before, ticket, since,
                       waited, wakes, first)
  local token, its, was_woken = trusted, {}, before and before ~= ''
  first = first or round
  local no_memory = is_full()
  for i = 1, was_woken and names or 0 do
    if give_up_place(KEYS[k + 2 * i - 1], before) == 1 then was_woken = false end
  end
  check_vote(trusted, round, kept)
  since = tonumber(since)
  for i = 1, names do
    local it = read(k + 2 * i - 2, slot, owner)
    local entry = own_entry(it, round)
    if entry and entry.round == round then
      call('PEXPIRE', it.key, KEY_TTL_HELD)
      return tonumber(entry.token)
    end
    local reply = refusal(it, round, since, waited, wakes)
    local takes_place = reply and reply[1] == 'held' and ticket and ticket ~= ''
    if takes_place then reply[7] = try_take_place(it, ticket, since, waited) end
    for j = 1, reply and was_woken and names > 1 and names or 0 do
      local other = read(k + 2 * j - 2, slot, owner)
      if other.queued and is_open(other) then pcall(wake, other, wakes) end
    end
    if reply then return reply end
    its[i] = it
    if not less(it.fence, token) then token = format('%d', it.fence + 1) end
  end
  if no_memory then error({'refused', no_memory}) end
  for i = 1, names do
    local it = its[i]
    grant(it, token, round, kept, label, first)
    if it.queued and ticket then give_up_place(it.queue, ticket) end
    if it.queued and it.entries and has_room(it) then pcall(wake, it, wakes) end
  end
  return tonumber(token)
end
local function lost(it, round, token, heals, first)
  local entry, stale = own_entry(it, round)
  if stale then return stale end
  if entry and less(token, entry.token) then return {'stale', tonumber(entry.token)} end
  if entry and less(entry.round, first) then return ABSENT end
  it.extends = entry and lives(entry)
  if it.extends then return nil end
  local at = heals == '1' and token or nil
  local other = it.kind and not it.is_same and change_kind(it, at) or obstacle(it, at)
  if other then return lives(other) and held(it, other) or ABSENT end
  local is_word = entry and tonumber(entry.ends) >= earliest
  local has_left = is_word and not less(entry.token, token)
  if not at or not less(it.floor, token) or has_left then return ABSENT end
  local last, whose = match(it[it.judged] or '0', '^(%d+) ?(.*)$')
  if less(token, last) or (token == last and whose ~= it.owner) then return ABSENT end
end
local function extend(k, names, slot, owner, holds, round, trusted, kept, label, token, heals, first)
  local its = {}
  first = first or '0'
  check_vote(trusted, round, kept, holds, token)
  for i = 1, names do
    its[i] = read(k + 2 * i - 2, slot, owner)
    local reply = lost(its[i], round, token, heals, first)
    if reply then return reply end
  end
  for i = 1, names do
    local it = its[i]
    local ends = format('%d', latest + tonumber(kept) * 1000)
    if it.extends and less(ends, it.entry.ends) then ends = it.entry.ends end
    local is_there = call('PEXPIRE', it.key, KEY_TTL_HELD)
    if it.entry and not it.extends then drop(it, it.field) end
    if it.entry and it.entry.owner ~= owner then raise(it, it.raises, it.entry.token, it.entry.owner) end
    put(it, ends, token, round, holds, it.extends and '' or label)
    if is_there == 0 then call('PEXPIRE', it.key, KEY_TTL_HELD) end
  end
  return GRANTED
end
local function leave(it, holds, round, token, first, breaks)
  local is_named = breaks and it.entry and (it.entry.holds == '0' or not less(token, it.entry.token))
  local entry, stale = own_entry(it, not is_named and round)
  if stale and holds ~= '0' then return stale end
  if entry and entry.holds == '0' then entry, it.entry = nil, nil end
  if entry and holds ~= '0' then
    call('PEXPIRE', it.key, KEY_TTL_HELD) -- runs even if memory is full, and after it the write
    local text = entry.ends .. ' ' .. entry.token .. ' ' .. round .. ' ' .. holds
    call('HSET', it.key, it.field, text)
    return GRANTED
  end
  if holds ~= '0' then return it.entry and held(it, it.entry) or ABSENT end
  local token_over = token
  if token_over and entry and less(token_over, entry.token) then token_over = entry.token end
  drop(it, entry and it.field or '') -- '' has HDEL run all the same: it is first, as memory may be full
  if entry then
    it.entry = nil
    token_over = token_over or less(entry.round, first) and entry.token
  end
  if token_over then
    raise(it, it.kind and not it.is_same and 'last' or it.raises, token_over)
    if breaks and it.reads then raise(it, 'last', token_over) end
    raise(it, 'fence', token_over)
  end
  local is_gone = entry or (token_over and not breaks and not stale)
  if note_gone and is_gone then note_gone(it, token_over, round, entry) end
  write_noted(it)
  local is_empty = not (is_left and is_left(it))
  local kept = it.queued and less(KEY_TTL_FREE, QUEUE_LIFE) and QUEUE_LIFE or KEY_TTL_FREE
  local is_short = not entry and it.noted[1] and call('PTTL', it.key) < tonumber(kept)
  if (entry and is_empty) or is_short then call('PEXPIRE', it.key, kept) end
  return stale or entry and GRANTED or it.entry and held(it, it.entry) or ABSENT
end
local function wake_next(it, place, wakes)
  if place ~= '' then give_up_place(it.queue, place) end
  if is_open(it) then wake(it, wakes) end
end
local function release_one(k, slot, owner, holds, round, token, first, wakes, place, breaks, since, waited)
  if not find(round .. ' ' .. holds .. ' ' .. token, '^%d+ %d+ %d*$') then
    refuse('ERR round, holds or token are no whole numbers: %s, %s, %s', round, holds, token)
  end
  check_token(token)
  local it = read(k, slot, owner)
  local reply = leave(it, holds, round, token ~= '' and token, first, token ~= '' and breaks == '1')
  local is_stale = type(reply) == 'table' and reply[1] == 'stale'
  if holds == '0' and since and reply == GRANTED then
    try_take_place(it, place, tonumber(since), tonumber(waited))
  elseif holds == '0' and it.queued and not (since or is_stale) then
    pcall(wake_next, it, place, wakes) -- an error in here does not undo the release
  end
  return reply
end
local function release(k, names, ...)
  local reply, failed
  for i = 1, names do
    local is_done, result = pcall(release_one, k + 2 * i - 2, ...)
    if not is_done then
      failed = failed or result
    elseif not reply or reply == GRANTED then
      reply = result
    end
  end
  if failed then error(failed, 0) end
  return reply
end
local function given(k, slot, to, round, from, handed)
  local it = read(k, slot, to)
  local entry, stale = own_entry(it, round)
  if stale then return nil, stale end
  if not entry or not lives(entry) then
    it = read(k, slot, from)
    entry = own_entry(it)
    local other = it.entry
    if not entry or not lives(entry) then
      return nil, other and lives(other) and held(it, other) or ABSENT
    end
    local is_later = handed and handed ~= '' and less(handed, entry.token)
    if is_later then return nil, {'stale', tonumber(entry.token)} end
    other = other_half and other_half(it)
    if other then return nil, held(it, other) end
  end
  return it
end
local function transfer(k, names, slot, to, round, trusted, kept, label, renews, from, handed)
  local its, token, old, is_new = {}, trusted, '0', false
  check_vote(trusted, round, kept)
  for i = 1, names do
    local it, reply = given(k + 2 * i - 2, slot, to, round, from, handed)
    if not it then return reply end
    its[i] = it
    if not less(it.fence, token) then token = format('%d', it.fence + 1) end
    if less(old, it.entry.token) then old = it.entry.token end
    is_new = is_new or (renews == '1' and it.owner ~= to)
  end
  if not is_new then token = old end
  for i = 1, names do
    local it, entry = its[i], its[i].entry
    local ends = format('%d', max(entry.ends, latest + tonumber(kept) * 1000))
    call('PEXPIRE', it.key, KEY_TTL_HELD)
    if it.owner ~= to then
      drop(it, it.field)
      raise(it, it.raises, is_new and entry.token or format('%d', entry.token - 1))
      if note_gone then note_gone(it, entry.token, '0', entry) end
      write_noted(it)
      it = read(k + 2 * i - 2, slot, to)
    end
    put(it, ends, token, round, '1', label)
  end
  return renews == '1' and tonumber(token) or GRANTED
end
local function inspect(k, _, slot)
  time_here() -- looks at the record: the first reply tells the client if this master forgot
  local it = read(k, slot, '')
  local entries, fields = read_all(it.key)
  local waiting = 0
  for _, ticket in ipairs(call('ZRANGE', it.queue, 0, -1)) do
    if sub(ticket, 1, 1) ~= '!' then waiting = waiting + 1 end
  end
  local reply = {'seen', it.kind or '', waiting}
  for _, entry in ipairs(entries) do
    if lives(entry) then
      local label, round = fields['l:' .. entry.field], tonumber(entry.round)
      reply[#reply + 1] = {entry.field, description_of(entry, label, round)}
    end
  end
  return reply
end
local VERBS = {acquire = acquire, extend = extend, release = release, transfer = transfer, inspect = inspect}
local MOST_NAMES = 16
local is_replica -- whether an operation was refused for that
while a <= #ARGV do
  local verb, names, count = VERBS[ARGV[a]], tonumber(ARGV[a + 1]), ARGV[a + 2]
  if not verb then return redis.error_reply('ERR no such verb: ' .. ARGV[a]) end
  if not find(count or '', '^%d+$') then return redis.error_reply('ERR no number of arguments') end
  if not names or names < 1 or names > MOST_NAMES then
    return redis.error_reply('ERR no such number of names: ' .. ARGV[a + 1])
  end
  earliest, latest = nil, nil
  local last = a + 2 + tonumber(count)
  local is_done, reply = pcall(verb, k, names, unpack(ARGV, a + 3, last))
  if type(reply) == 'string' and not is_done then
    reply = {'refused', (gsub(reply, '^.-:%s?%d+:%s*', ''))}
  elseif not is_done and reply.err then
    reply = {'refused', reply.err}
  end
  if not is_done and find(reply[2], '^READONLY') then is_replica = true end
  replies[#replies + 1], k, a = reply, k + 2 * names, last + 1
end
if is_replica then forgot = true end
replies[1] = not forgot and (now or 0)
return replies
end)()
end)()
