-- plain: the mutex of other libraries: SET NX PX, and compare-and-delete. A STRING, its value the
-- owner.

-- Who holds the lock at this key, with how many holds; nil where nobody does.
local function holder_of(key)
  -- guard: nobody
  return call('GET', key) or nil, 1
end

-- Without `kept` it ends when it did.
local function put(key, owner, _, kept)
  if kept then call('SET', key, owner, 'PX', kept) end
end

-- Tells the other library's waiters of a release.
local function tell_others() end
