-- semaphore: how the permits of a semaphore are kept. Each permit is a reentrant lock of its own, with its own record, at
-- `NAME:PERMIT/PERMITS`, where NAME is the semaphore's key. There is a ZSET at NAME itself: the permits that are taken here, as
-- `PERMIT/PERMITS`, by the moment (us) after which others may have them. It says how many permits there are, and which may be
-- asked for; who has a permit says the permit's own key. No other kind has a ZSET, so a name is of one kind at a time.
-- KEYS     the permit; the semaphore's key is made of it, and in the same cluster slot
-- ARGV     as the files of the verbs say
-- Replies  as replies.lua has them
-- Again    writes the same

-- What a permit's key is made of: the semaphore's key, and the permit's member there, with its number and that of all.
local PERMIT, MEMBER = '^(.*):((%d+)/(%d+))$', '^(%d+)/(%d+)$'

-- How much is at a permit's key; or an error, where the semaphore has another number of permits, or its key is no semaphore's.
local size_of_lock = size
local function size(key)
  local name, _, _, permits = match(key, PERMIT)
  local last = call('ZRANGE', name, -1, -1, 'WITHSCORES')
  if failed(last) then return last end
  -- guard: any-permit-taken
  if last[1] then
    local _, others = match(last[1], MEMBER)
    if not others then return {err = 'WRONGTYPE the sorted set at this key is not a semaphore'} end
    if others ~= permits then
      local time = time_here()
      if failed(time) then return time end
      if tonumber(last[2]) >= time then return {err = 'PERMITS ' .. others .. ' are there, and not ' .. permits} end
    end
  end
  return size_of_lock(key)
end

-- Notes that the permit is taken for `kept` ms, and takes one off that is over. Answers an error, or nil.
local function count_in(key, kept)
  local name, member = match(key, PERMIT)
  local time = time_here()
  if failed(time) then return failed(time) end
  -- guard: first-permit-over
  local first = call('ZRANGE', name, 0, 0, 'WITHSCORES')
  if first[2] and tonumber(first[2]) < time then call('ZREM', name, first[1]) end
  local done = call('ZADD', name, format('%.0f', time + kept * 1000), member)
  if failed(done) then return failed(done) end
  local left = call('PTTL', name)
  if failed(left) then return failed(left) end
  -- guard: semaphore-ttl-rises
  if left < tonumber(kept) then done = call('PEXPIRE', name, format('%.0f', kept)) end
  return failed(done)
end

-- Notes that the permit is free. Where that fails, it is not asked for until it would have been over.
local function count_out(key)
  local name, member = match(key, PERMIT)
  call('ZREM', name, member)
end

-- The permits that are taken here, the one at `key` among them, and the moment at which the first of the others is over, if
-- there is one.
local function taken(key)
  local name, member, _, permits = match(key, PERMIT)
  local time, all = time_here(), call('ZRANGE', name, 0, -1, 'WITHSCORES')
  local members, first = {member}, nil
  if failed(time) then return members, first, permits end
  for i = 1, #all, 2 do
    local ends = tonumber(all[i + 1])
    if ends >= time then
      if all[i] ~= member then members[#members + 1] = all[i] end
      first = first or math.ceil((ends - time) / 1000)
    end
  end
  return members, first, permits
end

-- Whether there is a permit besides the one at `key` that may be had.
local function has_room(key)
  local members, _, permits = taken(key)
  return #members < tonumber(permits)
end

-- Calls the next waiter where another permit is free: whoever was called for several releases takes one permit only.
local function pass_on(queue, wakes, key)
  -- guard: somebody-waits
  if call('ZCARD', queue) ~= 0 and has_room(key) then wake(queue, wakes, key) end
end

-- Adds to the reply of whoever is refused the permit at `key` which ones are taken, and how soon (ms) one of them is over.
local function tell_permits(reply, key)
  -- guard: permits-only-where-held
  if reply[1] ~= 'held' then return reply end
  local members, first = taken(key)
  -- guard: no-place-no-version
  reply[5], reply[6], reply[7] = -1, reply[6] or '', reply[7] or 0
  reply[8], reply[9] = members, first or -1
  return reply
end
