-- free: the common case of permits, readers and writers, before the functions below are defined: an
-- owner acquires a slot that is free, of a name that was used before, or releases it, and nobody
-- waits. Anything else, and the rest of the call with it, is left to the verbs. They also do the
-- rest of what fails half-way. What is different for each kind is in its file of `slots`.
local function acquire_free(key, slot, owner, round, trusted, kept, label)
  local kind, field, owner_field = fields_of(slot, owner)
  local its_kind, fence, queued, entry, count, bound, writer =
    unpack(call('HMGET', key, 'kind', 'fence', 'queued', field, unpack(COUNTED)))
  if its_kind ~= kind or entry or queued or not find(fence, '^%d+$') then return nil end
  if no_vote(trusted, round, kept, '1', '1') then return nil end
  local token, ends = trusted, format('%d', latest + kept * 1000)
  if not less(fence, token) then token = format('%d', fence + 1) end
  local more = on_take(slot, field, ends, fence, tonumber(count) or 0, bound, writer)
  -- guard: free-unusual
  if not more then return nil end
  local at = #more
  if slot ~= 'read' then more[at + 1], more[at + 2], at = owner_field, owner, at + 2 end
  if label ~= '' then more[at + 1], more[at + 2] = 'l:' .. field, label end
  local text = ends .. ' ' .. token .. ' ' .. round .. ' 1'
  call('HSET', key, 'fence', token, field, text, unpack(more))
  call('PEXPIRE', key, KEY_TTL_HELD)
  return tonumber(token)
end

local function release_free(key, slot, owner, round, token)
  local kind, field, owner_field, raises = fields_of(slot, owner)
  local its_kind, fence, queued, entry, holder, last, count, _, writer =
    unpack(call('HMGET', key, 'kind', 'fence', 'queued', field, owner_field, raises, unpack(COUNTED)))
  local its_token, its_round = match(entry, '^%d+ (%d+) (%d+) [1-9]')
  local is_its = its_kind == kind and its_token == token and (slot == 'read' or holder == owner)
  is_its = is_its and find(round, '^%d+$') and not less(round, its_round)
  last = last or '0'
  if not is_its or queued or less(fence, token) or not find(last, '^%d+$') then return nil end
  local more, is_last = on_leave(slot, field, token, round, tonumber(count) or 0, writer)
  call('HDEL', key, field, owner_field, 'l:' .. field)
  call('HSET', key, raises, less(last, token) and token or last, unpack(more))
  if is_last then call('PEXPIRE', key, KEY_TTL_FREE) end
  return GRANTED
end

while ARGV[a + 1] == '1' do
  local verb, count, is_done, reply = ARGV[a], ARGV[a + 2], false, nil
  -- guard: free-acquire
  if verb == 'acquire' and not full and (count == '6' or (count == '11' and ARGV[a + 9] == '')) then
    -- guard: free-words
    is_done, reply = pcall(acquire_free, KEYS[k], unpack(ARGV, a + 3, a + 8))
  -- guard: free-release
  elseif verb == 'release' and count == '9' and ARGV[a + 5] == '0' and ARGV[a + 11] == '' then
    is_done, reply = pcall(release_free, KEYS[k], ARGV[a + 3], ARGV[a + 4], ARGV[a + 6], ARGV[a + 7])
  end
  if not (is_done and reply) then break end
  replies[#replies + 1], k, a = reply, k + 2, a + 3 + count
end
-- guard: free-none-left
if a > #ARGV then
  replies[1] = not forgot and (now or 0)
  return replies
end
