-- one: what a slot is about, in a lock with one holder: the kind, the fields of the entry, of its
-- owner, and of what the lease raises when it is over. What other kinds have besides is missing or
-- empty here: the field that has to be missing or 0 for a grant, the one that counts the entries,
-- and a bound of their ends.
local function fields_of(slot)
  return slot, 'x', 'o:x', 'last', nil, ''
end
