-- one: the fields of a slot, in a lock with one holder. The results are, in this order:
--   kind         the value of the field `kind`
--   field        the field of the entry
--   owner_field  the field of the entry's owner
--   raises       the field that is raised to the lease's token when that is over
local function fields_of(slot)
  return slot, 'x', 'o:x', 'last'
end
