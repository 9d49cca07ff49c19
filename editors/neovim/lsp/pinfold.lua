--- What Neovim starts: `vim.lsp.enable('pinfold')`. Change any of it with `vim.lsp.config('pinfold', {…})`.
---
--- Every buffer of a file is attached, not only markdown: agents see and change what is open.
--- `init_options.pinfold` is `initializationOptions.pinfold` of the contract.

---@type vim.lsp.Config
return {
  cmd = { 'pinfold', 'serve' },
  root_dir = function(_, on_dir)
    on_dir(require('pinfold').root())
  end,
  on_exit = function(_, _, client_id)
    vim.schedule(function()
      require('pinfold').ended(client_id)
    end)
  end,
  handlers = {
    ['workspace/applyEdit'] = function(...)
      return require('pinfold.edits').apply(...)
    end,
    ['file/didChange'] = function(_, params)
      require('pinfold.edits').disk_changed(vim.uri_to_fname(params.uri))
    end,
    ['memory/didChange'] = function(_, params)
      require('pinfold.edits').disk_changed(params.path)
    end,
  },
  commands = {
    -- What the lens "Who may change it?" runs.
    ['pinfold.explain'] = function(command)
      require('pinfold').explain(command.arguments[1].uri)
    end,
  },
}
