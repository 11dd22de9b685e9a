-- Quorate's protocol 2: record. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local key, seen, run_id, replid2 = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local trusted, pause, least = ARGV[5], ARGV[6], tonumber(ARGV[7])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shown = string.format('%.0f', now)
local is_there = redis.call('EXISTS', key) == 1
local stamp, ends = unpack(redis.call('HMGET', key, 'stamp', 'quarantine'))
if is_there ~= (seen ~= '') or (is_there and stamp ~= seen) then return {'changed', shown} end
local function info(section, field)
  return string.match(redis.call('INFO', section), '\n' .. field .. ':([^\r\n]*)')
end
if info('server', 'run_id') ~= run_id or info('replication', 'master_replid2') ~= replid2 then
  return {'changed', shown}
end
local LATEST = 2000000
if trusted ~= '1' and math.abs(now - trusted) > LATEST then return {'changed', shown} end
if pause ~= '' then
  local from = 0
  if pause ~= '0' then
    from = math.max(now, trusted)
    local CLOCK_RANGE = 60000000
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
redis.call('HSET', key, 'run_id', run_id, 'replid2', replid2, 'quarantine', ends, unpack(ARGV, 14))
return {'written', shown}
