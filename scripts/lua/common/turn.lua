-- turn: a waiter that is called and keeps its place until it asks, so that nobody comes in between. For so long at most, so that the
-- dead and the silent keep nobody waiting: one that does not hear is gone, and its place with it. It stands in the queue as
-- `!TICKET`, too, by the moment (us) when its time is over: no ticket looks so, and it ranks behind those that wait, so that
-- their ranks are as if it were not there.
-- KEYS     the queue, as the files of the verbs say
-- ARGV     as the files of the verbs say
-- Replies  as the files of the verbs say
-- Again    who was called is not called again

-- How long (us) whoever is called may take to ask: many times a round trip, and a pause of a busy machine.
local TIME_TO_ASK = 1000000

local function called(ticket)
  return '!' .. ticket
end

local function step_out(queue, ticket)
  return call('ZREM', queue, ticket, called(ticket))
end

-- Calls the waiter that has this ticket; `name` is what it is called by. Answers until when (us) it may ask: no longer than now
-- where nobody hears. Where this user may call nobody, it asks by itself.
local function call_up(queue, ticket, name, time, wakes)
  local client, number = match(name, '^(.*):(%d+)$')
  local heard = client and call('PUBLISH', wakes .. client, number) or 0
  if heard == 0 then return time end
  call('ZADD', queue, format('%.0f', time + TIME_TO_ASK), called(ticket))
  return time + TIME_TO_ASK
end

-- Gives the waiter its turn: calls it, where it was not called. Answers what to tell whoever is refused for it; nothing where it
-- is gone or its time is over, and its place is given up. Refused, where that cannot be found out.
local function its_turn(queue, ticket, name, time, wakes)
  local ends = call('ZSCORE', queue, called(ticket))
  if failed(ends) then return refused(ends) end
  local left = (ends or call_up(queue, ticket, name, time, wakes)) - time
  if left > 0 then return {'held', name, '0', math.ceil(left / 1000)} end
  local gone = step_out(queue, ticket)
  if failed(gone) then return refused(gone) end
end
