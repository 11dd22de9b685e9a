-- verbs: those of a lock that is exactly another library's key. It has no token, no round and no
-- end but Redis's own, so nothing is healed, and what a clock or a hand removes is gone. The
-- arguments are those of the other kinds; `label`, `versions`, `token` and what an undo has are not
-- looked at.
local function look(k, owner)
  local it = {key = KEYS[k], queue = KEYS[k + 1]}
  it.holder, it.holds = holder_of(it.key)
  it.is_mine = it.holder == owner
  return it
end

-- Who has the lock, as whoever is refused is told; or that nobody has.
local function refusal(it)
  if not it.holder then return ABSENT end
  return {'held', it.holder, it.holds, call('PTTL', it.key), 0, '', -1, '', 0}
end

-- Makes it this owner's, for no shorter than it is somebody's already.
local function write(it, owner, holds, kept)
  -- guard: shared-new
  put(it.key, owner, holds, it.holder and max(kept, call('PTTL', it.key)) or kept)
  return GRANTED
end

local function acquire(k, _, _, owner, round, trusted, kept, _, _, before, ticket, since, waited)
  -- guard: shared-before
  if before and before ~= '' then step_out(KEYS[k + 1], before) end
  -- guard: shared-vote
  vote(trusted, '', round, kept)
  local it = look(k, owner)
  if not it.holder or it.is_mine then return write(it, owner, '1', kept) end
  local reply = refusal(it)
  -- guard: shared-ticket
  if ticket and ticket ~= '' then reply[7] = stand(it, ticket, tonumber(since), tonumber(waited)) end
  return reply
end

local function extend(k, _, _, owner, holds, round, trusted, kept)
  -- guard: shared-vote-holds
  vote(trusted, '', round, kept, holds)
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
    tell_others(it.key)
  end
  local reply = it.is_mine and GRANTED or refusal(it)
  if since and it.is_mine then
    stand(it, place, tonumber(since), tonumber(waited))
  elseif holds == '0' and not since then
    -- guard: shared-place
    if place ~= '' then step_out(it.queue, place) end
    if reply == GRANTED or reply == ABSENT then wake(it, wakes) end
  end
  return reply
end

local function transfer(k, _, _, to, round, trusted, kept, _, _, from)
  -- guard: shared-vote-transfer
  vote(trusted, '', round, kept)
  local it, left = look(k, from), call('PTTL', KEYS[k])
  if it.holder == to then return write(it, to, '1', kept) end
  if not it.is_mine then return refusal(it) end
  call('DEL', it.key)
  put(it.key, to, '1', max(kept, left))
  return GRANTED
end

local function inspect(k, _, slot)
  time_here() -- so that a client hears of it where this master forgot
  -- guard: shared-nobody
  local it = look(k, '')
  local reply = {'seen', it.holder and slot or '', call('ZCARD', it.queue)}
  if it.holder then reply[4] = {'', it.holder, it.holds, call('PTTL', it.key), 0, '', '', 0} end
  return reply
end
