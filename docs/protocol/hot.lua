-- Quorate's protocol 2: hot. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local try, find, match, format = redis.pcall, string.find, string.match, string.format
local min, max, tonumber = math.min, math.max, tonumber
local RECORD, STAMP, VOTES_FROM, KEY_TTL_FREE = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local KEY_TTL_HELD, KEY_TTL_ONCE, NUMBER = '2592000000', '64000', '^[1-9]%d*$'
local OLDEST, NEWEST, GRANTED, NOT_HANDLED = 2000000, 500000, 1, -1
local now, forgot
local function less(a, b) return #a < #b or (#a == #b and a < b) end
local function may_vote(trusted)
  if not now then
    local time, stamp = try('TIME'), try('HGET', RECORD, 'stamp')
    if time.err or type(stamp) == 'table' then return false end
    now, forgot = time[1] * 1000000 + time[2], stamp ~= STAMP
  end
  local ahead = trusted - now
  return not forgot and ahead <= NEWEST and -ahead <= OLDEST and VOTES_FROM <= min(now, trusted)
end
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
  if known.err or not may_vote(time) then return NOT_HANDLED end
  local its_kind, fence, queued, entry = unpack(known)
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
  local its_token, its_round = match(is_usual and entry or '', '^%d+ (%d+) (%d+) [1-9]')
  local is_its = its_token and its_token == token and find(round, '^%d+$') and not less(round, its_round)
  if not is_its then return NOT_HANDLED end
  local done = tonumber(try('HDEL', key, 'kind', 'x', 'o:x', 'l:x', 'last'))
  local kept = last and KEY_TTL_FREE or KEY_TTL_ONCE
  return done and try('PEXPIRE', key, kept) == 1 and GRANTED or NOT_HANDLED
end
local full = #KEYS > 1 and try('ZADD', KEYS[1], 'XX', '0', '')
local may_grant = not (type(full) == 'table' and find(full.err, '^OOM'))
local replies, unhandled, a = {false}, {}, 5
for i = 1, #KEYS do
  local key, verb, reply = KEYS[i], ARGV[a], NOT_HANDLED
  if verb == 'acquire' then
    if may_grant and not unhandled[key] then reply = acquire(key, unpack(ARGV, a + 1, a + 6)) end
    a = a + 7
  elseif verb == 'release' then
    if not unhandled[key] then reply = release(key, unpack(ARGV, a + 1, a + 4)) end
    a = a + 5
  elseif verb == 'time' then
    may_vote(0) -- reads it
    reply, a = now and {'seen', '', 0} or NOT_HANDLED, a + 1
  end -- behind another word nobody can tell where the next operation begins
  if reply == NOT_HANDLED then unhandled[key] = true end
  replies[i + 1] = reply
end
replies[1] = not forgot and (now or 0)
return replies
