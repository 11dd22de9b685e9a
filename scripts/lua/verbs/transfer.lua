-- transfer: give the lock from one owner to another, and make it live for at least another TTL.
-- KEYS     the lock, and its record
-- ARGV     the owner that is to have it, its hold count, TTL in ms, round of the new owner's client; the token that the
--          client proposes for a new grant, or nothing where the token stays as it is; how long the lock is kept from
--          others if it is not released (ms); and the owner that has it
-- Replies  its token, granted where that stays as it is, held, absent, stale or refused (see replies.lua)
-- Again    a repeated run finds the new owner there and writes the same again, with the same token.
local function transfer(key, record, to, count, ttl, round, proposal, watch, from)
  local no_vote = withheld()
  if no_vote then return no_vote end
  local found, reply, fence = look(key, record, to, round)
  local left
  if found ~= 'mine' then
    -- Rounds of two clients do not compare, so none is later than another here.
    if reply ~= ABSENT and reply[1] == 'stale' then return reply end
    found, reply, fence = look(key, record, from, math.huge)
    if found ~= 'mine' then return reply end
    if now and proposal ~= '' then
      local last, other = last_fence(record)
      if not last then return other end
      -- guard: transfer-token-rises
      fence, reply = next_fence(max(last, tonumber(fence) or 0), proposal)
      if not fence then return reply end
    end
    found, left = give(key, from, to)
    if not found then return left end
  end
  -- guard: transfer-unguarded
  local err = write(found, key, record, to, count, ttl, round, now and fence or nil, watch, left)
  if err then return {'refused', err} end
  return now and proposal ~= '' and tonumber(fence) or GRANTED
end
