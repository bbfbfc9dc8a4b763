"""The scripts that the server runs. Each is one atomic act: nobody sees, or does, anything in between.

``KEYS[1]`` is the hash of the progress place. Its fields are ``id``, and of each sink ``<sink>/run``,
``<sink>/holder/<writer>`` and ``<sink>/record/<writer>``.

Redis does not undo what a script has done before it fails. So :data:`COMMIT` looks at everything that can be
wrong before it changes anything, and takes back the rows that it has added when the server refuses one.
"""

from __future__ import annotations

GROUP = "_sinks:"
"""A consumer group that begins like this is the stream's identity: it goes where the stream goes, and is gone
with it. Nobody reads by it."""

_DEMAND_RUN = """
local run = redis.call('HGET', KEYS[1], ARGV[1] .. '/run')
if run ~= ARGV[2] then return {'run', run or 'none'} end
"""
_ID_OF = """
local function id_of(key)
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    for at = 1, #group, 2 do
      local value = group[at + 1]
      if group[at] == 'name' and string.sub(value, 1, 7) == '_sinks:' then return string.sub(value, 8) end
    end
  end
  return ''
end
"""

LOOK = (
    _ID_OF
    + """
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'stream' then return {kind, '', 0} end
return {kind, id_of(KEYS[1]), redis.call('XLEN', KEYS[1])}
"""
)
"""KEYS: stream. Returns its type, its id, and how many entries it has."""

MAKE_STREAM = """
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '$', 'MKSTREAM')
end
return {'ok'}
"""
"""KEYS: stream. ARGV: the name of its group."""

RESET = (
    _ID_OF
    + _DEMAND_RUN
    + """
local kind = redis.call('TYPE', KEYS[2]).ok
if kind == 'none' then return {'ok'} end
if kind ~= 'stream' or id_of(KEYS[2]) ~= ARGV[3] then return {'other', KEYS[2]} end
if ARGV[4] == 'empty' then redis.call('XTRIM', KEYS[2], 'MAXLEN', 0) else redis.call('UNLINK', KEYS[2]) end
return {'ok'}
"""
)
"""KEYS: progress, stream. ARGV: sink, run, the id that the stream must have, ``empty`` or ``delete``."""

TAKE_WRITER = (
    _DEMAND_RUN
    + """
redis.call('HSET', KEYS[1], ARGV[1] .. '/holder/' .. ARGV[3], ARGV[4])
return {'ok', redis.call('HGET', KEYS[1], ARGV[1] .. '/record/' .. ARGV[3]) or ''}
"""
)
"""KEYS: progress. ARGV: sink, run, writer, its new holder. Returns the writer's last record."""

ANNOUNCE = (
    _DEMAND_RUN
    + """
redis.call('HSET', KEYS[1], ARGV[1] .. '/record/' .. ARGV[3], ARGV[4])
return {'ok'}
"""
)
"""KEYS: progress. ARGV: sink, run, ``driver``, its record."""

COMMIT = (
    _ID_OF
    + _DEMAND_RUN
    + """
local holder = ARGV[1] .. '/holder/' .. ARGV[3]
if redis.call('HGET', KEYS[1], holder) ~= ARGV[4] then return {'holder'} end
local outputs = {}
for at = 3, #KEYS, 2 do
  local output = {key = KEYS[at], stage = KEYS[at + 1], id = ARGV[at + 5], count = tonumber(ARGV[at + 6])}
  if redis.call('TYPE', output.key).ok ~= 'stream' or id_of(output.key) ~= output.id then
    return {'other', output.key}
  end
  if redis.call('XLEN', output.stage) ~= output.count then return {'stage', output.stage} end
  table.insert(outputs, output)
end

local added = {}
local function give_up(error)
  for _, entry in ipairs(added) do redis.call('XDEL', entry[1], entry[2]) end
  return {'refused', error}
end
for _, output in ipairs(outputs) do
  local after = '-'
  while output.count > 0 do
    local entries = redis.call('XRANGE', output.stage, after, '+', 'COUNT', 500)
    if #entries == 0 then break end
    for _, entry in ipairs(entries) do
      local id = redis.pcall('XADD', output.key, '*', unpack(entry[2]))
      if type(id) == 'table' then return give_up(id.err) end
      table.insert(added, {output.key, id})
      after = '(' .. entry[1]
    end
  end
end
local written = redis.pcall('HSET', KEYS[1], ARGV[1] .. '/record/' .. ARGV[3], ARGV[6], holder, ARGV[5])
if type(written) == 'table' then return give_up(written.err) end
for _, output in ipairs(outputs) do
  redis.pcall('UNLINK', output.stage)
  redis.pcall('SREM', KEYS[2], output.stage)
end
if ARGV[7] ~= '' then redis.pcall('XTRIM', KEYS[3], 'MAXLEN', '~', ARGV[7]) end
return {'ok'}
"""
)
"""KEYS: progress, set of stages, then of each output the stream and the stage of its rows. ARGV: sink, run,
writer, holder, next holder, record, most entries of the first stream, then of each output id and rows."""
