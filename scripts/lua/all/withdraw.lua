-- withdraw: take back a grant of all names that came to nothing, and take a place in the queue of each: which of them is held
-- elsewhere is not known here, and the release that is waited for comes here, too.
-- KEYS     of each name the lock, its record and its queue
-- ARGV     how many names; as for a single lock
-- Replies  as for release
-- Again    as for a single lock
local function withdraw_all(names, owner, count, round, ticket, since, waited)
  local reply, its_since, its_waited = GRANTED, tonumber(since), tonumber(waited)
  for i = 1, #names do
    local name = names[i]
    local said = withdraw(name.key, name.record, name.queue, owner, count, round, ticket, its_since, its_waited)
    reply = together(reply, said)
  end
  return reply
end
