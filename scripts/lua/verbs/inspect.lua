-- inspect: say of what kind a name is, how many wait for it, and who holds it: for each entry that
-- counts its field, owner, holds, how long (ms) it lives, token, label, and what to watch for how
-- long (ms).
local function inspect(k, _, slot)
  time_here() -- so that a client hears of it where this master forgot
  -- guard: inspect-nobody
  local it = read(k, slot, '')
  local entries, fields = read_all(it.key)
  local waiting = 0
  for _, ticket in ipairs(call('ZRANGE', it.queue, 0, -1)) do
    if sub(ticket, 1, 1) ~= '!' then waiting = waiting + 1 end
  end
  local reply = {'seen', it.kind or '', waiting}
  for i = 1, #entries do
    local entry = entries[i]
    if lives(entry) then
      reply[#reply + 1] = {entry.field, told(entry, fields['l:' .. entry.field])}
    end
  end
  return reply
end
