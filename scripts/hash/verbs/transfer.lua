-- transfer: give all names from one owner to another, and make them its own for longer; or none. It may
-- renew the token. Repeated, it finds the new owner there. It takes no entry with a token above the one
-- that was handed on, if that is given: that is of a later lease.
local function given(k, slot, to, round, from, handed)
  local it = read(k, slot, to)
  local entry, stale = own_entry(it, round)
  if stale then return nil, stale end
  if not entry or not lives(entry) then
    it = read(k, slot, from)
    entry = own_entry(it, math.huge)
    local other = it.entry
    if not entry or not lives(entry) then
      return nil, other and other.owner ~= from and lives(other) and held(it, other) or ABSENT
    end
    if handed and entry.token > handed then return nil, {'stale', entry.token} end
  end
  return it
end

local function transfer(k, names, slot, to, round, trusted, kept, label, renews, from, handed)
  local its, token, old, is_new = {}, tonumber(trusted), 0, false
  vote(token, '')
  for i = 1, names do
    local it, reply = given(k + 2 * i - 2, slot, to, tonumber(round), from, handed and tonumber(handed))
    if not it then return reply end
    its[i], token, old = it, max(token, it.fence + 1), max(old, it.entry.token)
    is_new = is_new or (renews == '1' and it.owner ~= to)
  end
  if not is_new then token = old end
  for i = 1, names do
    local it, entry = its[i], its[i].entry
    local ends = max(entry.ends, latest + kept * 1000)
    call('PEXPIRE', it.key, KEPT_HELD)
    if it.owner ~= to then
      call('HDEL', it.key, it.field, 'o:' .. it.field, 'l:' .. it.field)
      if note_gone then note_gone(it, entry.token, entry.round, entry) end
      it = read(k + 2 * i - 2, slot, to)
    end
    write_entry(it, ends, token, round, '1', max(kept, ceil((ends - latest) / 1000)), label)
  end
  return renews == '1' and token or GRANTED
end
