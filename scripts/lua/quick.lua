-- quick: the common case, written out at the top of the script, so that a call that needs nothing
-- else does not pay for defining the functions below: an owner acquires a free name or releases it,
-- and nobody is in its queue; or it extends its lease. All else (a name that was never used,
-- several names) is left to the verbs, and the rest of the call with it. So is an
-- operation that fails half-way: the verb does the rest, and replies the same.
--
-- An example, the acquire of a lock that was used before: HMGET kind fence queued x -> ['lock',
-- '17', nil, nil]; T > 17, so HSET fence T x 'UNTIL T ROUND 1' o:x OWNER, PEXPIRE; reply T.
--
-- A first reading can skip what is for readers, writers and permits. For a lock these are nil,
-- false or '', or not looked at: `bar` and `is_barred` (another field that blocks), `counter` and
-- `many` (the number of entries), `bound`, `limit` and `reads` (a bound of the entries' ends, and
-- whether it is that of readers).
--
-- Where the arguments of an operation are, from its verb at `a`:
--   acquire  3 slot  4 owner  5 round  6 trusted  7 kept   8 label  9 before
--   extend   3 slot  4 owner  5 holds  6 round    7 trusted  8 kept  9 label  10 token  11 heals
--   release  3 slot  4 owner  5 holds  6 round  7 token  8 first  9 wakes  10 place  11 breaks
local try, tonumber = redis.pcall, tonumber

-- How long (us) the word of a reader that left is kept: longer than a message of it is under way.
-- And one of so many grants to readers is left to the verb, which removes what is over: if the
-- token before leaves 1 when it is divided by seven. Tokens are times, and no clock counts in steps
-- of seven.
local WORD_LIFE, SWEEP_EVERY = 3000000, 7

-- guard: quick-all
while a <= #ARGV and ARGV[a + 1] == '1' do
  local verb, count, key, slot, owner = ARGV[a], ARGV[a + 2], KEYS[k], ARGV[a + 3], ARGV[a + 4]
  if not owner then break end
  local kind, field, owner_field, raises, bar, counter, bound = fields_of(slot, owner)
  local found, is_barred, many
  if bar then
    found = try('HMGET', key, 'kind', 'fence', 'queued', field, owner_field, raises, bar, counter, bound)
    is_barred, many = found[7] and found[7] ~= '0', tonumber(found[8]) or 0
  -- guard: quick-free-fields
  elseif verb == 'acquire' then
    found = try('HMGET', key, 'kind', 'fence', 'queued', field)
  else
    found = try('HMGET', key, 'kind', 'fence', 'queued', field, owner_field)
  end
  -- guard: quick-kind
  if not kind or found[1] ~= kind then break end
  -- guard: quick-limit
  local fence, queued, entry, reads, limit = found[2], found[3], found[4], bound == 'longest', found[9] or ''
  local its_end, its_token, its_round
  if entry then its_end, its_token, its_round = match(entry, '^(%d+) (%d+) (%d+) [1-9]') end
  local is_its_own = reads or found[5] == owner
  local reply
  -- guard: quick-acquire
  local is_new = verb == 'acquire' and (count == '6' or (count == '11' and ARGV[a + 9] == ''))
  if is_new or (verb == 'extend' and count == '9') then
    local at = is_new and a + 5 or a + 6
    local round, trusted, kept, label = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local holds, token, is_usual = '1', trusted, nil
    if is_new then
      -- guard: quick-free
      local is_free = not (entry or queued or is_barred) and find(fence or '', '^%d+$')
      is_usual = is_free and less(fence, token) and not (reads and fence % SWEEP_EVERY == 1)
      fence = token
    else
      holds, token = ARGV[a + 5], ARGV[a + 10]
      is_usual = is_its_own and its_token == token and not less(round, its_round)
    end
    -- A call of one operation finds out by its first write.
    -- guard: quick-full
    if is_new and full then is_usual = false end
    -- guard: quick-now
    if is_usual and (now or pcall(time_here)) and not no_vote(trusted, round, kept, holds, token) then
      local ends = format('%d', latest + kept * 1000)
      local text = ends .. ' ' .. token .. ' ' .. round .. ' ' .. holds
      local may = is_new or (earliest <= tonumber(its_end) and not less(ends, its_end))
      -- guard: quick-kept
      if not is_new then may = may and try('PEXPIRE', key, KEY_TTL_HELD) == 1 end
      local other_field, value = owner_field, owner
      if reads then
        local is_longest = many == 0 or less(match(limit, '^%d*'), ends)
        other_field, value = bound, is_longest and ends .. ' ' .. field or limit
      else
        may = may and not less(ends, limit)
      end
      local done
      if may and counter == '' then
        done = try('HSET', key, 'fence', fence, field, text, other_field, value)
      elseif may then
        many = is_new and many + 1 or many
        done = try('HSET', key, 'fence', fence, field, text, other_field, value, counter, many)
      end
      -- guard: quick-label
      if is_new and label ~= '' and tonumber(done) then done = try('HSET', key, 'l:' .. field, label) end
      -- guard: quick-kept-new
      if is_new then done = tonumber(done) and try('PEXPIRE', key, KEY_TTL_HELD) end
      reply = tonumber(done) and (is_new and trusts or GRANTED)
    end
  -- guard: quick-release
  elseif verb == 'release' and count == '9' and ARGV[a + 5] .. ARGV[a + 10] .. ARGV[a + 11] == '0' then
    local round, token, last = ARGV[a + 6], ARGV[a + 7], found[6] or '0'
    local is_usual = is_its_own and its_token == token and not queued and find(round, '^%d+$')
    local is_known = fence == token -- and so `last`, which is no higher, may be written over
    -- guard: quick-fence
    if bar then is_known = not less(fence or '', token) and find(last, '^%d+$') end
    -- guard: quick-word-now
    if is_usual and is_known and not less(round, its_round) and (not reads or now or pcall(time_here)) then
      local done = try('HDEL', key, field, owner_field, 'l:' .. field)
      if tonumber(done) then done = try('HSET', key, raises, less(last, token) and token or last) end
      if reads then
        try('HSET', key, counter, many - 1, field, format('%d %s %s 0', now + WORD_LIFE, token, round))
      elseif counter ~= '' then
        try('HSET', key, counter, many - 1)
      end
      local is_left = is_barred or (many and many > 1)
      -- guard: quick-done
      reply = tonumber(done) and (is_left or try('PEXPIRE', key, KEY_TTL_FREE) == 1) and GRANTED
    end
  end
  if not reply then break end
  replies[#replies + 1], k, a = reply, k + 2, a + 3 + count
end
-- guard: quick-none-left
if a > #ARGV then
  -- guard: quick-time
  replies[1] = not forgot and (now or 0)
  return replies
end
