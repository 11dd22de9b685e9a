-- Quorate's protocol 2: redisson. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
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
local function refuse(...)
  error({'refused', format(...)})
end
local function check_token(token)
  if less('9007199254740991', token) then refuse('ERR a token is 9007199254740991 at most, not %s', token) end
end
local function check_vote(trusted, round, kept, holds, token)
  local why = no_vote(trusted, round, kept, holds or '1', token or '1')
  if why then error({'refused', why}) end
  if token then check_token(token) end
end
local read_more -- (it): reads more fields into `it`
local obstacle -- (it, token): the entry that blocks a grant, or a heal with this token; drops what is over
local turn -- (it, since, waited, wakes): the refusal if a waiter goes first, though nothing blocks a grant
local note_end -- (it, ends): for an entry with a new end
local note_gone -- (it, token, round, was_here): for an entry that is removed; an undo has no token
local is_left -- (it): whether any entry is left; nil: this owner's was the only one
local has_room -- (it): whether a waiter may be granted it; nil: if no entry counts
local other_half -- (it): another entry of this owner, which forbids a transfer; nil: there is none
local wake -- (it, wakes): wakes the next waiter
local add_to_held -- (it, reply): adds items to a `held` reply
local QUEUE_LIFE = '120000'
local MOST_WAITING = 1024
local SINCE_BAND = 500000
local function bounded_since(since, waited)
  local began = time_here() - waited
  return min(max(since, began - SINCE_BAND), began + SINCE_BAND)
end
local function take_place(it, ticket, since, waited)
  if call('ZCARD', it.queue) >= MOST_WAITING then return -1 end
  local is_ours = it.asked -- not a key of another library
  if is_ours and (not it.queued or it.slot == 'write') then
    call('HSET', it.key, 'kind', it.asked, 'queued', it.slot == 'write' and format('%d', time_here()) or '1')
  end
  if is_ours and call('PTTL', it.key) < tonumber(QUEUE_LIFE) then call('PEXPIRE', it.key, QUEUE_LIFE) end
  call('ZADD', it.queue, format('%d', bounded_since(since, waited)), ticket)
  call('PEXPIRE', it.queue, QUEUE_LIFE)
  return call('ZRANK', it.queue, ticket)
end
local function try_take_place(...)
  local is_done, ahead = pcall(take_place, ...)
  return is_done and ahead or -1
end
local function give_up_place(queue, ticket)
  return call('ZREM', queue, ticket, '!' .. ticket)
end
local function publish_wake(ticket, wakes, number)
  local client, its_number = match(ticket, '^(.-):(%d+)')
  local receivers = client and redis.pcall('PUBLISH', wakes .. client, number or its_number)
  return receivers and (type(receivers) == 'table' or receivers > 0)
end
function wake(it, wakes)
  while true do
    local first = call('ZPOPMIN', it.queue)[1]
    if not first then return it.asked and call('HDEL', it.key, 'queued') end
    if publish_wake(first, wakes) then return end
  end
end
local function holder_of(key)
  local hash = call('HGETALL', key)
  if #hash > 2 or (hash[2] and not find(hash[2], '^%d+$')) then
    refuse('WRONGTYPE the hash at this key is not a lock of Redisson')
  end
  return hash[1], tonumber(hash[2])
end
local function put(key, owner, holds, kept)
  call('HSET', key, owner, holds)
  if kept then call('PEXPIRE', key, kept) end
end
local function wake_others(key)
  call('PUBLISH', 'redisson_lock__channel:' .. (find(key, '{', 1, true) and key or '{' .. key .. '}'), '0')
end
return (function()
local function look(k, owner)
  local it = {key = KEYS[k], queue = KEYS[k + 1]}
  it.holder, it.holds = holder_of(it.key)
  it.is_mine = it.holder == owner
  return it
end
local function refusal(it)
  if not it.holder then return ABSENT end
  return {'held', it.holder, it.holds, call('PTTL', it.key), 0, '', -1}
end
local function write(it, owner, holds, kept)
  put(it.key, owner, holds, it.holder and max(kept, call('PTTL', it.key)) or kept)
  return GRANTED
end
local function acquire(k, _, _, owner, round, trusted, kept, _, before, ticket, since, waited)
  local no_memory = is_full()
  if before and before ~= '' then give_up_place(KEYS[k + 1], before) end
  check_vote(trusted, round, kept)
  local it = look(k, owner)
  if not it.holder or it.is_mine then
    if no_memory then error({'refused', no_memory}) end
    return write(it, owner, '1', kept)
  end
  local reply = refusal(it)
  if ticket and ticket ~= '' then reply[7] = try_take_place(it, ticket, tonumber(since), tonumber(waited)) end
  return reply
end
local function extend(k, _, _, owner, holds, round, trusted, kept)
  check_vote(trusted, round, kept, holds)
  local it = look(k, owner)
  return it.is_mine and write(it, owner, holds, kept) or refusal(it)
end
local function release(k, _, _, owner, holds, _, _, _, wakes, place, _, since, waited)
  local it = look(k, owner)
  if it.is_mine and holds ~= '0' then
    put(it.key, owner, holds)
    return GRANTED
  end
  if it.is_mine then
    call('DEL', it.key)
    wake_others(it.key)
  end
  local reply = it.is_mine and GRANTED or refusal(it)
  if since and it.is_mine then
    try_take_place(it, place, tonumber(since), tonumber(waited))
  elseif holds == '0' and not since then
    if place ~= '' then give_up_place(it.queue, place) end
    if reply == GRANTED or reply == ABSENT then wake(it, wakes) end
  end
  return reply
end
local function transfer(k, _, _, to, round, trusted, kept, _, _, from)
  check_vote(trusted, round, kept)
  local it, left = look(k, from), call('PTTL', KEYS[k])
  if it.holder == to then return write(it, to, '1', kept) end
  if not it.is_mine then return refusal(it) end
  call('DEL', it.key)
  put(it.key, to, '1', max(kept, left))
  return GRANTED
end
local function inspect(k, _, slot)
  time_here() -- looks at the record: the first reply tells the client if this master forgot
  local it = look(k, '')
  local reply = {'seen', it.holder and slot or '', call('ZCARD', it.queue)}
  if it.holder then reply[4] = {'', it.holder, it.holds, call('PTTL', it.key), 0, '', 0} end
  return reply
end
local VERBS = {acquire = acquire, extend = extend, release = release, transfer = transfer, inspect = inspect}
local MOST_NAMES = 16
local is_replica -- whether an operation was refused for that
while a <= #ARGV do
  local verb, names, count = VERBS[ARGV[a]], tonumber(ARGV[a + 1]), ARGV[a + 2]
  if not verb then return redis.error_reply('ERR no such verb: ' .. ARGV[a]) end
  if not find(count or '', '^%d+$') then return redis.error_reply('ERR no number of arguments') end
  if not names or names < 1 or names > MOST_NAMES then
    return redis.error_reply('ERR no such number of names: ' .. ARGV[a + 1])
  end
  earliest, latest = nil, nil
  local last = a + 2 + tonumber(count)
  local is_done, reply = pcall(verb, k, names, unpack(ARGV, a + 3, last))
  if type(reply) == 'string' and not is_done then
    reply = {'refused', (gsub(reply, '^.-:%s?%d+:%s*', ''))}
  elseif not is_done and reply.err then
    reply = {'refused', reply.err}
  end
  if not is_done and find(reply[2], '^READONLY') then is_replica = true end
  replies[#replies + 1], k, a = reply, k + 2 * names, last + 1
end
if is_replica then forgot = true end
replies[1] = not forgot and (now or 0)
return replies
end)()
end)()
