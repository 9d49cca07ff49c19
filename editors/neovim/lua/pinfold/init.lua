--- pinfold in Neovim: commands for people, and the gateway's methods for agents written in Lua.
---
--- All of it goes over the connection of the language server, so that an agent's call is decided
--- after whatever was typed before it.
local M = {}

local NAME = 'pinfold'
local START_MS = 10000

--- What still waits for an answer, by client. Neovim forgets it when a server ends.
local waiting = {}

---@alias pinfold.Callback fun(err: { code: integer, message: string, data: any }|nil, result: any)

--- The project that agents work in: the git root of the current directory, else that directory.
---@return string
function M.root()
  local here = assert(vim.uv.cwd())
  return vim.fs.root(here, '.git') or here
end

--- The client, started if need be. Raises where the gateway cannot be started, or does not answer within
--- ten seconds.
---@return vim.lsp.Client
function M.client()
  local attached = vim.lsp.get_clients({ name = NAME, bufnr = 0 })[1]
  local id = attached and attached.id
  if not id then
    local config = vim.deepcopy(vim.lsp.config[NAME])
    if type(config.root_dir) == 'function' then
      config.root_dir = M.root()
    end
    id = vim.lsp.start(config, { attach = false })
  end
  local client = assert(id and vim.lsp.get_client_by_id(id), 'pinfold: the gateway could not be started')
  vim.wait(START_MS, function()
    return client.initialized or client:is_stopped()
  end, 10)
  assert(client.initialized and not client:is_stopped(), 'pinfold: the gateway does not answer')
  return client
end

--- Any method of the contract. What was typed in any buffer is told first.
---@param method string
---@param params table
---@param callback pinfold.Callback called once
---@return integer|nil id of the request, for `client:cancel_request(id)`
function M.request(method, params, callback)
  local client = M.client()
  local mine = waiting[client.id] or {}
  waiting[client.id] = mine
  local key = {}
  mine[key] = callback
  -- Without a buffer Neovim flushes the changes of all of them.
  local sent, id = client:request(method, params, function(err, result)
    mine[key] = nil
    callback(err, result)
  end)
  assert(sent, 'pinfold: the gateway is gone')
  return id
end

--- A gateway has ended: what waits for an answer gets an error.
---@param client_id integer
function M.ended(client_id)
  local left = waiting[client_id] or {}
  waiting[client_id] = nil
  for _, callback in pairs(left) do
    callback({ code = -32603, message = 'The gateway has ended.' })
  end
end

--- `session/open`. `projectRoot` and `backend` default to this project and to the open buffers.
---@param params { profile: string, projectRoot?: string, backend?: string, [string]: any }
---@param callback pinfold.Callback
function M.open(params, callback)
  local defaults = { projectRoot = M.client().root_dir, backend = 'editor' }
  return M.request('session/open', vim.tbl_extend('keep', params, defaults), callback)
end

--- `tools/call`: what the model asked for goes in, what it should read comes out as `result.content`.
---@param session string id that `session/open` gave
---@param name string of the tool
---@param arguments table
---@param callback pinfold.Callback
function M.call(session, name, arguments, callback)
  local object = next(arguments) == nil and vim.empty_dict() or arguments
  return M.request('tools/call', { sessionId = session, name = name, arguments = object }, callback)
end

--- The id of the editor's own session, under which documents are moved.
local function own_session(client)
  return vim.tbl_get(client.config, 'init_options', NAME, 'session', 'sessionId') or 'editor'
end

local function complain(err)
  vim.notify('pinfold: ' .. err.message, vim.log.levels.ERROR)
end

local function command(name, uri, done)
  local params = { command = name, arguments = { { uri = uri or vim.uri_from_bufnr(0) } } }
  M.request('workspace/executeCommand', params, function(err, result)
    if err then
      complain(err)
    else
      done(result)
    end
  end)
end

--- Move the current document below `pinned/`, with every link to it.
function M.pin()
  command('pinfold.pin', nil, function(result)
    vim.notify('Pinned: ' .. vim.fn.fnamemodify(result.to, ':~'))
  end)
end

--- Move the current document out of `pinned/`, with every link to it.
function M.unpin()
  command('pinfold.unpin', nil, function(result)
    vim.notify('Not pinned any more: ' .. vim.fn.fnamemodify(result.to, ':~'))
  end)
end

local PROFILES = { 'main', 'extraction', 'dream', 'remember' }

--- Who may change a document, and why not, in a window that closes when the cursor moves.
---@param uri? string of the document; the current one by default
function M.explain(uri)
  command('pinfold.explain', uri, function(result)
    local lines = { '**' .. vim.fs.basename(result.path) .. '**', '' }
    for _, profile in ipairs(PROFILES) do
      local decision = result.profiles[profile]
      local told = decision.decision == 'allow' and 'may change it' or 'may not. ' .. decision.reason
      lines[#lines + 1] = ('- `%s` %s'):format(profile, told)
    end
    local options = { focus_id = NAME, border = 'rounded', max_width = 76 }
    local _, window = vim.lsp.util.open_floating_preview(lines, 'markdown', options)
    vim.wo[window].linebreak = true
  end)
end

--- Open the index of the project's memory.
function M.memory()
  M.request('memory/roots', { sessionId = own_session(M.client()) }, function(err, result)
    if err then
      return complain(err)
    end
    vim.cmd.edit(vim.fn.fnameescape(result.roots[1].path .. '/MEMORY.md'))
  end)
end

return M
