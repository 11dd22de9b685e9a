-- run: a call's operations, which are independent of each other, one after the other.
-- KEYS     those of each operation, as the file of its verb says
-- ARGV     for each operation its verb, and the arguments that the file of the verb names
-- Replies  one an operation, in their order (see lock.lua)
-- Again    as each verb's file says
local replies, k, a = {}, 1, 1
local number = tonumber
while a <= #ARGV do
  local verb, key, reply = ARGV[a], KEYS[k], nil
  local keys, args = 1, 4
  if verb == 'acquire' then
    reply = acquire(key, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  elseif verb == 'release' then
    reply = release(key, KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
    keys = 2
  elseif verb == 'extend' then
    reply = extend(key, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  elseif verb == 'queue' then
    reply = acquire_or_queue(key, KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4],
      ARGV[a + 5], ARGV[a + 6], number(ARGV[a + 7]), number(ARGV[a + 8]))
    keys, args = 2, 8
  elseif verb == 'withdraw' then
    reply = withdraw(key, KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4],
      number(ARGV[a + 5]), number(ARGV[a + 6]))
    keys, args = 2, 6
  elseif verb == 'transfer' then
    reply = transfer(key, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
    args = 5
  elseif verb == 'inspect' then
    reply, args = inspect(key), 0
  else
    return redis.error_reply('ERR no such verb: ' .. tostring(verb))
  end
  replies[#replies + 1] = reply
  k, a = k + keys, a + args + 1
end
return replies
