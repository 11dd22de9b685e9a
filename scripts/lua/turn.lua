-- turn: a waiter that is called keeps its place until it asks, so that nobody comes in between; for
-- so long at most that the dead and the silent keep nobody waiting. It stands in the queue as
-- `!TICKET`, too, by the moment (us) when its time is over: no ticket looks so, and it ranks behind
-- those that wait.

-- How long (us) whoever is called may take to ask: many times a round trip, and a pause of a
-- machine.
local TIME_TO_ASK = 1000000

-- As whoever is refused for somebody who waits is told, for so long (us).
local function behind(name, left)
  return {'held', name, 0, ceil(left / 1000), 0, '', -1}
end

-- Gives a waiter its turn: calls it by `name`, where it was not called. Answers what to tell
-- whoever is refused for it; nothing where it is gone, or its time is over (also where it was
-- called while this clock was ahead), and its place is given up.
local function its_turn(it, ticket, name, wakes)
  local ends = call('ZSCORE', it.queue, '!' .. ticket)
  if not ends and hears(name, wakes) then
    ends = time_here() + TIME_TO_ASK
    redis.pcall('ZADD', it.queue, format('%d', ends), '!' .. ticket)
  end
  -- guard: never-called
  local left = (ends or 0) - time_here()
  if left > 0 and left <= TIME_TO_ASK then return behind(name, left) end
  step_out(it.queue, ticket)
end
