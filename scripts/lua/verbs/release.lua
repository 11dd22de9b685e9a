-- release: leave each name with fewer holds, or none, whatever becomes of the others; then whoever
-- is next is called. With no `token` it is an undo, of a grant that came to nothing: nobody has
-- seen its token; an entry of an earlier lease than that of the round `first` is over, too. With
-- `since` it takes a place in each queue instead of calling anybody. `place` is the ticket that is
-- given up, or that takes the place, and `breaks` is 1 where the owner is not asked: it may have
-- entered again since, so its entry goes by its token, whatever its round.
local function leave(it, holds, round, token, first, breaks)
  local is_named = breaks and it.entry and (it.entry.holds == '0' or not less(token, it.entry.token))
  local entry, stale = own_entry(it, not is_named and round)
  if stale and holds ~= '0' then return stale end
  if entry and entry.holds == '0' then entry, it.entry = nil, nil end
  if entry and holds ~= '0' then
    call('PEXPIRE', it.key, KEPT_HELD) -- it is let in where memory is full, and what follows it too
    local text = entry.ends .. ' ' .. entry.token .. ' ' .. round .. ' ' .. holds .. ' ' .. entry.kept
    call('HSET', it.key, it.field, text)
    return GRANTED
  end
  if holds ~= '0' then return it.entry and held(it, it.entry) or ABSENT end
  local over = token
  if over and entry and less(over, entry.token) then over = entry.token end
  -- guard: gone-nothing
  drop(it, entry and it.field or '') -- also nothing: HDEL is let in where memory is full
  if entry then
    it.entry = nil
    over = over or less(entry.round, first) and entry.token
  end
  if over then
    raise(it, it.kind and not it.is_same and 'last' or it.raises, over)
    if breaks and it.reads then raise(it, 'last', over) end
    raise(it, 'fence', over)
  end
  if note_gone and (entry or (over and not breaks and not stale)) then note_gone(it, over, round, entry) end
  write_noted(it)
  local is_empty = not (is_left and is_left(it))
  local kept = it.queued and less(KEPT_FREE, QUEUE_LIFE) and QUEUE_LIFE or KEPT_FREE
  -- guard: short-ttl
  local is_short = not entry and it.noted[1] and call('PTTL', it.key) < tonumber(kept)
  if (entry and is_empty) or is_short then call('PEXPIRE', it.key, kept) end
  return stale or entry and GRANTED or it.entry and held(it, it.entry) or ABSENT
end

-- Gives up its place, and calls whoever is next.
local function call_next(it, place, wakes)
  -- guard: release-place
  if place ~= '' then step_out(it.queue, place) end
  if is_open(it) then wake(it, wakes) end
end

local function release_one(k, slot, owner, holds, round, token, first, wakes, place, breaks, since, waited)
  if not find(round .. ' ' .. holds .. ' ' .. token, '^%d+ %d+ %d*$') then
    refuse('ERR round, holds or token are no whole numbers: %s, %s, %s', round, holds, token)
  end
  check_token(token)
  local it = read(k, slot, owner)
  local said = leave(it, holds, round, token ~= '' and token, first, token ~= '' and breaks == '1')
  local is_stale = type(said) == 'table' and said[1] == 'stale'
  if holds == '0' and since and said == GRANTED then
    stand(it, place, tonumber(since), tonumber(waited))
  -- guard: release-queued
  elseif holds == '0' and it.queued and not (since or is_stale) then
    pcall(call_next, it, place, wakes) -- it has left, though nobody can be called
  end
  return said
end

-- One reply for all: granted where all are, and what was refused for one has to be done again.
local function release(k, names, ...)
  local reply, failed
  for i = 1, names do
    local is_done, said = pcall(release_one, k + 2 * i - 2, ...)
    if not is_done then
      -- guard: first-failure
      failed = failed or said
    elseif not reply or reply == GRANTED then
      reply = said
    end
  end
  -- guard: error-as-it-is
  if failed then error(failed, 0) end
  return reply
end
