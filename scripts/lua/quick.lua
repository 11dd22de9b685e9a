-- quick: the usual case of each verb of a lock with one holder, in line, before the functions of all cases
-- are even defined: a free lock is taken, its holder extends it or leaves, and nobody waits. Whatever is not
-- so is left to the verbs, and the rest of the call with it. Nothing is half done by that: a verb that is
-- carried out again says the same.
local WHOLE_THREE, HELD = '^[1-9]%d* [1-9]%d* [1-9]%d*$', '^(%d+) (%d+) (%d+) [1-9]'
local try = redis.pcall

local function may_vote(trusted)
  -- guard: quick-now
  return (now or pcall(time_here)) and not no_vote(number(trusted))
end

-- guard: quick-all
while a <= #ARGV and ARGV[a + 1] == '1' and not STRICT do
  local verb, count, key, slot, owner = ARGV[a], ARGV[a + 2], KEYS[k], ARGV[a + 3], ARGV[a + 4]
  local reply
  -- guard: quick-acquire
  if verb == 'acquire' and (count == '7' or (count == '12' and ARGV[a + 10] == '')) then
    local round, trusted, kept, label = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8]
    local is_whole = find(round .. ' ' .. trusted .. ' ' .. kept, WHOLE_THREE)
    local may = is_whole and may_vote(trusted)
    local said = may and try('HMGET', key, 'kind', 'fence', 'queued', 'x') or {}
    -- guard: quick-free
    local is_free = said[1] == slot and not said[3] and not said[4] and find(said[2] or '', '^%d+$')
    if is_free and less(said[2], trusted) then
      local ends = format('%d', max(now, number(trusted)) + number(kept) * 1000)
      local entry = ends .. ' ' .. trusted .. ' ' .. round .. ' 1 ' .. kept
      local done = try('HSET', key, 'fence', trusted, 'x', entry, 'o:x', owner)
      -- guard: quick-label
      if label ~= '' and tonumber(done) then done = try('HSET', key, 'l:x', label) end
      reply = tonumber(done) and try('PEXPIRE', key, KEPT_HELD) == 1 and number(trusted)
    end
  elseif verb == 'extend' and count == '9' then
    local holds, round, trusted, kept = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8]
    local token = ARGV[a + 10]
    local is_whole = find(round .. ' ' .. trusted .. ' ' .. kept, WHOLE_THREE)
    local may = is_whole and find(holds, '^[1-9]%d*$') and may_vote(trusted)
    local said = may and try('HMGET', key, 'kind', 'x', 'o:x') or {}
    -- guard: quick-held
    local till, its_token, its_round = match(said[2] or '', HELD)
    local is_its_own = said[1] == slot and said[3] == owner and its_token == token
    -- guard: quick-lives
    if is_its_own and not less(round, its_round) and min(now, number(trusted)) <= tonumber(till) then
      local ends = format('%d', max(now, number(trusted)) + number(kept) * 1000)
      local entry = ends .. ' ' .. token .. ' ' .. round .. ' ' .. holds .. ' ' .. kept
      local is_longer = not less(ends, till) and try('PEXPIRE', key, KEPT_HELD) == 1
      reply = is_longer and tonumber(try('HSET', key, 'x', entry)) and GRANTED
    end
  -- guard: quick-release
  elseif verb == 'release' and count == '9' and ARGV[a + 10] .. ARGV[a + 11] == '' then
    local holds, round, token = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
    local said = holds == '0' and try('HMGET', key, 'kind', 'fence', 'queued', 'x', 'o:x') or {}
    -- guard: quick-leaves
    local _, its_token, its_round = match(said[4] or '', HELD)
    -- guard: quick-its-own
    local is_its_own = said[1] == slot and not said[3] and said[5] == owner and its_token == token
    if is_its_own and said[2] == token and find(round, '^%d+$') and not less(round, its_round) then
      local is_gone = tonumber(try('HDEL', key, 'x', 'o:x', 'l:x'))
      local is_noted = is_gone and tonumber(try('HSET', key, 'last', token))
      -- guard: quick-done
      reply = is_noted and try('PEXPIRE', key, KEPT_FREE) == 1 and GRANTED
    end
  end
  if not reply then break end
  replies[#replies + 1], k, a = reply, k + 2, a + 3 + number(count)
end
-- guard: quick-none-left
if a > #ARGV then
  -- guard: quick-time
  replies[1] = not forgot and (now or 0)
  return replies
end
