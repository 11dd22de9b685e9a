-- harness: what stands around a script. It gives the script the names it may use, and brings its result into a form that is
-- quick to read: a tag, and what there is to say.
--
-- Gets  call     carries a command out: its reply, or it raises an error
--       native   carries a command out: its reply, or a table with `err`
--       raised   the text of such an error, or of another one of the host's
--       position the source and line of the script that failed
--       sha1hex  the digest of a text
--       names    the globals of a script that are to be Lua's own
-- Gives the table of globals, and the function that runs a script
--
-- As in Redis, a script can neither make a global nor read one that is not there. Unlike there, it could set those that are.
local call, native, raised, position, sha1hex, names = ...
local error, pcall, rawget, rawset, select, setmetatable = error, pcall, rawget, rawset, select, setmetatable
local tostring, type, unpack, xpcall = tostring, type, unpack, xpcall

local VALUE, ERROR, STATUS, LIST = 0, 1, 2, 3

-- A longer list is not handed over on the stack.
local MOST_ON_STACK = 200

local redis = {
  call = call, pcall = native, sha1hex = sha1hex, LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
}

local WRONG = {err = 'ERR wrong number or type of arguments'}

function redis.error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then return WRONG end
  text = text:gsub('^%-', '')
  if not text:find(' ', 1, true) then text = 'ERR ' .. text end
  return {err = text}
end

function redis.status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then return WRONG end
  return {ok = text}
end

function redis.log() end

-- Lua's own, but that the error of a command is caught as its text.
local function caught(ok, ...)
  local err = ...
  if ok then return ok, ... end
  if type(err) == 'userdata' then return false, raised(err) end
  if type(err) == 'table' and type(err.err) == 'string' then return false, err.err end
  return false, err
end

local globals = {redis = redis, KEYS = {}, ARGV = {}, pcall = function(...) return caught(pcall(...)) end}
for name in names:gmatch('%S+') do globals[name] = _G[name] end
globals._G = globals
function globals.rawset(t, ...)
  if t == globals then error('Attempt to modify a readonly table', 2) end
  return rawset(t, ...)
end
setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function() error('Attempt to modify a readonly table', 2) end,
})

local function failed(err)
  if type(err) == 'userdata' then return {err = raised(err), at = position()} end
  if type(err) ~= 'table' then err = {err = 'ERR ' .. tostring(err)} end
  return {err = err.err, at = position()}
end

local function run(script, keys, argv)
  globals.KEYS, globals.ARGV = keys, argv
  local ok, reply = xpcall(script, failed)
  if not ok then return ERROR, tostring(reply.err), reply.at end
  if type(reply) ~= 'table' then return VALUE, reply end
  local err, status = rawget(reply, 'err'), rawget(reply, 'ok')
  if type(err) == 'string' then return ERROR, err end
  if type(status) == 'string' then return STATUS, status end
  if #reply > MOST_ON_STACK then return VALUE, reply end
  return LIST, unpack(reply)
end

return globals, run
