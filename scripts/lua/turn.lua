-- turn: a waiter that is woken keeps its place until it asks, so that nobody gets in between, but
-- no longer than TIME_TO_ASK, in case it is dead. Meanwhile the queue also has `!TICKET`, by the
-- moment (us) when that time is over. No ticket begins with `!`, and such a member ranks behind
-- those that wait.

-- How long (us) a woken waiter may take to ask: many round trips, and a pause of its machine.
local TIME_TO_ASK = 1000000

-- The refusal because of a waiter that goes first, for `left` (us).
local function held_by_waiter(name, left)
  local waiter, label = match(name, '^([^ ]*) ?(.*)$')
  return {'held', waiter, 0, ceil(left / 1000), 0, label, -1}
end

-- Gives a waiter its turn: wakes it by `name` if that was not done, and returns the refusal for
-- those who ask meanwhile. If its client is gone or its time is over, gives up its place and
-- returns nil. A time that is too long was written while this clock was ahead, so it is over, too.
local function give_turn(it, ticket, name, wakes)
  local ends = call('ZSCORE', it.queue, '!' .. ticket)
  if not ends and publish_wake(name, wakes) then
    ends = time_here() + TIME_TO_ASK
    redis.pcall('ZADD', it.queue, format('%d', ends), '!' .. ticket)
  end
  -- guard: never-woken
  local left = (ends or 0) - time_here()
  if left > 0 and left <= TIME_TO_ASK then return held_by_waiter(name, left) end
  give_up_place(it.queue, ticket)
end
