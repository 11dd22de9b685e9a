-- plain: the mutex of other libraries: a STRING with the owner as its value, written by SET NX PX,
-- and removed by compare-and-delete.

-- Who holds the lock at this key, with how many holds; nil where nobody does.
local function holder_of(key)
  -- guard: nobody
  return call('GET', key) or nil, 1
end

-- Writes the key. Without `kept` its end stays.
local function put(key, owner, _, kept)
  if kept then call('SET', key, owner, 'PX', kept) end
end

-- Wakes the other library's waiters after a release: it has none that listen.
local function wake_others() end
