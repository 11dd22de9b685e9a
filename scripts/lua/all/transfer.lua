-- transfer: give all names from one owner to another, and make them live for at least another TTL; or none.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names; as for a single lock
-- Replies  the one token of all names, granted where that stays as it is; what a single lock says of the first name that cannot be
--          given
-- Again    as for a single lock

-- Why a name cannot be given, or nil. A single lock looks at it again, and takes it from its owner at once.
local function cannot_give(key, record, to, round, from)
  local found, reply = look(key, record, to, round)
  if not found and reply[1] ~= 'stale' then found, reply = look(key, record, from, math.huge) end
  return reply
end

local function transfer_all(names, to, count, ttl, round, proposal, watch, from)
  local no_vote = withheld()
  if no_vote then return no_vote end
  -- guard: all-can-be-given
  for i = 1, #names do
    local reply = cannot_give(names[i].key, names[i].record, to, round, from)
    if reply then return reply end
  end
  local reply = all_or_none(names, transfer, to, count, ttl, round, proposal, watch, from)
  return proposal == '' and without_token(reply) or reply
end
