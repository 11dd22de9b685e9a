-- rw: the fields of a slot, as in one.lua. A reader's owner is in the name of its entry's field.
local function fields_of(slot, owner)
  -- guard: no-owner-field
  if slot == 'read' then return 'rw', 'r:' .. owner, 'o:r', 'last_read' end
  if slot == 'write' then return 'rw', 'x', 'o:x', 'last' end
end

-- How long (us) the word of a reader that left is kept: longer than a message of it is under way.
local WORD_LIFE = 3000000

-- One of SWEEP_EVERY grants to readers removes entries and words that are over: the one where the
-- token before leaves 1 when it is divided. Tokens are times, and no clock counts in steps of
-- seven.
local SWEEP_EVERY = 7

-- For free.lua, as in semaphore.lua.
local COUNTED = {'readers', 'longest', 'x'}

local function on_take(slot, field, ends, fence, readers, longest, writer)
  if slot == 'write' then return readers == 0 and {} end
  if writer or fence % SWEEP_EVERY == 1 then return nil end
  if readers == 0 or less(match(longest, '^%d*'), ends) then longest = ends .. ' ' .. field end
  return {'readers', readers + 1, 'longest', longest}
end

local function on_leave(slot, field, token, round, readers, writer)
  if slot == 'write' then return {}, readers == 0 end
  local word = format('%d %s %s 0', time_here() + WORD_LIFE, token, round)
  return {'readers', readers - 1, field, word}, readers < 2 and not writer
end
