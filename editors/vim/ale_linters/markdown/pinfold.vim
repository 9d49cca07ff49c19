" Author: the pinfold project
" Description: agents' memory documents, by pinfold as a language server

call ale#Set('markdown_pinfold_options', {})

call ale#linter#Define('markdown', {
\   'name': 'pinfold',
\   'lsp': 'stdio',
\   'executable': {buffer -> pinfold#program()},
\   'command': '%e serve',
\   'language': 'markdown',
\   'project_root': {buffer -> pinfold#root()},
\   'initialization_options': {buffer -> {'pinfold': ale#Var(buffer, 'markdown_pinfold_options')}},
\})
