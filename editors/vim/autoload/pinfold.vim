" pinfold in Vim, over ALE's connection.

" The project that agents work in: the git root of the current directory, else that directory.
" Memory lies outside of it, so the buffer does not tell.
function! pinfold#root() abort
  let l:git = finddir('.git', fnameescape(getcwd()) . ';')
  return empty(l:git) ? getcwd() : fnamemodify(l:git, ':p:h:h')
endfunction

call ale#Set('markdown_pinfold_executable', 'pinfold')

" The program that is the gateway.
function! pinfold#program() abort
  return ale#Var(bufnr(''), 'markdown_pinfold_executable')
endfunction

" Any method of the contract, on the connection of the current buffer: Callback gets the answer, with
" `result` or `error`. What was typed is told first.
function! pinfold#request(method, params, Callback) abort
  let l:buffer = bufnr('')
  call ale#lsp_linter#SendRequest(l:buffer, 'pinfold', ale#lsp#message#DidChange(l:buffer))
  call ale#lsp_linter#SendRequest(l:buffer, 'pinfold', [0, a:method, a:params], a:Callback)
endfunction

function! s:complain(message) abort
  echohl ErrorMsg
  echomsg 'pinfold: ' . a:message
  echohl None
endfunction

function! s:command(name, Done) abort
  if !executable(pinfold#program())
    return s:complain('there is no ' . pinfold#program() . ' on the PATH')
  endif
  let l:argument = {'uri': ale#util#ToURI(expand('%:p'))}
  let l:params = {'command': a:name, 'arguments': [l:argument]}
  call pinfold#request('workspace/executeCommand', l:params, {answer ->
  \   has_key(answer, 'error') ? s:complain(answer.error.message) : a:Done(answer.result)})
endfunction

" Show the document where it is now.
function! s:follow(said, moved) abort
  if expand('%:p') is# a:moved.from
    let l:old = bufnr('')
    let l:view = winsaveview()
    execute 'keepalt edit' fnameescape(a:moved.to)
    call winrestview(l:view)
    execute 'silent! bwipeout' l:old
  endif
  echomsg a:said . fnamemodify(a:moved.to, ':~')
endfunction

" Move the current document below pinned/, with the links to it.
function! pinfold#pin() abort
  call s:command('pinfold.pin', {moved -> s:follow('Pinned: ', moved)})
endfunction

" Move the current document out of pinned/, with the links to it.
function! pinfold#unpin() abort
  call s:command('pinfold.unpin', {moved -> s:follow('Not pinned any more: ', moved)})
endfunction

function! s:explained(told) abort
  echomsg a:told.path
  for l:profile in ['main', 'extraction', 'dream', 'remember']
    let l:decision = a:told.profiles[l:profile]
    let l:allowed = l:decision.decision is# 'allow'
    echomsg l:profile . (l:allowed ? ' may change it' : ' may not. ' . l:decision.reason)
  endfor
endfunction

" Who may change the current document, and why not.
function! pinfold#explain() abort
  call s:command('pinfold.explain', function('s:explained'))
endfunction
