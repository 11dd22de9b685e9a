-- run: carries out the operations of a call, one after the other, each by itself. An operation is
-- its verb, the number of its names, the number of its arguments, and the arguments; KEYS has a
-- hash and a queue for each name. The first reply is the time here (us): 0 if no operation looked
-- at it; nil if the record is another one, or this is a replica, which will have the keys of
-- another server when it is a master again.
local VERBS = {acquire = acquire, extend = extend, release = release, transfer = transfer, inspect = inspect}

local MOST_NAMES = 16

local is_replica -- whether an operation was refused for that

-- guard: run-all
while a <= #ARGV do
  local verb, names, count = VERBS[ARGV[a]], tonumber(ARGV[a + 1]), ARGV[a + 2]
  if not verb then return redis.error_reply('ERR no such verb: ' .. ARGV[a]) end
  -- guard: no-number-of-arguments
  if not find(count or '', '^%d+$') then return redis.error_reply('ERR no number of arguments') end
  -- guard: names-no-number
  if not names or names < 1 or names > MOST_NAMES then
    return redis.error_reply('ERR no such number of names: ' .. ARGV[a + 1])
  end
  earliest, latest = nil, nil
  local last = a + 2 + tonumber(count)
  local is_done, reply = pcall(verb, k, names, unpack(ARGV, a + 3, last))
  -- guard: reply-text
  if type(reply) == 'string' and not is_done then
    reply = {'refused', (gsub(reply, '^.-:%s?%d+:%s*', ''))}
  -- guard: error-table
  elseif not is_done and reply.err then
    -- guard: error-of-table
    reply = {'refused', reply.err}
  end
  if not is_done and find(reply[2], '^READONLY') then is_replica = true end
  replies[#replies + 1], k, a = reply, k + 2 * names, last + 1
end
if is_replica then forgot = true end
replies[1] = not forgot and (now or 0)
return replies
