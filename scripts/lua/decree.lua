-- decree: what this master promised, and accepted, about the next generation of its set: Paxos, of
-- which each master of the set is an acceptor. An operation has no names. Its arguments are the
-- key of the decree, the set, the number of its next generation, a ballot, a value, or nothing to
-- ask for a promise, and the time (us) that most masters show, 1 if that is not known. Ballots are
-- whole numbers. A promise replies the ballot and the value that were accepted before, both empty
-- where none were; an acceptance replies 1. Otherwise the reply is what keeps the master from it:
-- {'promised', ballot} a later one, or for a value another one; {'quarantined'} it accepts nothing
-- yet; {'other', generation} it is in another set or generation, or no member; {'forgot'} it does
-- not know what it promised.
local function decree(key, set, generation, ballot, value, trusted)
  time_here()
  if forgot then return {'forgot'} end
  local here = call('HMGET', RECORD, 'incarnation', 'generation', 'state', 'set')
  if here[3] ~= 'member' or here[4] ~= set or here[2] + 1 ~= tonumber(generation) then return {'other', here[2]} end
  local known = call('HMGET', key, 'incarnation', 'generation', 'promised', 'ballot', 'value')
  if known[1] ~= here[1] then
    forgot = true -- the client makes the handshake again
    return {'forgot'}
  end
  local promised, before, text = known[3], known[4], known[5]
  if known[2] ~= generation then promised, before, text = '', '', '' end
  if value ~= '' then
    -- A ballot that was promised before this master forgot is none that it promised.
    if ballot ~= promised then return {'promised', promised} end
    if min(now, tonumber(trusted)) < VOTES_FROM then return {'quarantined'} end
    call('HSET', key, 'ballot', ballot, 'value', value)
    return GRANTED
  end
  if less(ballot, promised) then return {'promised', promised} end
  call('HSET', key, 'generation', generation, 'promised', ballot, 'ballot', before, 'value', text)
  return {'accepted', before, text}
end

-- guard: decree-all
while a <= #ARGV do
  replies[#replies + 1] = decree(ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8])
  a = a + 9
end
replies[1] = not forgot and now
return replies
