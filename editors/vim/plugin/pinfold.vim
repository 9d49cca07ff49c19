" Commands for the current memory document.
if exists('g:loaded_pinfold')
  finish
endif
let g:loaded_pinfold = 1

command! PinfoldPin call pinfold#pin()
command! PinfoldUnpin call pinfold#unpin()
command! PinfoldExplain call pinfold#explain()
