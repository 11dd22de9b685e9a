-- release: leaves an owner with fewer holds of each name, or none, and wakes the next waiter. A
-- name that fails does not stop the others. Without a `token` it is an undo: it removes a grant
-- whose token nobody has seen, and an entry of the owner from before the round `first` is over,
-- too. `place` is the ticket whose place is given up. With `since` nobody is woken, and `place` is
-- a ticket that takes a place in the queue, if an entry was removed. `breaks` is 1 if somebody else
-- takes the lock away: the owner may have entered again meanwhile, so its entry is found by its
-- token, whatever its round.
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
  -- guard: gone-nothing
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
  -- guard: short-ttl
  local is_short = not entry and it.noted[1] and call('PTTL', it.key) < tonumber(kept)
  if (entry and is_empty) or is_short then call('PEXPIRE', it.key, kept) end
  return stale or entry and GRANTED or it.entry and held(it, it.entry) or ABSENT
end

-- Gives up the place of this ticket, and wakes the next waiter.
local function wake_next(it, place, wakes)
  -- guard: release-place
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
  -- guard: release-queued
  elseif holds == '0' and it.queued and not (since or is_stale) then
    pcall(wake_next, it, place, wakes) -- an error in here does not undo the release
  end
  return reply
end

-- One reply for all names: GRANTED if that is the reply for all, otherwise the first other reply.
-- An error comes before replies: the client has to repeat the release.
local function release(k, names, ...)
  local reply, failed
  for i = 1, names do
    local is_done, result = pcall(release_one, k + 2 * i - 2, ...)
    if not is_done then
      -- guard: first-failure
      failed = failed or result
    elseif not reply or reply == GRANTED then
      reply = result
    end
  end
  -- guard: error-as-it-is
  if failed then error(failed, 0) end
  return reply
end
