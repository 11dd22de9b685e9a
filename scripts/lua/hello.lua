-- hello: the handshake, the first script on a new connection. It reads what the client has to know
-- before this master may vote: which process this is and which of its histories, and the record,
-- which says what process and history has seen all grants, and of which set of masters it is one.
-- KEYS     none
-- ARGV     the record's key; the time (us) as far as the client knows; the key of the decree
-- Replies  {'master', time (us), run id, second replication id, the incarnation that the decree
--          names, field, value, ...}: empty without a decree, and no fields without a record
--          {'refused', error, time (us)}
-- Again    it changes nothing; but there is a write command, so that a replica cannot answer.
local key = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shown = string.format('%.0f', now)

local function refuse(...)
  return {'refused', string.format(...), shown}
end

-- A clock that is wrong when the machine starts is corrected later, so it cannot measure a
-- quarantine. If the client does not know the other masters' time, its own clock may be that of the
-- same machine.
local AWRY = 1000000
local ahead = now - ARGV[2]
if math.abs(ahead) > AWRY then
  -- guard: clock-ahead-or-behind
  local way = ahead > 0 and 'ahead of' or 'behind'
  return refuse('CLOCK its clock is %.3f s %s the others', math.abs(ahead) / 1000000, way)
end

local function info(section, field)
  -- guard: info-field
  return string.match(redis.call('INFO', section), '\n' .. field .. ':([^\r\n]*)')
end

local role = info('replication', 'role')
if role ~= 'master' then return refuse('REPLICA it is a %s: its keys are not its own', role) end
local policy = info('memory', 'maxmemory_policy')
if info('memory', 'maxmemory') ~= '0' and policy ~= 'noeviction' then
  return refuse('EVICTS its maxmemory-policy is %s: it may drop locks; set noeviction', policy)
end

-- guard: only-a-master
redis.call('HDEL', key, 'none') -- it never is there, but only a master takes this
local replies = {'master', shown, info('server', 'run_id'), info('replication', 'master_replid2')}
replies[5] = redis.call('HGET', ARGV[3], 'incarnation') or ''
for _, word in ipairs(redis.call('HGETALL', key)) do replies[#replies + 1] = word end
return replies
