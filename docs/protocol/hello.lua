-- Quorate's protocol 2: hello. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local key = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shown = string.format('%.0f', now)
local function refuse(...)
  return {'refused', string.format(...), shown}
end
local AWRY = 1000000
local ahead = now - ARGV[2]
if math.abs(ahead) > AWRY then
  local way = ahead > 0 and 'ahead of' or 'behind'
  return refuse('CLOCK its clock is %.3f s %s the others', math.abs(ahead) / 1000000, way)
end
local function info(section, field)
  return string.match(redis.call('INFO', section), '\n' .. field .. ':([^\r\n]*)')
end
local role = info('replication', 'role')
if role ~= 'master' then return refuse('REPLICA it is a %s: its keys are not its own', role) end
local policy = info('memory', 'maxmemory_policy')
if info('memory', 'maxmemory') ~= '0' and policy ~= 'noeviction' then
  return refuse('EVICTS its maxmemory-policy is %s: it may drop locks; set noeviction', policy)
end
redis.call('HDEL', key, 'none') -- it never is there, but only a master takes this
local replies = {'master', shown, info('server', 'run_id'), info('replication', 'master_replid2')}
replies[5] = redis.call('HGET', ARGV[3], 'incarnation') or ''
for _, word in ipairs(redis.call('HGETALL', key)) do replies[#replies + 1] = word end
return replies
