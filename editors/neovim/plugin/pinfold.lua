--- The commands. What they do is loaded with the first of them.
if vim.g.loaded_pinfold or vim.fn.has('nvim-0.11') == 0 then
  return
end
vim.g.loaded_pinfold = true

local COMMANDS = {
  PinfoldPin = { 'pin', 'Protect the current memory document: move it below pinned/' },
  PinfoldUnpin = { 'unpin', 'Move the current memory document out of pinned/' },
  PinfoldExplain = { 'explain', 'Who may change the current memory document, and why not' },
  PinfoldMemory = { 'memory', "Open the index of this project's memory" },
}

for name, about in pairs(COMMANDS) do
  vim.api.nvim_create_user_command(name, function()
    local ok, problem = pcall(require('pinfold')[about[1]])
    if not ok then
      vim.notify(problem, vim.log.levels.ERROR)
    end
  end, { desc = about[2] })
end
