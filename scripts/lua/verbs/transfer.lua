-- transfer: hands all names over from one owner to another, and extends the lease; or none. With
-- `renews` there is a new token. A repeated transfer finds the new owner there. If `handed`, the
-- token that is handed over, is given, an entry with a higher token stays: it is of a later lease.

-- A name for the new owner: `it`, read for the owner that has it now; or nil, and the reply.
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
  -- guard: no-token-yet
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
      -- Leases with lower tokens heal no more. One with the token that stays heals, whoever has it.
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
