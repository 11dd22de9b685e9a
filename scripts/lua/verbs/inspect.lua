-- inspect: says of what kind a name is, how many wait for it, and who holds it: for each entry that
-- counts its field, what `description_of` says, and the round that wrote it.
local function inspect(k, _, slot)
  time_here() -- looks at the record: the first reply tells the client if this master forgot
  -- guard: inspect-nobody
  local it = read(k, slot, '')
  local entries, fields = read_all(it.key)
  local waiting = 0
  for _, ticket in ipairs(call('ZRANGE', it.queue, 0, -1)) do
    if sub(ticket, 1, 1) ~= '!' then waiting = waiting + 1 end
  end
  local reply = {'seen', it.kind or '', waiting}
  for _, entry in ipairs(entries) do
    if lives(entry) then
      local label, round = fields['l:' .. entry.field], tonumber(entry.round)
      reply[#reply + 1] = {entry.field, description_of(entry, label, round)}
    end
  end
  return reply
end
