-- run: a call's operations, which are independent of each other, one after the other.
-- KEYS     those of each operation, as the file of its verb says
-- ARGV     the head's three (see head.lua); then for each operation its verb, and the arguments that the file of the verb
--          names
-- Replies  the head's; then one an operation, in their order (see replies.lua)
-- Again    as each verb's file says
local replies, k, a = {false}, 1, 4
local number = tonumber
head(ARGV[1], ARGV[2], ARGV[3])
while a <= #ARGV do
  local verb, key, record, reply = ARGV[a], KEYS[k], KEYS[k + 1], nil
  local keys, args = 2, 7
  if verb == 'acquire' then
    reply = acquire(key, record, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
  elseif verb == 'release' then
    reply = release(key, record, KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
    keys, args = 3, 5
  elseif verb == 'extend' then
    reply = extend(key, record, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
  elseif verb == 'queue' then
    reply = acquire_or_queue(key, record, KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4],
      ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], number(ARGV[a + 10]), number(ARGV[a + 11]), ARGV[a + 12])
    keys, args = 3, 12
  elseif verb == 'withdraw' then
    reply = withdraw(key, record, KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4],
      number(ARGV[a + 5]), number(ARGV[a + 6]))
    keys, args = 3, 6
  elseif verb == 'transfer' then
    reply = transfer(key, record, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
  elseif verb == 'inspect' then
    reply, args = inspect(key, record, ARGV[a + 1]), 1
  else
    return redis.error_reply('ERR no such verb: ' .. tostring(verb))
  end
  replies[#replies + 1] = reply
  k, a = k + keys, a + args + 1
end
replies[1] = told()
return replies
