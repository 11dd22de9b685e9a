-- semaphore: the fields of a slot, as in one.lua.
local function fields_of(slot)
  local number, of = match(slot, '^(%d+)/([1-9]%d*)$')
  if not number or find(number, '^0%d') then return nil end
  return 'semaphore/' .. of, 'p:' .. number, 'o:p:' .. number, 'last:' .. number
end

-- For free.lua: the fields that it reads as well; those that a grant writes, or nil if it is no
-- usual one; and those of a release, and whether no entry is left.
local COUNTED = {'entries', 'over'}

local function on_take(_, _, ends, _, entries, over)
  return not (over and less(ends, over)) and {'entries', entries + 1}
end

local function on_leave(_, _, _, _, entries)
  return {'entries', entries - 1}, entries < 2
end
