-- hooks: the functions that a kind of lock may define. Its file says `function obstacle(...)`,
-- which assigns the local of that name here and no global. name.lua defines `obstacle` and
-- queue.lua `wake` for locks with one holder; a kind may replace both. The others are nil where a
-- kind does not define them. `it` is what `read` in name.lua returned. A slot is what an operation
-- is about: the kind's name, `read` or `write`, or a permit and how many there are, `3/16`.
-- `note_...` adds fields to those that the verb writes at the end.
local read_more -- (it): reads more fields into `it`
local obstacle -- (it, token): the entry that blocks a grant, or a heal with this token; drops what is over
local turn -- (it, since, waited, wakes): the refusal if a waiter goes first, though nothing blocks a grant
local note_end -- (it, ends): for an entry with a new end
local note_gone -- (it, token, round, was_here): for an entry that is removed; an undo has no token
local is_left -- (it): whether any entry is left; nil: this owner's was the only one
local has_room -- (it): whether a waiter may be granted it; nil: if no entry counts
local other_half -- (it): another entry of this owner, which forbids a transfer; nil: there is none
local wake -- (it, wakes): wakes the next waiter
local add_to_held -- (it, reply): adds items to a `held` reply
