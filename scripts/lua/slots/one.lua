-- one: what a slot is about, in a lock with one holder. The results are, in this order:
--   kind         what `kind` of the hash says
--   field        the entry
--   owner_field  its owner
--   raises       what the lease raises when it is over
--   bar          what has to be missing or 0 for a grant; nil where nothing is counted at all, and
--                '', which no hash has, where nothing keeps a free part from being granted
--   counter      how many entries there are; '' where they are not counted
--   bound        a bound of their ends
-- The last three are of kinds with several holders.
local function fields_of(slot)
  return slot, 'x', 'o:x', 'last', nil, ''
end
