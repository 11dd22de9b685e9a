-- single: what the kinds share of which there is one lock under a name. Defines functions and runs nothing, as the files of the
-- other kinds; kinds/semaphore.lua says what these are for.
-- KEYS     the lock
-- ARGV     none
-- Replies  as replies.lua has them
-- Again    writes nothing
local function count_in() end

local function count_out() end

local function has_room() end

local function pass_on() end

local function tell_permits(reply)
  return reply
end
