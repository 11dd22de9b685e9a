-- acquire: take all names for one owner, by a new grant with one token; or none, and take a place
-- in the queue of the first that is held. `before` is the ticket of the same waiter's acquire
-- before, whose place is given up: whoever was called for one of several names, and is refused for
-- another, calls the next in its place. Answers the token.

-- Why this owner does not get a name: the reply, or nil.
local function refusal(it, round, since, waited, wakes)
  local _, stale = own_entry(it, round)
  if stale then return stale end
  -- guard: kind-is-other
  local is_other_kind = it.kind and not it.is_same and change_kind(it)
  if is_other_kind then return {'refused', 'KIND it is held as ' .. it.kind} end
  local other = obstacle(it)
  if other then return held(it, other) end
  return it.queued and turn and turn(it, since, waited, wakes)
end

local function grant(it, token, round, kept, label)
  local entry, ends = it.entry, format('%d', latest + tonumber(kept) * 1000)
  -- The end of a reader's word is none of a lease.
  local is_its_own = entry and entry.owner == it.owner and entry.holds ~= '0'
  if is_its_own and less(ends, entry.ends) then ends = entry.ends end
  if entry then
    drop(it, it.field)
    raise(it, it.raises, entry.token, entry.owner ~= it.owner and entry.owner)
  end
  put(it, ends, token, round, '1', kept, label)
  call('PEXPIRE', it.key, KEPT_HELD)
end

local function acquire(k, names, slot, owner, round, trusted, kept, label, versions, before, ticket,
                       since, waited, wakes)
  local token, its, was_called = trusted, {}, before and before ~= ''
  -- It is given up also where this master may not vote: nobody asks for that again.
  for i = 1, was_called and names or 0 do
    if step_out(KEYS[k + 2 * i - 1], before) == 1 then was_called = false end
  end
  vote(trusted, versions, round, kept)
  since = tonumber(since)
  for i = 1, names do
    local it = read(k + 2 * i - 2, slot, owner)
    local entry = own_entry(it, round)
    -- What is repeated on its way, or was left half done by quick.lua, is the same grant: another
    -- token would refuse each extend of the lease.
    if entry and entry.round == round then
      call('PEXPIRE', it.key, KEPT_HELD)
      return tonumber(entry.token)
    end
    local reply = refusal(it, round, since, waited, wakes)
    local takes_place = reply and reply[1] == 'held' and ticket and ticket ~= ''
    if takes_place then reply[7] = stand(it, ticket, since, waited) end
    -- guard: called-several
    for j = 1, reply and was_called and names > 1 and names or 0 do
      local other = read(k + 2 * j - 2, slot, owner)
      -- guard: call-queued
      if other.queued and is_open(other) then pcall(wake, other, wakes) end
    end
    if reply then return reply end
    its[i] = it
    if not less(it.fence, token) then token = format('%d', it.fence + 1) end
  end
  for i = 1, names do
    local it = its[i]
    grant(it, token, round, kept, label)
    -- Who was called for several releases takes one permit only, so it calls the next for the
    -- others.
    -- guard: permit-queued
    if it.queued and it.entries and has_room(it) then pcall(wake, it, wakes) end
  end
  return tonumber(token)
end
