-- verbs: the verbs of a lock that is exactly another library's key. Such a key has no token, no
-- round and no end but Redis's own TTL, so nothing is healed: a lock whose key is gone is lost. The
-- arguments are those of the other kinds; `label`, `token` and `first` are ignored.
local function look(k, owner)
  local it = {key = KEYS[k], queue = KEYS[k + 1]}
  it.holder, it.holds = holder_of(it.key)
  it.is_mine = it.holder == owner
  return it
end

-- The refusal because of the holder; ABSENT if there is none.
local function refusal(it)
  if not it.holder then return ABSENT end
  return {'held', it.holder, it.holds, call('PTTL', it.key), 0, '', -1}
end

-- Writes this owner's key. It never ends earlier than before.
local function write(it, owner, holds, kept)
  -- guard: shared-new
  put(it.key, owner, holds, it.holder and max(kept, call('PTTL', it.key)) or kept)
  return GRANTED
end

local function acquire(k, _, _, owner, round, trusted, kept, _, before, ticket, since, waited)
  local no_memory = is_full()
  -- guard: shared-before
  if before and before ~= '' then give_up_place(KEYS[k + 1], before) end
  check_vote(trusted, round, kept)
  local it = look(k, owner)
  if not it.holder or it.is_mine then
    if no_memory then error({'refused', no_memory}) end
    return write(it, owner, '1', kept)
  end
  local reply = refusal(it)
  -- guard: shared-ticket
  if ticket and ticket ~= '' then reply[7] = try_take_place(it, ticket, tonumber(since), tonumber(waited)) end
  return reply
end

local function extend(k, _, _, owner, holds, round, trusted, kept)
  check_vote(trusted, round, kept, holds)
  local it = look(k, owner)
  return it.is_mine and write(it, owner, holds, kept) or refusal(it)
end

local function release(k, _, _, owner, holds, _, _, _, wakes, place, _, since, waited)
  local it = look(k, owner)
  if it.is_mine and holds ~= '0' then
    put(it.key, owner, holds)
    return GRANTED
  end
  if it.is_mine then
    call('DEL', it.key)
    wake_others(it.key)
  end
  local reply = it.is_mine and GRANTED or refusal(it)
  if since and it.is_mine then
    try_take_place(it, place, tonumber(since), tonumber(waited))
  elseif holds == '0' and not since then
    -- guard: shared-place
    if place ~= '' then give_up_place(it.queue, place) end
    if reply == GRANTED or reply == ABSENT then wake(it, wakes) end
  end
  return reply
end

local function transfer(k, _, _, to, round, trusted, kept, _, _, from)
  check_vote(trusted, round, kept)
  local it, left = look(k, from), call('PTTL', KEYS[k])
  if it.holder == to then return write(it, to, '1', kept) end
  if not it.is_mine then return refusal(it) end
  call('DEL', it.key)
  put(it.key, to, '1', max(kept, left))
  return GRANTED
end

local function inspect(k, _, slot)
  time_here() -- looks at the record: the first reply tells the client if this master forgot
  -- guard: shared-nobody
  local it = look(k, '')
  local reply = {'seen', it.holder and slot or '', call('ZCARD', it.queue)}
  if it.holder then reply[4] = {'', it.holder, it.holds, call('PTTL', it.key), 0, '', 0} end
  return reply
end
