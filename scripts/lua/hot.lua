-- hot: the common case in few words. An owner acquires a lock or a mutex that is free or was never
-- used, or is refused because another owner holds it; or releases it, and nobody waits. Anything
-- else is not handled: the client sends that operation to the full script, which does what is left
-- of it. Each operation has one key, that of its hash, and these arguments:
--   acquire  KIND OWNER ROUND TRUSTED KEPT LABEL
--   release  KIND OWNER ROUND TOKEN
-- The replies are those of the full script, or NOT_HANDLED.
local try, find, match, format = redis.pcall, string.find, string.match, string.format
local min, max, tonumber = math.min, math.max, tonumber
local RECORD, STAMP, VOTES_FROM, KEY_TTL_FREE = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local KEY_TTL_HELD, OLDEST, NEWEST = '2592000000', 2000000, 500000
local GRANTED, NOT_HANDLED = 1, -1

-- The time here (us), and whether the record is another one; nil before the first vote.
local now, forgot

local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- Whether this master may vote on an operation of a client that trusts this time (us).
local function may_vote(trusted)
  if not now then
    local time, stamp = try('TIME'), try('HGET', RECORD, 'stamp')
    if time.err or type(stamp) == 'table' then return false end
    now, forgot = time[1] * 1000000 + time[2], stamp ~= STAMP
  end
  local ahead = trusted - now
  return not forgot and ahead <= NEWEST and -ahead <= OLDEST and VOTES_FROM <= min(now, trusted)
end

-- The refusal because of this entry, if it is of another owner and has not ended.
local function held(key, entry, owner, trusted)
  local ends, token, holds = match(entry, '^(%d+) (%d+) %d+ ([1-9]%d*)$')
  local holder, label = unpack(try('HMGET', key, 'o:x', 'l:x'))
  local left = ends and ends - min(now, trusted)
  if not left or left < 0 or not holder or holder == owner then return NOT_HANDLED end
  return {'held', holder, tonumber(holds), math.ceil(left / 1000), tonumber(token), label or '', -1}
end

local function acquire(key, kind, owner, round, trusted, kept, label)
  local is_read = label and find(trusted .. ' ' .. round .. ' ' .. kept, '^[1-9]%d* [1-9]%d* [1-9]%d*$')
  if not is_read or #trusted > 16 or #round > 15 or #kept > 10 then return NOT_HANDLED end
  local known = try('HMGET', key, 'kind', 'fence', 'queued', 'x')
  local its_kind, fence, queued, entry = unpack(known)
  local is_new = not (its_kind or fence or queued or entry)
  if is_new and (known.err or try('EXISTS', key) ~= 0) then return NOT_HANDLED end
  local time = tonumber(trusted)
  if not (is_new or its_kind == kind) or not may_vote(time) then return NOT_HANDLED end
  if entry then return held(key, entry, owner, time) end
  if not is_new and (queued or not find(fence or '', '^%d+$') or not less(fence, trusted)) then
    return NOT_HANDLED
  end
  local text = format('%d', max(now, time) + kept * 1000) .. ' ' .. trusted .. ' ' .. round .. ' 1'
  local done = label == '' and try('HSET', key, 'kind', kind, 'fence', trusted, 'x', text, 'o:x', owner)
    or try('HSET', key, 'kind', kind, 'fence', trusted, 'x', text, 'o:x', owner, 'l:x', label)
  return tonumber(done) and try('PEXPIRE', key, KEY_TTL_HELD) == 1 and time or NOT_HANDLED
end

local function release(key, kind, owner, round, token)
  local its_kind, fence, queued, entry, holder = unpack(try('HMGET', key, 'kind', 'fence', 'queued', 'x', 'o:x'))
  -- `last` is no higher than `fence`, so it may be written over.
  local is_usual = token and its_kind == kind and fence == token and not queued and entry and holder == owner
  local its_token, its_round = match(is_usual and find(round, '^%d+$') and entry or '', '^%d+ (%d+) (%d+) [1-9]')
  if not its_token or its_token ~= token or less(round, its_round) then return NOT_HANDLED end
  -- HDEL is first: it runs even if memory is full, and after it the others.
  local done = tonumber(try('HDEL', key, 'x', 'o:x', 'l:x')) and tonumber(try('HSET', key, 'last', token))
  return done and try('PEXPIRE', key, KEY_TTL_FREE) == 1 and GRANTED or NOT_HANDLED
end

-- If memory is full Redis refuses only the first write of a script, so this asks before any.
local full = #KEYS > 1 and try('ZADD', KEYS[1], 'XX', '0', '')
local may_grant = not (type(full) == 'table' and find(full.err, '^OOM'))

local replies, unhandled, a = {false}, {}, 5
for i = 1, #KEYS do
  local key, verb, reply = KEYS[i], ARGV[a], NOT_HANDLED
  -- An operation waits for what is left of those before it on the same key.
  if verb == 'acquire' then
    if may_grant and not unhandled[key] then reply = acquire(key, unpack(ARGV, a + 1, a + 6)) end
    a = a + 7
  elseif verb == 'release' then
    if not unhandled[key] then reply = release(key, unpack(ARGV, a + 1, a + 4)) end
    a = a + 5
  else
    a = #ARGV + 1 -- nobody can tell where the next one begins
  end
  unhandled[key] = reply == NOT_HANDLED or nil
  replies[i + 1] = reply
end
replies[1] = not forgot and (now or 0)
return replies
