-- list: which names may be in use here, of the keys that one step of SCAN finds. An operation is
-- about no name; its arguments are a pattern of keys, where to go on, which is 0 at first, and how
-- many keys to look at. Its reply is where to go on, 0 where that was all, and the keys of the
-- names that have an entry, which may be over, or a queue. An error ends the call.
local function list(pattern, cursor, count)
  time_here() -- so that a client hears of it where this master forgot
  local step = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', count, 'TYPE', 'hash')
  local reply = {step[1]}
  for _, key in ipairs(step[2]) do
    local said = call('HMGET', key, 'kind', 'x', 'readers', 'entries', 'queued')
    local has_readers = said[3] and said[3] ~= '0'
    local has_permits = said[4] and said[4] ~= '0'
    if said[1] and (said[2] or has_readers or has_permits or said[5]) then reply[#reply + 1] = key end
  end
  return reply
end

-- guard: list-all
while a <= #ARGV do
  replies[#replies + 1], a = list(ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]), a + 6
end
replies[1] = not forgot and now
return replies
