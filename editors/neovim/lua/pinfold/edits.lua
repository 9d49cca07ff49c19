--- What the gateway does to buffers, and to the files behind them.
local M = {}

local APPLY = 'workspace/applyEdit'

--- The loaded buffer of a file, by exactly this name.
local function loaded_buffer(path)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer)
    return vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) == path
  end)
end

--- The changes of an edit that come in order; none in an edit without versions.
local function steps(edit)
  return edit and edit.documentChanges or {}
end

local function moves_files(edit)
  return vim.iter(steps(edit)):any(function(step)
    return step.kind == 'rename'
  end)
end

--- The buffers that an edit changes and that are loaded, with or without versions.
local function buffers(edit)
  local uris = vim.tbl_keys(edit and edit.changes or {})
  for _, step in ipairs(steps(edit)) do
    uris[#uris + 1] = step.textDocument and step.textDocument.uri
  end
  return vim.iter(uris):map(vim.uri_to_fname):map(loaded_buffer):totable()
end

--- The name of a buffer that is at a later version than an edit of it. Neovim itself drops such an edit and answers
--- that it was made, or makes it at another place where the version is 0.
local function outdated(edit)
  local versions = vim.lsp.util.buf_versions or {}
  for _, step in ipairs(steps(edit)) do
    local document = step.textDocument or {}
    local buffer = type(document.version) == 'number' and loaded_buffer(vim.uri_to_fname(document.uri))
    if buffer and (versions[buffer] or 0) > document.version then
      return vim.api.nvim_buf_get_name(buffer)
    end
  end
end

--- What was typed and what an agent does are two things to undo.
local function break_undo(edit)
  for _, buffer in ipairs(buffers(edit)) do
    vim.bo[buffer].undolevels = vim.bo[buffer].undolevels
  end
end

--- The documents of an edit that have nothing unsaved before it, by their URIs.
local function saved_documents(edit)
  local found = {}
  for _, step in ipairs(steps(edit)) do
    if step.textDocument then
      local buffer = loaded_buffer(vim.uri_to_fname(step.textDocument.uri))
      if not buffer or not vim.bo[buffer].modified then
        found[#found + 1] = step.textDocument.uri
      end
    end
  end
  return found
end

--- `workspace/applyEdit`, by Neovim's own handler. A document's move takes effect on the disk at once, so
--- the links that follow it are saved too, in every buffer that had nothing unsaved. An agent's edit
--- is never saved.
---@return { applied: boolean, failureReason?: any }
function M.apply(err, params, ctx)
  local name = outdated(params.edit)
  if name then
    return { applied = false, failureReason = name .. ' was changed meanwhile' }
  end
  local follow = moves_files(params.edit) and saved_documents(params.edit) or {}
  break_undo(params.edit)
  local answer = vim.lsp.handlers[APPLY](err, params, ctx)
  break_undo(params.edit)
  for _, uri in ipairs(follow) do
    local buffer = loaded_buffer(vim.uri_to_fname(uri))
    if buffer and vim.bo[buffer].modified then
      vim.api.nvim_buf_call(buffer, function()
        vim.cmd('silent update')
      end)
    end
  end
  return answer
end

--- A file was changed on the disk by a call of this connection. A buffer with unsaved changes stays as it
--- is: Neovim asks when it is written. So does one whose file has gone.
---@param path string
function M.disk_changed(path)
  local buffer = loaded_buffer(path)
  if buffer and not vim.bo[buffer].modified and vim.uv.fs_stat(path) then
    vim.cmd.checktime(buffer)
  end
end

return M
