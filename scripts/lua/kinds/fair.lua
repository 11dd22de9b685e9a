-- fair: whoever has waited longest gets it: while somebody stands in the queue, a lock that is free
-- is refused to all who came later, and to those who do not wait. Whoever is refused for the first
-- in the queue calls it.

-- Whose turn it is before that of somebody who waits since `since`, or of anybody who does not
-- wait: as whoever is refused for it is told; nil where it is nobody's.
local function next_up(it, wakes, since)
  while true do
    -- guard: fair-first
    local first = call('ZRANGE', it.queue, 0, 0, 'WITHSCORES')
    -- guard: fair-none
    if not first[1] then
      call('HDEL', it.key, 'queued')
      return nil
    end
    if since and tonumber(first[2]) >= since then return nil end
    local reply = its_turn(it, first[1], first[1], wakes)
    if reply then return reply end
  end
end

function turn(it, since, waited, wakes)
  if it.entry and lives(it.entry) then return nil end -- it is its own
  return next_up(it, wakes, since and believed(since, waited))
end

wake = next_up
