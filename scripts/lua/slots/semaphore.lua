-- semaphore: the fields of a slot, as in one.lua.
local function fields_of(slot)
  local number, of = match(slot, '^(%d+)/([1-9]%d*)$')
  if not number or find(number, '^0%d') then return nil end
  return 'semaphore/' .. of, 'p:' .. number, 'o:p:' .. number, 'last:' .. number
end
