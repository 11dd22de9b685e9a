-- acquire: grants all names to one owner, with one new token, and replies that. Or grants none, and
-- gives `ticket` a place in the queue of the first name that is held. `before` is the ticket of the
-- same waiter's previous acquire, whose place is given up. A waiter that was woken for one of
-- several names, and is refused for another, wakes the next waiters. `first` is the first round of
-- the same attempt, where this is a later one: what was granted to it before was no lease.

-- Why this owner is not granted a name: the reply; nil or false if it is.
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

local function grant(it, token, round, kept, label, first)
  local entry, ends = it.entry, format('%d', latest + tonumber(kept) * 1000)
  -- A reader's word has an end, too, but not that of a lease. Another owner's entry has ended.
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
  -- The old place is given up even if this master refuses the vote: no later message would do it.
  -- A waiter was not woken where its place is found as it was left: ZREM removes 1 member then. A
  -- wake-up removed the ticket (0), or added `!TICKET` (2).
  for i = 1, was_woken and names or 0 do
    if give_up_place(KEYS[k + 2 * i - 1], before) == 1 then was_woken = false end
  end
  check_vote(trusted, round, kept)
  since = tonumber(since)
  for i = 1, names do
    local it = read(k + 2 * i - 2, slot, owner)
    local entry = own_entry(it, round)
    -- A message that came twice, or that hot.lua left half done, is the same grant: with another
    -- token each extend of the lease would be refused.
    if entry and entry.round == round then
      call('PEXPIRE', it.key, KEY_TTL_HELD)
      return tonumber(entry.token)
    end
    local reply = refusal(it, round, since, waited, wakes)
    local takes_place = reply and reply[1] == 'held' and ticket and ticket ~= ''
    -- This writes: it takes the place.
    if takes_place then reply[7] = try_take_place(it, ticket, since, waited) end
    -- guard: woken-several
    for j = 1, reply and was_woken and names > 1 and names or 0 do
      local other = read(k + 2 * j - 2, slot, owner)
      -- guard: wake-queued
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
    -- Where it is sent again behind what hot.lua left, the first time may have taken a place.
    -- guard: granted-place
    if it.queued and ticket then give_up_place(it.queue, ticket) end
    -- A waiter may have been woken for several permits. It takes one, so it wakes the next waiter.
    -- guard: permit-queued
    if it.queued and it.entries and has_room(it) then pcall(wake, it, wakes) end
  end
  return tonumber(token)
end
