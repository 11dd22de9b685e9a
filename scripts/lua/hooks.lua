-- hooks: what a kind of lock may define, as `function obstacle(...)` in its file, which assigns the
-- local of that name here; what it leaves out is as with one holder at a time. `it`
-- is what name.lua read. A slot is what an operation is about: the kind's name, `read` or `write`,
-- or a permit and how many there are, `3/16`.
local note_more -- (it): reads and notes more
local obstacle -- (it, token): who is in the way of a grant, or of a heal with this token; notes who is over
local turn -- (it, since, waited, wakes): the reply where somebody else goes first, though it is free
local note_end -- (it, ends, round, kept): writes what follows from an entry's new end
local note_gone -- (it, token, round, was_here): the same where its entry is gone; an undo has no token
local is_left -- (it): whether an entry is left; its own
local has_room -- (it): whether somebody who waits may get in; where no entry counts
local beside -- (it): what else its owner has, which keeps it from being given away; nothing
local wake -- (it, wakes): calls whoever is next
local tell -- (it, reply): adds to what whoever is refused is told
