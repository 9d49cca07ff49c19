" Drives Vim with ALE for tests/editors/test_vim.py: does what $SCENARIO names, and tells what it saw.
function! Tell(told) abort
  call writefile([json_encode(a:told)], $TOLD, 'a')
endfunction

function! WaitFor(what, Condition) abort
  let l:start = reltime()
  while 1
    let l:seen = a:Condition()
    if !empty(l:seen)
      return l:seen
    endif
    if reltimefloat(reltime(l:start)) > 8
      throw 'waited in vain for ' . a:what
    endif
    " Channels are read while Vim waits.
    sleep 20m
  endwhile
endfunction

function! Open(name) abort
  execute 'edit' fnameescape($MEMORY . '/' . a:name)
endfunction

function! Codes() abort
  return map(copy(ale#engine#GetLoclist(bufnr(''))), 'v:val.code')
endfunction

function! Text() abort
  return join(getline(1, '$'), "\n") . "\n"
endfunction

function! Disk(name) abort
  let l:path = $MEMORY . '/' . a:name
  return filereadable(l:path) ? join(readfile(l:path), "\n") . "\n" : v:null
endfunction

function! Ask(method, params) abort
  let l:got = []
  call pinfold#request(a:method, a:params, {answer -> add(l:got, answer)})
  return WaitFor('an answer', {-> l:got})[0]
endfunction

function! Agent(profile) abort
  let l:params = {'profile': a:profile, 'projectRoot': pinfold#root(), 'backend': 'editor'}
  return Ask('session/open', l:params).result.sessionId
endfunction

function! Call(session, name, arguments) abort
  let l:params = {'sessionId': a:session, 'name': a:name, 'arguments': a:arguments}
  let l:result = Ask('tools/call', l:params).result
  let l:details = l:result._meta['pinfold/details']
  return {'isError': l:result.isError, 'said': l:result.content[0].text,
  \ 'source': get(l:details, 'source'), 'kind': get(get(l:details, 'error', {}), 'kind')}
endfunction

function! Edit(session, name, old, new) abort
  let l:path = $MEMORY . '/' . a:name
  return Call(a:session, 'edit', {'file_path': l:path, 'old_string': a:old, 'new_string': a:new})
endfunction

function! s:look() abort
  call Open('user/bad.md')
  call Tell({'bad': WaitFor('diagnostics', function('Codes'))})
  call Open('MEMORY.md')
  call Tell({'index': WaitFor('diagnostics', function('Codes'))})
  call cursor(3, 5)
  let g:ale_hover_to_preview = 1
  ALEHover
  call WaitFor('the preview', {-> bufexists('ALEPreviewWindow')})
  let l:Shown = {-> join(getbufline('ALEPreviewWindow', 1, '$'))}
  call Tell({'hover': WaitFor('hover', {-> matchstr(l:Shown(), 'how we release')})})
  pclose
  call Open('pinned/rules.md')
  call Tell({'pinned': WaitFor('the hint', function('Codes'))})
  PinfoldExplain
  let l:Shown = {-> matchstr(execute('messages'), 'dream may not.*')}
  call Tell({'explain': WaitFor('the explanation', l:Shown)})
endfunction

function! s:pin() abort
  call Open('feedback/releases.md')
  runtime autoload/ale/util.vim
  " What the person answers when the list is shown.
  function! ale#util#Input(message, value, ...) abort
    call Tell({'offered': a:message})
    return '1'
  endfunction
  ALECodeAction
  call WaitFor('the move', {-> Disk('pinned/feedback/releases.md')})
  call WaitFor('the index', {-> matchstr(Disk('MEMORY.md'), 'pinned/feedback')})
  call Tell({'gone': Disk('feedback/releases.md') is v:null, 'index': Disk('MEMORY.md')})
  bwipeout!
  call Open('pinned/feedback/releases.md')
  PinfoldUnpin
  let l:place = $MEMORY . '/feedback/releases.md'
  call Tell({'name': WaitFor('the document', {-> expand('%:p') is# l:place ? l:place : ''})})
  call Tell({'unpinned': Disk('MEMORY.md'), 'buffer': Text(), 'modified': &modified})
endfunction

function! s:agent() abort
  call Open('feedback/releases.md')
  let l:session = Agent('main')
  call append('$', 'typed, not saved')
  let l:read = Call(l:session, 'read_file', {'file_path': expand('%:p')})
  call Tell({'read': l:read.said, 'source': l:read.source})
  call Tell({'call': Edit(l:session, 'feedback/releases.md', 'Ask before', 'Ask after')})
  call Tell({'buffer': Text(), 'disk': Disk('feedback/releases.md')})
  call Tell({'other': Edit(l:session, 'user/bad.md', 'wisdom', 'user'), 'bad': Disk('user/bad.md')})
endfunction

function! s:denied() abort
  call Open('pinned/rules.md')
  call append('$', 'typed, not saved')
  let l:before = [Text(), b:changedtick]
  call Tell({'call': Edit(Agent('dream'), 'pinned/rules.md', 'Never', 'Always')})
  call Tell({'same': l:before == [Text(), b:changedtick], 'disk': Disk('pinned/rules.md')})
endfunction

try
  call s:{$SCENARIO}()
  call Tell({'done': v:true})
catch
  call Tell({'failed': v:exception . ' at ' . v:throwpoint})
endtry
qall!
