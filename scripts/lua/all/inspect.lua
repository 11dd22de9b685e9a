-- inspect: say who holds the first of the names that is held. Whoever holds some of them and not all has no lock over all: it is
-- told with a count of 0, and without a token.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names
-- Replies  held (by anybody), absent where all names are, or refused
-- Again    writes nothing, so a repeated run changes nothing.
local function inspect_all(names)
  local shown, its = ABSENT, 0
  for i = 1, #names do
    local reply = inspect(names[i].key, names[i].record)
    if shown == ABSENT then shown = reply end
    if reply ~= ABSENT and reply[2] == shown[2] and reply[3] ~= '0' then its = its + 1 end
  end
  if shown == ABSENT or shown[1] ~= 'held' or its == #names then return shown end
  return {'held', shown[2], '0', shown[4]}
end
