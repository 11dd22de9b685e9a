-- one: the fields of a slot, in a lock with one holder. The results are, in this order:
--   kind         the value of the field `kind`
--   field        the field of the entry
--   owner_field  the field of the entry's owner
--   raises       the field that is raised to the lease's token when that is over
--   bar          the field that must be missing or 0 for a grant; '', which no hash has, if nothing
--                but its own entry blocks a slot; nil in a lock with one holder
--   counter      the field with the number of entries; '' if they are not counted
--   bound        the field with a bound of the entries' ends
-- The last three are for kinds with several holders.
local function fields_of(slot)
  return slot, 'x', 'o:x', 'last', nil, ''
end
