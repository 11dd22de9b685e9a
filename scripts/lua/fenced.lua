-- fenced: writes a value that is guarded by a fence, unless a later holder of the lock wrote one.
-- Or writes the fence alone, before the value is read.
--
-- The value is a HASH of two fields: `value`, and `fence`, the highest that has written it. Both
-- are in one key, so that they cannot part: an eviction, a rename or a copy takes both, in a
-- cluster they share a slot whatever the name, and a reader can see whose value it is. After a
-- plain SET, which ignores the fence, the next write here is an error, and no late one gets in.
-- Fences are strings, and compared as numbers: below 2^53 Lua's numbers are exact.
--
-- KEYS     the value
-- ARGV     fence, value, TTL in ms. Without a TTL, or with an empty one, the key never expires,
--          also where it would have: as with SET, the last write decides. The fence is forgotten
--          with the key, so a TTL must be longer than any write can be late. Without a value the
--          fence alone is written, and no TTL changes: from then on no earlier holder writes, so
--          what is read next is what the next write of this one comes after
-- Replies  the highest fence that was here, a number: the given one means that it was written, a
--          higher one that it was stale and nothing was. An error, with nothing written, where an
--          argument cannot be used or the key has something else
-- Again    a repeated run writes the same once more. If another write of the same fence came in
--          between, the repeated run brings back the older value: within a grant, each write has to
--          wait for the reply to the one before.
-- guard: missing-fence
local key, fence, value, ttl = KEYS[1], ARGV[1] or '', ARGV[2], ARGV[3] or ''

-- Whether this is a whole number from 1 to 2^53 - 1, written as such.
local function whole(text)
  -- guard: largest-whole
  return string.find(text, '^[1-9]%d*$') and tonumber(text) < 9007199254740992
end

local wrong = not whole(fence) and 'ERR the fence must be a whole number from 1 to 2^53 - 1'
  or ttl ~= '' and not whole(ttl) and 'ERR the TTL must be whole milliseconds, 1 at least'
if wrong then return redis.error_reply(wrong) end

local seen = redis.call('HGET', key, 'fence')
local fields = redis.call('HLEN', key)
if seen and (fields > 2 or not whole(seen)) or not seen and fields > 0 then
  return redis.error_reply('WRONGTYPE the hash at this key is not a value with a fence')
end
if seen and tonumber(seen) > tonumber(fence) then return tonumber(seen) end

if not value then
  redis.call('HSET', key, 'fence', fence)
  return tonumber(fence)
end
redis.call('HSET', key, 'fence', fence, 'value', value)
if ttl == '' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ttl) end
return tonumber(fence)
