-- Drives Neovim for tests/editors/test_neovim.py: does what SCENARIO names, and tells what it saw.
local MEMORY, WAIT = os.getenv('MEMORY'), 8000

local function tell(told)
  local file = assert(io.open(os.getenv('TOLD'), 'a'))
  file:write(vim.json.encode(told) .. '\n')
  file:close()
end

local function wait(what, condition)
  assert(vim.wait(WAIT, condition, 5), 'waited in vain for ' .. what)
end

--- The outcome of something that takes a callback as its last argument.
local function await(start, ...)
  local done, err, result
  local arguments = { ... }
  arguments[#arguments + 1] = function(...)
    done, err, result = true, ...
  end
  start(unpack(arguments))
  wait('an answer', function()
    return done
  end)
  return result, err
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false), '\n')
end

local function disk(name)
  local file = io.open(name:sub(1, 1) == '/' and name or (MEMORY .. '/' .. name), 'rb')
  return file and file:read('*a') or vim.NIL
end

local function attached(buffer)
  local client = vim.lsp.get_clients({ name = 'pinfold', bufnr = buffer or 0 })[1]
  return client and client.initialized and client or nil
end

local function open(name)
  vim.cmd.edit(vim.fn.fnameescape(MEMORY .. '/' .. name))
  wait('the client', attached)
  return vim.api.nvim_get_current_buf()
end

local function codes(buffer)
  return vim.tbl_map(function(each)
    return each.code
  end, vim.diagnostic.get(buffer))
end

local function floating()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      return text(vim.api.nvim_win_get_buf(window))
    end
  end
end

local function agent(profile)
  local session, err = await(require('pinfold').open, { profile = profile })
  assert(session, vim.inspect(err))
  return session.sessionId
end

local function edit(session, path, old, new)
  local arguments = { file_path = path, old_string = old, new_string = new }
  local result, err = await(require('pinfold').call, session, 'edit', arguments)
  assert(result, vim.inspect(err))
  local details = result._meta['pinfold/details']
  return {
    isError = result.isError,
    kind = details.error and details.error.kind,
    said = result.content[1].text,
  }
end

local function type_line(line)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes('Go' .. line .. '<Esc>', true, false, true), 'xt', false)
end

local scenarios = {}

function scenarios.look()
  local bad = open('user/bad.md')
  wait('diagnostics', function()
    return #vim.diagnostic.get(bad) > 0
  end)
  tell({ bad = codes(bad) })
  local index = open('MEMORY.md')
  wait('diagnostics', function()
    return #vim.diagnostic.get(index) > 0
  end)
  tell({ index = codes(index) })
  vim.fn.cursor(3, 5)
  vim.lsp.buf.hover()
  wait('hover', floating)
  tell({ hover = floating() })
  vim.cmd.edit(MEMORY .. '/pinned/rules.md')
  wait('the hint', function()
    return #vim.diagnostic.get(0) > 0
  end)
  tell({ pinned = codes(0) })
  vim.cmd.PinfoldExplain()
  wait('the explanation', function()
    local shown = floating()
    return shown and shown:find('dream') and shown
  end)
  tell({ explain = floating() })
end

--- The list that the person would choose from, with an answer given.
local function choosing(title)
  vim.ui.select = function(items, options, choose)
    for _, item in ipairs(items) do
      if options.format_item(item):find(title) then
        return choose(item)
      end
    end
    error('nothing to choose: ' .. vim.inspect(items))
  end
end

local function moved(from, to)
  wait('the move', function()
    return disk(to) ~= vim.NIL and vim.api.nvim_buf_get_name(0) == MEMORY .. '/' .. to and not vim.bo.modified
  end)
  wait('the index', function()
    return disk('MEMORY.md'):find(to, 1, true)
  end)
  return { name = vim.api.nvim_buf_get_name(0), gone = disk(from) == vim.NIL, index = disk('MEMORY.md') }
end

function scenarios.pin()
  open('feedback/releases.md')
  choosing('Pin')
  vim.lsp.buf.code_action()
  tell({ pinned = moved('feedback/releases.md', 'pinned/feedback/releases.md') })
  wait('the hint', function()
    return vim.tbl_contains(codes(0), 'pinned')
  end)
  vim.cmd.PinfoldUnpin()
  tell({ unpinned = moved('pinned/feedback/releases.md', 'feedback/releases.md') })
end

--- The index has something unsaved, which a pin must not save.
function scenarios.pin_unsaved()
  local index = open('MEMORY.md')
  type_line('- unsaved')
  open('feedback/releases.md')
  vim.cmd.PinfoldPin()
  wait('the move', function()
    return disk('pinned/feedback/releases.md') ~= vim.NIL
  end)
  wait('the index', function()
    return text(index):find('pinned/feedback/releases.md', 1, true)
  end)
  tell({ buffer = text(index), disk = disk('MEMORY.md') })
