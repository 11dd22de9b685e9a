-- hot: the common case in few words. An owner acquires a lock with one holder that is free or was
-- never used, or is refused because another owner holds it; or releases it, and nobody waits.
-- Anything else is not handled: the client sends that operation to the full script, which does what
-- is left of it. Each operation has one key, that of its hash, and these arguments:
--   acquire  KIND OWNER ROUND TRUSTED KEPT LABEL
--   release  KIND OWNER ROUND TOKEN
--   time
-- The last one is for its first reply. The replies are those of the full script, or NOT_HANDLED.
local try, find, match, format = redis.pcall, string.find, string.match, string.format
local min, max, tonumber = math.min, math.max, tonumber
local RECORD, STAMP, VOTES_FROM, KEY_TTL_FREE = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
-- A name of which this master knows one lease, and its owner released that, is kept for
-- KEY_TTL_ONCE (ms): docs/PROTOCOL.md, H8.
local KEY_TTL_HELD, KEY_TTL_ONCE, NUMBER = '2592000000', '64000', '^[1-9]%d*$'
local OLDEST, NEWEST, GRANTED, NOT_HANDLED = 2000000, 500000, 1, -1

-- The time here (us), and whether the record is another one; nil before the first vote.
local now, forgot

local function less(a, b) return #a < #b or (#a == #b and a < b) end

-- Whether this master may vote on an operation of a client that trusts this time (us).
local function may_vote(trusted)
  -- guard: hot-time-once
  if not now then
    local time, stamp = try('TIME'), try('HGET', RECORD, 'stamp')
    -- guard: hot-time
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
  local is_read = label and find(trusted, NUMBER) and find(round, NUMBER) and find(kept, NUMBER)
  if not is_read or #round > 15 or #kept > 10 then return NOT_HANDLED end
  local known, time = try('HMGET', key, 'kind', 'fence', 'queued', 'x'), tonumber(trusted)
  -- guard: hot-known
  if known.err or not may_vote(time) then return NOT_HANDLED end
  local its_kind, fence, queued, entry = unpack(known)
  -- A name without a kind has no other field than `fence`.
  if not its_kind and try('HLEN', key) ~= (fence and 1 or 0) then return NOT_HANDLED end
  if its_kind and (its_kind ~= kind or not fence) then return NOT_HANDLED end
  if entry then return held(key, entry, owner, time) end
  if queued or fence and not (find(fence, '^%d+$') and less(fence, trusted)) then return NOT_HANDLED end
  local more = label ~= '' and {'l:x', label} or {}
  if fence and not its_kind then more[#more + 1], more[#more + 2] = 'last', fence end
  local text = format('%d', max(now, time) + kept * 1000) .. ' ' .. trusted .. ' ' .. round .. ' 1'
  local done = try('HSET', key, 'kind', kind, 'fence', trusted, 'x', text, 'o:x', owner, unpack(more))
  return tonumber(done) and try('PEXPIRE', key, KEY_TTL_HELD) == 1 and time or NOT_HANDLED
end

local function release(key, kind, owner, round, token)
  local its_kind, fence, queued, entry, holder, last =
    unpack(try('HMGET', key, 'kind', 'fence', 'queued', 'x', 'o:x', 'last'))
  local is_usual = its_kind == kind and fence == token and not queued and holder == owner
  -- guard: hot-entry
  local its_token, its_round = match(is_usual and entry or '', '^%d+ (%d+) (%d+) [1-9]')
  local is_its = its_token and its_token == token and find(round, '^%d+$') and not less(round, its_round)
  if not is_its then return NOT_HANDLED end
  -- A `fence` alone is also the `last`. HDEL runs even if memory is full, and after it the other.
  local done = tonumber(try('HDEL', key, 'kind', 'x', 'o:x', 'l:x', 'last'))
  local kept = last and KEY_TTL_FREE or KEY_TTL_ONCE
  -- guard: hot-released
  return done and try('PEXPIRE', key, kept) == 1 and GRANTED or NOT_HANDLED
end

-- If memory is full Redis refuses only the first write of a script, so this asks before any.
-- guard: hot-full
local full = #KEYS > 1 and try('ZADD', KEYS[1], 'XX', '0', '')
local may_grant = not (type(full) == 'table' and find(full.err, '^OOM'))

local replies, unhandled, a = {false}, {}, 5
for i = 1, #KEYS do
  local key, verb, reply = KEYS[i], ARGV[a], NOT_HANDLED
  -- An operation waits for what is left of those before it on the same key.
  if verb == 'acquire' then
    -- guard: hot-acquire
    if may_grant and not unhandled[key] then reply = acquire(key, unpack(ARGV, a + 1, a + 6)) end
    a = a + 7
  elseif verb == 'release' then
    -- guard: hot-release
    if not unhandled[key] then reply = release(key, unpack(ARGV, a + 1, a + 4)) end
    a = a + 5
  elseif verb == 'time' then
    -- guard: hot-asks-time
    may_vote(0) -- reads it
    -- guard: hot-tells-time
    reply, a = now and {'seen', '', 0} or NOT_HANDLED, a + 1
  end -- behind another word nobody can tell where the next operation begins
  if reply == NOT_HANDLED then unhandled[key] = true end
  replies[i + 1] = reply
end
replies[1] = not forgot and (now or 0)
return replies
