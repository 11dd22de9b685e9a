-- list: which names may be in use here, of the keys that one step of SCAN finds. An operation has
-- no names. Its arguments are a pattern of keys, the cursor, which is 0 at first, and how many keys
-- to look at. Its reply is the next cursor, 0 at the end, and the keys of names that have a queue,
-- or an entry, which may be over. An error ends the call.
local function list(pattern, cursor, count)
  time_here() -- looks at the record: the first reply tells the client if this master forgot
  local step = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', count, 'TYPE', 'hash')
  local reply = {step[1]}
  for _, key in ipairs(step[2]) do
    local values = call('HMGET', key, 'kind', 'x', 'readers', 'entries', 'queued')
    local has_readers = values[3] and values[3] ~= '0'
    local has_permits = values[4] and values[4] ~= '0'
    if values[1] and (values[2] or has_readers or has_permits or values[5]) then reply[#reply + 1] = key end
  end
  return reply
end

-- guard: list-all
while a <= #ARGV do
  replies[#replies + 1], a = list(ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]), a + 6
end
replies[1] = not forgot and now
return replies