end

function scenarios.agent()
  local buffer = open('feedback/releases.md')
  local path = vim.api.nvim_buf_get_name(buffer)
  local session = agent('main')
  type_line('typed, not saved')
  vim.fn.cursor(8, 3)
  local read = await(require('pinfold').call, session, 'read_file', { file_path = path })
  tell({ read = read.content[1].text, source = read._meta['pinfold/details'].source })
  tell({ call = edit(session, path, '😀 never', '😀 ever') })
  tell({ buffer = text(buffer), modified = vim.bo.modified, disk = disk(path), cursor = vim.fn.line('.') })
  vim.cmd.undo()
  tell({ undone = text(buffer) })
end

function scenarios.denied()
  local buffer = open('pinned/rules.md')
  local path = vim.api.nvim_buf_get_name(buffer)
  type_line('typed, not saved')
  local before, tick = text(buffer), vim.api.nvim_buf_get_changedtick(buffer)
  local asked = false
  local client = attached(buffer)
  client.handlers['workspace/applyEdit'] = function()
    asked = true
    return { applied = false }
  end
  tell({ call = edit(agent('dream'), path, 'Never', 'Always'), asked = asked })
  tell({ same = text(buffer) == before and vim.api.nvim_buf_get_changedtick(buffer) == tick, disk = disk(path) })
end

--- Somebody types after the edit was sent and before `apply` has it.
local function stale(buffer, apply)
  local path = vim.api.nvim_buf_get_name(buffer)
  local session = agent('main')
  local handlers, answered = attached(buffer).handlers, nil
  local own = handlers['workspace/applyEdit']
  handlers['workspace/applyEdit'] = function(...)
    vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { 'typed in between' })
    answered = (apply or own)(...)
    return answered
  end
  tell({ call = edit(session, path, 'Ask before', 'Ask after') })
  tell({ buffer = text(buffer), disk = disk(path), answered = answered.applied })
  handlers['workspace/applyEdit'] = own
  tell({ again = edit(session, path, 'Ask before', 'Ask after'), after = text(buffer) })
end

function scenarios.stale()
  stale(open('feedback/releases.md'))
end

--- Neovim's own handler, which looks at versions above 0.
function scenarios.stale_plain()
  local buffer = open('feedback/releases.md')
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, { 'one' })
  stale(buffer, vim.lsp.handlers['workspace/applyEdit'])
end

--- What an agent changes on disk, an unmodified buffer shows.
function scenarios.disk()
  local buffer = open('feedback/releases.md')
  local client = require('pinfold').client()
  local session = await(require('pinfold').open, { profile = 'main', backend = 'local' }).sessionId
  tell({ call = edit(session, vim.api.nvim_buf_get_name(buffer), 'Ask before', 'Ask after') })
  wait('the new text', function()
    return text(buffer):find('Ask after')
  end)
  tell({ modified = vim.bo[buffer].modified, clients = #vim.lsp.get_clients(), root = client.root_dir })
end

--- The gateway dies while it is asked; the next request has another one.
function scenarios.died()
  local buffer = open('feedback/releases.md')
  local session = agent('main')
  attached(buffer).handlers['workspace/applyEdit'] = function()
    local process = tonumber(vim.fn.readfile(os.getenv('STARTED'))[1])
    vim.uv.kill(process, 'sigkill')
    return { applied = false }
  end
  local arguments = { file_path = vim.api.nvim_buf_get_name(buffer), old_string = 'Ask', new_string = 'Tell' }
  local _, err = await(require('pinfold').call, session, 'edit', arguments)
  tell({ problem = err.message, buffer = text(buffer) })
  local listed = await(require('pinfold').request, 'tools/list', vim.empty_dict())
  tell({ tools = #listed.tools })
end

--- Neovim itself is killed.
function scenarios.killed()
  open('feedback/releases.md')
  tell({ done = true })
  vim.uv.kill(vim.fn.getpid(), 'sigkill')
end

--- A host that has no file open starts the gateway by itself; errors come as they are.
function scenarios.host()
  local _, wrong = await(require('pinfold').open, { profile = 'nobody' })
  local listed = await(require('pinfold').request, 'tools/list', vim.empty_dict())
  tell({ wrong = wrong.code, tools = #listed.tools })
  vim.cmd.PinfoldMemory()
  wait('the index', function()
    return vim.api.nvim_buf_get_name(0) == MEMORY .. '/MEMORY.md' and attached(0)
  end)
  tell({ clients = #vim.lsp.get_clients() })
end

local ok, problem = xpcall(scenarios[os.getenv('SCENARIO')], debug.traceback)
tell(ok and { done = true } or { failed = problem })
vim.cmd('qa!')
