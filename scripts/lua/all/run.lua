-- run: a call's operations on locks over several names, which are independent of each other, one after the other.
-- KEYS     those of each operation: of each name the lock, its record and its queue
-- ARGV     the head's three (see head.lua); then for each operation its verb, how many names it is about, and the arguments
--          that the file of the verb names
-- Replies  the head's; then one an operation, in their order (see replies.lua)
-- Again    as each verb's file says

-- A lock over more names is refused before it is sent.
local MOST_NAMES = 16

-- The verbs, and how many arguments they have.
local VERBS = {acquire = {acquire_all, 12}, extend = {extend_all, 7}, release = {release_all, 5},
  withdraw = {withdraw_all, 6}, transfer = {transfer_all, 7}, inspect = {inspect_all, 0}}

local replies, k, a = {false}, 1, 4
head(ARGV[1], ARGV[2], ARGV[3])
while a <= #ARGV do
  local verb, count = VERBS[ARGV[a]], tonumber(ARGV[a + 1])
  if not verb then return redis.error_reply('ERR no such verb: ' .. tostring(ARGV[a])) end
  local has_names = count and count >= 1 and count <= MOST_NAMES
  if not has_names then return redis.error_reply('ERR no such number of names: ' .. tostring(ARGV[a + 1])) end
  local names = {}
  for i = 1, count do
    names[i], k = {key = KEYS[k], record = KEYS[k + 1], queue = KEYS[k + 2]}, k + 3
  end
  -- guard: arguments-of-a-verb
  replies[#replies + 1] = verb[1](names, unpack(ARGV, a + 2, a + 1 + verb[2]))
  a = a + 2 + verb[2]
end
replies[1] = told()
return replies
