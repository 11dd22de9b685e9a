-- rw: the fields of a slot, as in one.lua. A reader's owner is in the name of its entry's field.
local function fields_of(slot, owner)
  -- guard: no-owner-field
  if slot == 'read' then return 'rw', 'r:' .. owner, 'o:r', 'last_read' end
  if slot == 'write' then return 'rw', 'x', 'o:x', 'last' end
end
