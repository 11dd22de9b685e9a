-- semaphore: each permit has an entry, and a `last` of its own. `entries` is the number of entries.
-- `over` is a moment (us) before which none of them ends, so that a refusal need not look at all of
-- them. The functions without `local` are hooks.

-- How many free permits a refusal lists, and how many entries one HMGET reads.
-- guard: at-once
local MOST_LISTED, PER_HMGET = 32, 100

function read_more(it)
  local number, of = match(it.slot, '^(%d+)/(%d+)$')
  it.number, it.of, it.floor = tonumber(number), tonumber(of), match(it.last, '^%d+')
  -- guard: last-of-size
  if not it.is_same then it[it.raises] = nil end
  local values = call('HMGET', it.key, 'entries', 'over')
  -- guard: over-of-size
  it.entries, it.over = it.is_same and tonumber(values[1]) or 0, it.is_same and tonumber(values[2])
end

function note_end(it, ends)
  if not it.entry then
    it.entries = it.entries + 1
    note(it, 'entries', it.entries)
  end
  -- guard: over-equal
  if it.over and tonumber(ends) < it.over then drop(it, 'over') end
end

function note_gone(it, _, _, was_here)
  if not was_here then return end
  it.entries = it.entries - 1
  note(it, 'entries', it.entries)
end

function is_left(it)
  return it.entries > 0
end

-- An entry that is over makes room, too.
function has_room(it)
  -- guard: room-equal
  return it.entries < it.of or (it.over and it.over < time_here())
end

-- Adds which other permits are free here, beginning after the one that was asked for, and how soon
-- (ms) the first of the others ends; -1 if the name is of another kind.
function add_to_held(it, reply)
  local free, first = {}, it.entry and tonumber(it.entry.ends)
  local looked, others = 0, it.is_same and it.of - 1 or 0
  -- guard: over-known
  if it.entries == it.of and it.over and it.over > earliest then first, others = it.over, 0 end
  -- guard: told-enough
  while looked < others and #free < MOST_LISTED do
    local fields = {}
    -- guard: looked-together
    for i = 1, min(PER_HMGET, others - looked) do fields[i] = 'p:' .. (it.number + looked + i) % it.of end
    local values = call('HMGET', it.key, unpack(fields))
    for i = 1, #fields do
      local ends = values[i] and tonumber(match(values[i], '^%d+'))
      if ends and ends >= earliest then
        first = min(first, ends)
      elseif #free < MOST_LISTED then
        free[#free + 1] = (it.number + looked + i) % it.of
      end
    end
    looked = looked + #fields
    if looked == others and #free == 0 then redis.pcall('HSET', it.key, 'over', format('%d', first)) end
  end
  reply[8], reply[9] = free, first and max(0, ceil((first - earliest) / 1000)) or -1
end
