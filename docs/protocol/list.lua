-- Quorate's protocol 2: list. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local call, format, match, find = redis.call, string.format, string.match, string.find
local sub, gsub = string.sub, string.gsub
local abs, max, min, ceil = math.abs, math.max, math.min, math.ceil
local KEYS, ARGV = KEYS, ARGV
local RECORD, STAMP, VOTES_FROM = ARGV[1], ARGV[2], tonumber(ARGV[3])
local KEY_TTL_FREE = ARGV[4]
local OLDEST, NEWEST = 2000000, 500000
local GRANTED, ABSENT = 1, 0
local KEY_TTL_HELD = '2592000000'
local replies, k, a = {false}, 1, 5
local now, forgot -- the time here (us), and whether the record is another one; nil before time_here()
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function time_here()
  if not now then
    local time = call('TIME')
    now, forgot = time[1] * 1000000 + time[2], call('HGET', RECORD, 'stamp') ~= STAMP
  end
  return now
end
local trusts, earliest, latest
local WHOLE = '^[1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d*$'
local function no_vote(trusted, round, kept, holds, token)
  local all = trusted .. ' ' .. round .. ' ' .. kept .. ' ' .. holds .. ' ' .. token
  if not find(all, WHOLE) then return 'ERR an argument is no whole number: ' .. all end
  if #kept > 10 or #round > 15 then
    return 'ERR kept has 10 digits at most, and a round 15: ' .. kept .. ', ' .. round
  end
  local time = time_here()
  trusts = tonumber(trusted)
  earliest, latest = min(time, trusts), max(time, trusts)
  if forgot then return 'FORGOT this master restarted, or lost keys, since this connection was opened' end
  local ahead = trusts - time
  if ahead > NEWEST or -ahead > OLDEST then
    if trusted == '1' then return 'NOTIME too few masters answer to tell the time, or their clocks differ' end
    return format('CLOCK the time that the client trusts is %.3f s from the time here', ahead / 1000000)
  end
  local left = VOTES_FROM - earliest
  return left > 0 and format('QUARANTINE %d ms left', ceil(left / 1000))
end
local full
local function is_full()
  if full == nil then
    local reply = redis.pcall('ZADD', KEYS[2], 'XX', '0', '')
    full = type(reply) == 'table' and find(reply.err, '^OOM') and reply.err
  end
  return full
end
if #KEYS > 2 then is_full() end
return (function()
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
while a <= #ARGV do
  replies[#replies + 1], a = list(ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]), a + 6
end
replies[1] = not forgot and now
return replies
end)()
