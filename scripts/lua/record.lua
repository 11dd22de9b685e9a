-- record: writes a master's record, or fields of it, where that, the process and its history are
-- still those that the client saw.
-- KEYS     none
-- ARGV     the record's key; the stamp that the client saw, empty where it saw no record; the run
--          id and the second replication id; the time (us) that most masters show, 1 if that is
--          not known; for how long (us) from now there is no vote, empty to leave that as it is;
--          the earliest end (us) of that; the key of the decree; the incarnation that knows what it
--          promised from now on, empty to leave that as it is; for which generation, empty to leave
--          the rest of the decree as it is, the ballot that it promises, the ballot that it
--          accepted and the value of that; field, value, ...
-- Replies  {'written', time (us)}, or {'changed', time (us)}: something is another one, or it is
--          too late, and nothing was written
-- Again    a repeated run finds another stamp, and writes nothing.
local key, seen, run_id, replid2 = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local trusted, pause, least = ARGV[5], ARGV[6], tonumber(ARGV[7])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shown = string.format('%.0f', now)
local is_there = redis.call('EXISTS', key) == 1
local stamp, ends = unpack(redis.call('HMGET', key, 'stamp', 'quarantine'))
if is_there ~= (seen ~= '') or (is_there and stamp ~= seen) then return {'changed', shown} end

local function info(section, field)
  -- guard: record-info-field
  return string.match(redis.call('INFO', section), '\n' .. field .. ':([^\r\n]*)')
end

if info('server', 'run_id') ~= run_id or info('replication', 'master_replid2') ~= replid2 then
  return {'changed', shown}
end

-- A write that arrives late rests on what was known long ago.
local LATEST = 2000000
if trusted ~= '1' and math.abs(now - trusted) > LATEST then return {'changed', shown} end
if pause ~= '' then
  local from = 0
  if pause ~= '0' then
    from = math.max(now, trusted)
    -- A wrong clock wrote an end that is further ahead than a quarantine and this (us).
    local CLOCK_RANGE = 60000000
    -- guard: least-too-far
    if least > from + pause + CLOCK_RANGE then least = 0 end
  end
  ends = string.format('%.0f', math.max(from + pause, least))
end
local decree, incarnation, generation = ARGV[8], ARGV[9], ARGV[10]
local promised, ballot, value = ARGV[11], ARGV[12], ARGV[13]
if incarnation ~= '' then redis.call('HSET', decree, 'incarnation', incarnation) end
if generation ~= '' then
  redis.call('HSET', decree, 'generation', generation, 'promised', promised, 'ballot', ballot, 'value', value)
end
-- Last, as a master with a record votes: the decree counts for nothing before.
redis.call('HSET', key, 'run_id', run_id, 'replid2', replid2, 'quarantine', ends, unpack(ARGV, 14))
return {'written', shown}
