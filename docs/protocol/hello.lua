-- Quorate's protocol 2: hello. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.
local key, terms, trusted, at_most, latest = ARGV[1], ARGV[2], ARGV[4], tonumber(ARGV[5]), ARGV[8]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local shown = string.format('%.0f', now)
local function refuse(...)
  return {'refused', string.format(...), shown}
end
local AWRY = 1000000
local ahead = now - ARGV[6]
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
local run_id, replid2 = info('server', 'run_id'), info('replication', 'master_replid2')
local marker = redis.call('GET', key)
local its_run, its_replid2, until_us, its_terms = string.match(marker or '', '^([^|]*)|([^|]*)|(%d+)|(.*)$')
if marker and not its_run then return refuse('WRONGTYPE the key %s is not a marker', key) end
if marker and its_terms ~= terms then
  return refuse('DISAGREES its clients have %s, and this one has %s', its_terms, terms)
end
local has_copied = replid2 ~= its_replid2 and not string.find(replid2, '^0*$')
local is_older = marker and latest ~= '' and tonumber(until_us) < tonumber(latest)
for i = 10, #ARGV do is_older = is_older or ARGV[i] == marker end
local is_known = its_run == run_id and not has_copied and not is_older
local why = is_known and 'known' or marker and 'restarted' or 'new'
if not is_known then
  local unseen = why == 'new' and latest == ''
  local kept = trusted == 'fsync' and ARGV[7] == '1' and not is_older
  kept = kept and (unseen or (why == 'restarted' and not has_copied))
  local old = trusted == 'uptime' and unseen and tonumber(info('server', 'uptime_in_seconds')) >= at_most
  if trusted == 'none' or old then
    until_us = '0'
  elseif kept then
    until_us = until_us or '0'
  elseif ARGV[9] ~= '1' then
    return refuse('CLOCK it is not known yet what time most masters show')
  else
    until_us = string.format('%.0f', now + ARGV[3])
  end
end
local text = run_id .. '|' .. replid2 .. '|' .. until_us .. '|' .. terms
if text ~= marker then
  redis.call('SET', key, text)
else
  redis.call('SET', key, text, 'NX') -- changes nothing, but only a master takes it
end
return {'welcome', text, until_us, shown, why}
