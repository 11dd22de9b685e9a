-- extend: extends the lease of all names, by the same grant; or of none. An owner that enters again
-- sends it with more holds. A client whose grant has different tokens on different masters confirms
-- one with it: then `first` is the first round of the lease, and entries of earlier rounds do not
-- count. With `heals` an entry that this master lost is written again.

-- Why a name cannot be extended: the reply, or nil.
local function lost(it, round, token, heals, first)
  local entry, stale = own_entry(it, round)
  if stale then return stale end
  if entry and less(token, entry.token) then return {'stale', tonumber(entry.token)} end
  if entry and less(entry.round, first) then return ABSENT end
  it.extends = entry and lives(entry)
  if it.extends then return nil end
  -- guard: heals-not
  local at = heals == '1' and token or nil
  local other = it.kind and not it.is_same and change_kind(it, at) or obstacle(it, at)
  if other then return lives(other) and held(it, other) or ABSENT end
  local is_word = entry and tonumber(entry.ends) >= earliest
  local has_left = is_word and not less(entry.token, token)
  if not at or not less(it.floor, token) or has_left then return ABSENT end
  -- guard: heal-last-none
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
    -- Redis runs PEXPIRE even if memory is full, and after it the other writes of the script.
    local is_there = call('PEXPIRE', it.key, KEY_TTL_HELD)
    -- guard: extend-drops
    if it.entry and not it.extends then drop(it, it.field) end
    if it.entry and it.entry.owner ~= owner then raise(it, it.raises, it.entry.token, it.entry.owner) end
    put(it, ends, token, round, holds, it.extends and '' or label)
    -- guard: extend-was-not-there
    if is_there == 0 then call('PEXPIRE', it.key, KEY_TTL_HELD) end
  end
  return GRANTED
end
