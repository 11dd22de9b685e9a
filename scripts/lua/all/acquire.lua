-- acquire: take all names for one owner, by a new grant with one token; or none, and take a place in the queue of the first
-- name that is held. Whoever was called here, and is refused for another name, calls the next one in its place.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names; as for `queue` of a single lock; what wake channels begin with
-- Replies  its token, granted where there are no guards; what a single lock says of the first name that cannot be taken
-- Again    as for a single lock

-- A version to watch is that of a lease, whichever name shows it: a lease over several names is watched once, and no other
-- that happens to have the same numbers.
local function version_of(version, owner)
  return version .. ':' .. owner
end

-- The version of a record as a single lock has it, where it was watched for long enough.
local function its_seen(record, seen)
  if seen == '' then return seen end
  local last, grant = last_fence(record)
  if last and grant and string.find(seen, ',' .. version_of(grant.version, grant.owner) .. ',', 1, true) then
    -- guard: seen-version
    return ',' .. grant.version .. ','
  end
  -- guard: seen-nothing
  return ','
end

local function acquire_one(key, record, owner, count, ttl, round, proposal, watch, seen)
  local reply = acquire(key, record, owner, count, ttl, round, proposal, watch, its_seen(record, seen))
  -- guard: version-to-watch
  if type(reply) == 'table' and reply[6] then reply[6] = version_of(reply[6], reply[2]) end
  return reply
end

-- Gives up a place in every queue. Answers whether there was none any more: whoever had one was called.
local function give_up(names, ticket)
  local places = 0
  for i = 1, #names do
    -- guard: places-given-up
    places = places + (tonumber(call('ZREM', names[i].queue, ticket)) or 1)
  end
  return places == 0
end

-- Calls the next one for each name that is free.
local function pass_on(names, wakes)
  for i = 1, #names do
    if size(names[i].key) == 0 then wake(names[i].queue, wakes) end
  end
end

local function acquire_all(names, owner, count, ttl, round, proposal, watch, seen, before, ticket, since, waited, wakes)
  local reply, at = all_or_none(names, acquire_one, owner, count, ttl, round, proposal, watch, seen)
  local was_called = before ~= '' and give_up(names, before)
  if type(reply) ~= 'table' or reply[1] ~= 'held' then return reply end
  if was_called then pass_on(names, wakes) end
  if ticket ~= '' then reply[5] = stand(names[at].queue, ticket, tonumber(since), tonumber(waited)) end
  return reply
end
