"""The shell gate: the shared expectations, more of each kind, and what git could find."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from pinfold.cli import main
from pinfold.memory import repositories
from pinfold.policy.decide import decide
from pinfold.policy.facts import Call, Effective
from pinfold.policy.shell.gate import judge, read
from pinfold.policy.shell.gitfiles import has_submodules, settings
from pinfold.policy.shell.tokens import Run, Tokens
from pinfold.policy.shell.tree import statement
from pinfold.policy.shell.words import Refused, Word, expansion
from pinfold_protocol.session import PROFILES
from support import Embedded, cases, write


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = Embedded(tmp_path_factory.mktemp("gate").resolve())
    session = place.open("dream")
    return lambda command: place.explain(session, "run_shell_command", command=command)


@pytest.mark.parametrize("case", cases("shell.json"), ids=lambda case: repr(case["name"]))
def test_the_gate_decides_as_the_vectors_say(case: dict[str, Any], asked: Any) -> None:
    decision = asked(case["command"])
    assert (decision["decision"], decision["rule"]) == (case["expect"], "shell"), decision["reason"]


ALLOWED = r"""
ls 2>/dev/null
cat f 2> /dev/null | head -5
[ -f x ]
[ -f x ] && cat x
test -d "$x"
test "$a" = b || ls
test ! -e f
[ $? -eq 0 ] && [ $# -gt $((1 + 1)) ]
[ -n "$x" ] && echo yes
test -v x
test -v a[0]
true
true && date
date +%F
date -u '+%F %T'
date -d yesterday +%s
date --iso-8601=seconds
date -r f
diff a b
diff -u a b | head
diff "./$a" b/"$b" f.{x,y}
file f
file "./$x" ~/*.md
file -b f g
file ./*
! ls
(ls; pwd) | wc -l
{ ls && pwd; } 2>/dev/null
ls; (cd /tmp && pwd); ls
ls | sort | uniq -c | sort -rn | head
sort -t , -k 2,2n f
sort -t: -k1 f
grep -E 'a|b' f | wc -l
cat f >&2
ls 2>&1 | head
ls >&-
x=1; echo $x
a+=b
a[0]=b
echo "${x:-none}" ${x%.md} ${#x} ${x:1:2} ${x^^} ${x/a/b} $1 "$@" $?
echo $((1 + 2)) $[3*4]
echo $'a\tb'
echo \$x '$(touch x)' "\$(touch x)" '`x`'
echo { a}b {a
echo "a
b"
printf '%s\n' a b
printf '100%%\n'
sed -n 1,10p f
sed -n '5p;7p' f
sed 's/a/b/g' f
sed -e 's|a|b|' -e 2d f
sed -nE 's/(a)(b)/\2\1/p' f
sed '$!d' f
awk -F: '{print $1}' f
awk -F '|' '$3 > 5 {print $1}' f
awk 'NR==1 || NR==3 {print; next}' f
awk '/a|b/ {n++} END {print n}' f
awk '{print $1 " > " $2 " | "}' f
find . -type f -size +1k -not -name '*.md'
find ~/notes -maxdepth 1
rg -n 'a|b' -g '*.md' dir
rg -ez f
tree -L 2 -a
uniq -f 1 f
cd sub && ls
cd "$x"; ls
tail -n 5 f &
cat <<-EOF | head -1
	a
	EOF
cat <<A <<'B' && ls
$x
A
$(b)
B
cat < $x
bash -c 'ls | head' && pwd
bash --norc -c 'cat f'
bash -o pipefail -c 'ls'
sh -c 'cat $1' x f
/bin/bash -c ls
bash -ec 'cd a && ls' 2>/dev/null
git
git --version
git --help
git status --short
git log --oneline -5 -- f
git log -p --stat --format='%h %s'
git diff --text HEAD~1
git show HEAD:f
git branch -a
git branch --list 'x*'
git branch --contains HEAD
git branch --show-current
git branch -vv --sort -committerdate --format '%(refname)'
git remote -v
git remote get-url origin
git remote show -n origin
git grep -n -e O f
git grep -eFOO
git rev-parse --abbrev-ref HEAD
git blame -L 1,5 f
git ls-files -o --exclude-standard
git status && git log | head
where ls
bash -rc ls
bash -ic ls
sh -c 'a=b; ls 2<f >&1'
sh -c 'a=${x:-"a b"}; echo $((1 + 2)) "${x/a b/c}"'
cat < ${x}
cat < "$HOME/notes.md"
cat < ~/tcp.md
wc -l < $x.md
sed -n '/foo/p' f
sed '/^$/d' f
sed -n -e '/x\/y/p' f
sed -n '/[[:space:]]x[^]"]/p;5q;//p' f
sed 's/[^\/]*$//' f
sed z f
sed -l 5 -n l f
sed -n --line-length=5 l f
sed --expression 's/a/b/' f
sed p -n
find {a,b -name 'x}' -o -name '}a,b{'
find }a,b{
awk '/filesystem/' f
awk '/system/ {print}' f
awk '/closed/ {n++} END {print n}' f
awk '/user@host/' f
awk '{print "a@b"}' f
awk -- '{print $1}' f -
awk '{print $1}' -F: f
echo ${x:-$y} "${x:-$HOME/notes}" ${x:-"a b"} ${x:-~/n} ${x:-'a b'}
echo "${x//\//_}" "${x%%[0-9]*}" "${x#"a"}" ${x%"$y"} ${x/$a/${b:-c}} "${x:-it is}" ${#} ${?}
cat <<< ${x:-$y}
date -Is
date -u -Iminutes
date --da=yesterday
date --date yesterday +%F
date --rfc-3339 seconds
sort -S 1k f
git log --format='%h %+s %-b'
uniq
uniq -
uniq -cd
uniq -1 f
uniq -w 5 -- f
uniq --skip-fields 1 f
uniq --skip-f=1 --all-repeated=none f
date +%F -d yesterday
date -u -- +%F
sed p f -n
sed p f -e p
sed --expr=p --quiet f
sed --help
awk -F : -- 1 f
awk 1 f -v -x=1
git diff HEAD^ HEAD~2 HEAD@{1} v1^{commit} @{u}
git log HEAD^..@
sort f~
find . -name x~
diff a~ a
[ 1 -eq $? ]
test $((1 + 2)) -gt -1
test -t 1
printf '%5.1f%%\n' 3.25
printf '%s: %b\n' 'path[1]' 'x=1'
echo $x/y "$x:/y" "$x: y" ${x}[a] ${x}:h $x.md $x-y "a$" "a$|b$"
wc <<< {a} b
cat 2>&1 <f
file_path=a; the_path=b
"""

DENIED = r"""
:
false
bash -rcfile ls -c 'touch x'
bash -rcf ls
bash -cc ls
bash -init-file f -c ls
sh -c 'a+=/../../../../bin/dd if=a of=/b'
sh -c 'a[0]=/bin/x'
sh -c 'a=b c+=/bin/x'
sh -c 'uniq f 12<f'
sh -c 'uniq f 12>&1'
sh -c 'git branch 12<f'
sh -c 'ls >&12'
sh -c 'a=$[0 1/2]'
sh -c 'a=${x:1 1/2}'
sh -c 'ls ${x/"a b"/c}'
cat < $_
echo /dev/tcp/127.0.0.1/8099; cat < $_
cat < ${BASH_EXECUTION_STRING##*q}; echo q/dev/tcp/127.0.0.1/8099
bash -c 'cat < $BASH_ARGV0' /dev/tcp/127.0.0.1/8099
cd m/dev/tcp/h/1 && cat < ${PWD#*m}
cd m/dev/tcp/h/1 && cat < ${OLDPWD#*m}
cat < $PWD/x
cat < $OLDPWD
cat < $DIRSTACK
cat < $BASH_COMMAND
cat < $COMP_LINE
cat < ${x:-/dev/tcp/h/1}
cat < $x$y
cat < ${x#y}
cat < $x/dev/tcp/h/1
cat < $x/tcp/h/1
cat < "$HOME"/dev/udp/h/1
cat < ~/dev/tcp/h/1
cat < ~+/tcp/h/1
cat < ~-
cat < ~1
cat < $1
git log --format='%+G?'
git log --format='%-GK'
git log --format='% GS'
git log --format='%w(1)%<(3)%+G?'
git show -s --format=%+GS
sed 'w out' -e f
sed 'w out' -e p
sed -- 'w out' -e p
sed 'w out' -- -e p
sed -n 'w out' --expression p
sed --expression 'w out' f
sed -l 'w out' f
sed -l
sed -n '/a/,/b/p' f
sed '/a/w x' f
sed '/a/,+1w x' f
sed '/a/e' f
sed '/a/Ip' f
sed '\,a,p' f
sed '/a[/]b/p' f
sed '/[/p' f
sed 's/][/]/;s/w o/x/g' f
sed 's/[]/]/;s/w o/x/g' f
sed 's/[a\\]/]/;s/w o/x/g' f
sed 's/[[.].]/]/;s/w o/x/g' f
awk '{print}' /inet/tcp/0/127.0.0.1/8099
awk '{print}' /inet6/tcp/0/h/1
awk 'BEGIN{ARGV[1]="/ine" "t/x";ARGC=2}{print}'
awk '{print}' ARGC=3 f
awk -vARGC=3 1 f
awk 'BEGIN{SYMTAB["ARG" "C"]=2}' f
awk '{system ("x")}' f
awk '{1system("x")}' f
awk 'BEGIN{f="system"; @f("x")}'
awk 'BEGIN{f="system"; @ f ("x")}'
awk '@include "x"'
awk '@namespace "x"'
awk 'BEGIN{extension("x", "y")}'
awk '{print}' -f x
awk -- -f x '{print > "o"}'
diff -l a b
diff -ul a b
diff --paginate a b
diff --pag a b
diff * b
diff $a b
diff "$a" b
diff {a,-l} b
diff a$x b
file *.md
file "$x"
file -- "$x"
date -s 1
date --se=1
date 010203
date -f x
date --r 010203
date --rfc-2822 010203
echo ${x:-$(a)}
echo ${x:-"}"}"
find {a,b}
find {1..3}
find a{,{b}
echo ${x:}
sh -c 'echo "${x:}"'
awk -- '-f' f
echo ${x:-`a`}
echo "${x:-${y:=z}}"
echo ${x:-${!y}}
echo ${x:-}}"
echo ${x:-'}'}
echo ${x:-"}"}
echo ${x:-$}
echo ${x:-a;b}
echo ${x:-<(a)}
cat <(ls)
cat >(ls)
./ls
\ls
l\s
"ls"
ls > /dev/null
ls &> /dev/null
ls 1>/dev/null
ls 2>>/dev/null
ls 2>/dev/nullx
ls 2>"$x"
ls 3>out
ls <> f
ls {fd}>&1
ls <&3
cat < /dev/tcp/1.2.3.4/80
x=/dev/tcp/h/1; cat < $x
cat < *
ls <<< "$(touch x)"
ls `touch x`
ls "`touch x`"
ls "$\
(touch x)"
ls $\
(touch x)
ls ${x:-$(touch x)}
ls ${x:=y}
ls ${x=y}
ls ${!x}
ls ${!1}
ls ${!#}
ls ${x@P}
ls ${a[x]}
ls ${a[$(touch x)]}
ls ${x:y}
ls ${x:y:1}
echo $((x))
echo $((x=1))
echo $((a[0]))
echo $[x]
((1))
let x=1
[[ -f x ]]
if true; then ls; fi
case x in x) ls;; esac
select x in a; do ls; done
until ls; do ls; done
time ls
exec ls
eval ls
builtin ls
. f
trap ls EXIT
alias ls='rm x'
alias ls='rm x'; ls f
set -x
shopt -s extglob
unset x
read x
declare x=1
local x=1
readonly x=1
typeset x
mapfile x
history
PATH=. ls
a=b ls
Path=x
BASH_ENV=f
IFS=x
_=x
a[x]=1
a[$(touch x)]=1
a=(b c)
x=1; git status
x=1; bash -c ls
x=1 bash -c ls
bash -c 'x=1; git status'
LD_PRELOAD=./x.so ls
GIT_DIR=x git status
zsh -c ls
cmd /c dir
powershell -Command ls
pwsh -c ls
dash -c ls
ksh -c ls
./bash -c ls
/tmp/bash -c ls
bash f
bash
bash < f
ls | bash
ls | bash -s
ls; bash -c ls
bash -c "bash -c 'ls'"
bash -c "$x"
bash -c $x
bash -c "ls $x"
bash -c *
bash --rcfile f -ic ls
bash --init-file f -ic ls
bash -O extglob -c ls
bash -kc 'ls PATH=.'
bash -ac ls
bash -o allexport -c ls
bash -sc ls
bash -c 'ls > out'
bash -c 'ls' > out
bash -c 'ls' | tee out
bash -c 'ls' & rm x
sh -c "echo $'a'"
sh -c 'echo $'"'"'a'"'"
test -v "$x"
test -v 'a[$(touch x)]'
test -R x[y]
test $x
[ $x ]
[ *.md ]
[ "$a" "$b" ]
[ "$op" "$x" "$y" ]
[ -f "$a" -a -f "$b" ]
[ -f x
[ -f x ] > out
[ a > b ]
date -s 12:00
date -us 12:00
date --set=12:00
date --se 12:00
date 01020304
date -f f
date $x
file -C -m f
file -bC f
file -z f
file --comp f
file *
file $x
file -p f
find . -execdir rm {} +
find . -okdir rm {} +
find . -fprintf out x
find . -fls out
find $x
find . {-delete,}
find . $'-delete'
find . "-delete"
find . -del\ete
sort -o out f
sort -nro out f
sort f -o out
sort -k1 -oout
sort -T /tmp f
sort --temp=/tmp f
sort --compress-program=x f
sort --outp=x f
sort *
sort $x
sort -- -o
tree -R
tree -aRL 1
tree -ao out
tree *
uniq a b
uniq -c -f 1 a b
uniq - b
uniq -f1 a b
uniq $x
uniq ./-w/x.md -w/../pinned/rules.md
uniq f -c
uniq f -w5
uniq f -w 5
uniq f --count
uniq f --
uniq f -
uniq -- f -c
uniq -- -c f
uniq -w 5 f g
uniq -w f g h
uniq -cw 5 f g
uniq -Df 1 g
uniq -df 1 g
uniq --all-repeated none f
uniq --group f g
uniq --skip f g h
uniq +1 f
uniq -x f
uniq --output=x f
date -d 1 010203
date -I 010203
date -u010203
date +%F 010203
date -- 010203
date -- -x 010203 -s 1
date --re 010203
date --iso-8601 010203
sed -l 'w out' p
sed -l 5 'w out'
sed -ln 'w out' f
sed p f -f s
sed -s -- 'w out'
sed --quiet 'w out' -e p
sed --e p --f=s f
sed --in f
awk -F : '{print > "o"}' f
awk -F -- '{print > "o"}' f
awk -F -v '{print > "o"}' f
awk -v x
path=tools; column README
path+=tools
path[1]=tools; ls
x=1 cdpath=/x
fpath=x
module_path=x
aliases[1]=x
galiases[1]=x
functions[1]=x
dis_aliases[1]=x
options[1]=x
mapfile[1]=x
prompt=x
argv=x
histchars=x
watch=x
chpwd_functions=x
zsh_eval_context=x
ld_library_path=x
echo $x[PATH=1]; ls
echo "$x[PATH=1]"; ls
echo $1[PATH=1]; ls
echo $10[PATH=1]; ls
echo $?[PATH=1]; ls
echo $#[PATH=1]; ls
echo $#x[PATH=1]; ls
echo $@[PATH=1]; ls
echo $_[PATH=1]; ls
echo ${x:-$y[PATH=1]}; ls
echo "${x#$y[PATH=1]}"; ls
wc <<< $x[PATH=1]
wc <<< "$x:F:PATH=1:h"
echo $x:F:PATH=1:h; ls
echo "$x:h"
echo $xé[PATH=1]
echo $é[PATH=1]
x='*(e:touch y:)'; ls $~x
ls "$~x"
ls $=x
ls $^x
ls $+x
ls ${x:-$~y}
{ echo } always { ls ; }
{ echo a} always { ls ; }
{ echo {a}} always { ls ; }
{ echo "{"} always { ls ; }
{ ls <<< a} always { ls ; }
{ ls <f} always { ls ; }
echo }
x=}
uniq 7 12>&1
ls 22>&1
ls >&12
uniq <7-8>&2
uniq <->&2
cat f<1->&2
ls; <f
<f
(ls; <f)
<f && ls
2>/dev/null | ls
<f { ls; }
<f ! ls
<f (ls)
printf '%d' 'path[$(touch y)]'
printf '%d' x
printf '%s %d' a 1
printf '%*s' x a
printf '\045d' x
printf -- '%d' x
printf -x '%d' x
test -t 'path[$(touch y)]'
test -t x
[ 'path[$(touch y)]' -eq 1 ]
[ 1 -lt x ]
test "$x" -gt 1
test 1 -ne "$x"
test ! 1 -eq x
[ -f a -a 1 '-eq' x ]
[ a = ^b ]
uniq x#
uniq a@{bc}
uniq f~
sort ^a
sort x#-o f
sort {-}o f
sort -{o} f
git log ^main
git diff x#--output=y
rg ^foo
file a#-C
sed s{a}xayaw{r{g
awk 'a''b' f
bash -c 'echo ''"'' ; rm x ; ''"'''
cd +1 && git status
cd a# && git status
ls =(rm x)
ls *(e:x:)
ls &| rm x
ls &! rm x
repeat 2 ls
noglob ls
foreach x (a) ls; end
printf -v x y
printf -vx y
printf '%n' PATH
printf '%-5n' PATH
printf "$x"
rg --pre x y
rg --pre=x y
rg -nz x
rg $x
rg --hostname-b x
ripgrep --pre x
sed -n 'w out' f
sed 's/a/b/e' f
sed 's/a/b/gw out' f
sed '1e touch x' f
sed 'r f' f
sed -f s f
sed --in-place 's/a/b/' f
sed -ni p f
sed p f -i
sed -e p -e 'w x' f
sed 's/[/]/w x/' f
sed 's/[/]/;s/g;w o/x/' f
sed 's/a/b' f
sed -e 's/a/\' -e 'w x/' f
sed 'a\' f
sed '$x' $x
sed p *
sed ':a;N;ba' f
awk '{print | "sh"}' f
awk '{print $1 > $2}' f
awk '{printf "x" >> "f"}' f
awk '{"x" | getline}' f
awk '{while ((getline l < "f") > 0) n++}' f
awk '/"/ {print > "o"} /"/' f
awk '{print "a" > "o" "b"}' f
awk '{print "\"" > "o"}' f
awk '{print # "
> "o"}' f
awk -f p f
awk --file=p f
awk -i inplace '{print}' f
awk -l x 1
awk '@load "x"' f
awk "{print $x}" f
awk $x
awk
less f
tee out
xargs rm
ls | xargs rm
env ls
sudo ls
nice ls
timeout 5 ls
watch ls
cat f # x
cat <<EOF
E\
OF
EOF
cat <<EOF
`touch x`
EOF
cat <<EOF
${x:=y}
EOF
cat <<EOF
x
cat <<$x
x
$x
cat << EOF | sh
rm x
EOF
cat <<EOF && rm x
EOF
cat <<EOF & rm x
EOF
cat <<A <<B | tee out
A
B
ls & rm x
ls && rm x
ls || rm x
ls | rm x
! rm x
(rm x)
{ rm x; }
ls
rm x
ls;;ls
ls &&
&& ls
( ls
ls )
{ ls
ls }; }
()
{ }
(ls) x
(ls) > out
{ ls; } > out
f()(ls)
!(a)
ls @(a|b)
ls +(a)
ls 'x
ls "x
git -c core.pager=x log
git --git-dir=x log
git --exec-path=x log
git --no-pager log
git -p log
git $x
git log $x
git log *
git log {a,--output=x}
git 'log' --output x
git "log"
git log --output=x
git diff --outp=x
git show --output x
git diff --ext-diff
git log --textconv
git cat-file --textconv HEAD:f
git cat-file --filters HEAD:f
git log --show-sig
git log --format=%GG
git log --pretty=format:%G?
git show --remerge-diff
git show --diff-merges=remerge
git log --help
git describe --dirty
git describe --dir=x
git describe --broken
git grep --open-files-in-pager x
git grep -nO x
git grep -Oless x
git grep --recurse-submodules x
git branch x
git branch -v x
git branch -d x
git branch -m a b
git branch --edit-description
git branch --set-upstream-to=x
git branch --sort x y
git branch --sort --format -D
git branch --sort --list x
git branch --format --contains x
git branch --format '%(signature)'
git branch --list -D x
git branch --format='%(signature)'
git remote add x y
git remote show origin
git remote update
git remote prune x
git remote -v update
git stash
git fetch
git checkout x
git add f
git init
git tag -l
git reflog
git shortlog
git config x
git submodule status
git worktree list
git blame --textconv f
git --help log
GIT status
cd ~root && git status
cd "$x" && git status
cd && git status
cd - && git status
cd -P x && git status
pushd x
popd
"""


def _rows(text: str) -> list[str]:
    """One command a line; a few take several lines."""
    lines = text.strip("\n").split("\n")
    found: list[str] = []
    while lines:
        row = [lines.pop(0)]
        if row[0].startswith('echo "a') or row[0].endswith(("$\\", '# "')):
            row.append(lines.pop(0))
        if row[0] == "ls" and lines[:1] == ["rm x"]:
            row.append(lines.pop(0))
        if row[0].startswith("cat <<"):
            while lines and not lines[0].startswith(("cat <", "ls &", "bash ")):
                row.append(lines.pop(0))
        found.append("\n".join(row))
    return found


@pytest.mark.parametrize("command", _rows(ALLOWED), ids=repr)
def test_more_that_only_reads(command: str, asked: Any) -> None:
    decision = asked(command)
    assert decision["decision"] == "allow", decision["reason"]


@pytest.mark.parametrize("command", _rows(DENIED), ids=repr)
def test_more_that_is_not_proven(command: str, asked: Any) -> None:
    decision = asked(command)
    assert decision["decision"] == "deny"
    assert decision["reason"].startswith("Only commands proven read-only may run here: ")


ODD = [
    "echo $x\\\n[PATH=1]; ls", "echo \"$x\\\n[PATH=1]\"", "echo $x:\\\nF:PATH=1:h", "cat <<E\n$x[PATH=1]\nE", "cat <<E\n$~x\nE",
    "cat <<E}\nE}", "aliases[1]=x\nls",
    "ls\0", "ls\u00a0-l", "ls\u2028rm x", "ls\u200b", "ls\x0b-l", "ls\x0c", "ls \ud800", "ls\rrm x",
    "uniq f \r\n", "ls 2>/dev/null\r\n", "ls >&1\r\n", "cat <<E\r\nE\nrm\r\nE\r\n", "git status\r\n",
    "ls '\r\n'", "ls \\\r\n", "cd x &&\r\ngit status", "ls \u0662>&1", "ls " + "x" * 40_000,
    "(" * 100 + "ls" + ")" * 100, "ls" + " && ls" * 300, "{ " * 50 + "ls" + "; }" * 50,
    "! " * 3000 + "ls", "   ", "\n\n", "<<E\nE", "< f", "((ls))", "ls \\",
]  # fmt: skip


@pytest.mark.parametrize("command", ODD, ids=lambda command: ascii(command)[:40])
def test_what_another_reader_could_take_for_something_else(command: str) -> None:
    assert read(command).refusal is not None


def test_the_reason_names_the_part(asked: Any) -> None:
    assert "`rm` is not one" in asked("ls && rm x")["reason"]
    assert "`>out`" in asked("ls >out")["reason"]
    assert len(asked("ls; " + "x" * 9000)["reason"]) < 300


REASONS = {
    "a=(b c)": "`a=(` begins an array",
    "f() { ls; }": "`f(` would define a function",
    "function f { ls; }": "`function` defines a function",
    "cat <(ls) f": "`<(ls) f` is a process substitution",
    "case x in x) ls;; esac": "`case` begins a condition",
    "select x in a; do ls; done": "`select` begins a loop",
    "for x in a; do ls; done": "`for` begins a loop",
    "git remote show origin": "`git remote show origin` may change remotes",
    "git log --help": "`git log --help` shows a manual",
    "git log --submodule": "`git log --submodule` runs git in other repositories",
    "git log --output=x": "`git log --output=x` writes a file",
    'cd "$x" && git status': '`cd "$x"` may lead anywhere, and `git` would run there',
    "cd +1 && git status": "`cd +1` may lead anywhere, and `git` would run there",
    "cd a^ && git status": "`cd a^` may lead anywhere, and `git` would run there",
    "cd ~root && git status": "`cd ~root` leads to a directory that is not known",
    "cd a;" * 30 + "git status": "too many",
    "cd a && " * 20 + "git status": "`cd a` is one of too many",
    "date --se=1": "`date --se=1` may set the clock",
    "FOO=1 ls": "`FOO=1` is set for a command, ls",
    "foo=1 ls": "`foo=1` is set for a command, ls",
    "FOO=1": "`FOO=1` sets a variable",
    "cat < $_": "`<$_` is a redirection that might connect",
    "sh -c 'a=$[1 + 2]'": "`$[1 + 2]` would be several words to a plain sh",
    "diff -l a b": "`diff -l` runs the program `pr`",
    "date 1": "`date 1` may set the clock",
    "date --x": "`date --x` is not an option",
}


@pytest.mark.parametrize("command", REASONS, ids=lambda command: repr(command)[:40])
def test_the_reason_says_what_is_wrong_with_the_part(command: str) -> None:
    assert REASONS[command] in str(read(command).refusal)


LONG = [
    "ls " + "{.." * 10_000, "ls " + "{" * 10_000 + "," * 10_000, "ls " + "{,}" * 10_000,
    "a[" + "]" * 32_000, "ls " + "=~ " * 10_000, "[ " + "[a]" * 10_000, "x[1]" + "~" * 30_000,
    "sed '" + " " * 30_000 + "Z' f", "sed '1" + " " * 30_000 + "Z' f", "sed '1 ," + " " * 30_000 + "Z' f",
    "sed '/" + "\\a" * 15_000 + "' f", "sed 's/" + "[a" * 15_000 + "/b/' f", "sed 's/" + "[]" * 15_000 + "/b/' f",
    "awk '" + "@ " * 15_000 + "' f", "awk 'system" + " " * 30_000 + "' f", "awk '" + '"' * 30_000 + "' f",
    "echo " + "${x:-" * 6_000, "echo ${x:-" + "'a'" * 9_000, "echo ${x:-" + '"' * 30_000, "echo ${x" + "%" * 30_000,
    "cat <<E\n" + "x\n" * 15_000 + "E", "cat " + "<<A " * 8_000, "date -" + "u" * 30_000, "bash -" + "e" * 30_000,
    "printf '%" + "-" * 30_000 + "'", "git log '" + "%-" * 15_000 + "'", "test " + "! " * 15_000 + '"$x"',
    "cat < ~" + "/tcp" * 8_000 + "x", "uniq -" + "a" * 30_000, "cd a || cd b || " * 60 + "git status",
]  # fmt: skip


@pytest.mark.parametrize("command", LONG, ids=lambda command: repr(command)[:20])
def test_a_long_command_takes_no_long_time(command: str) -> None:
    began = time.process_time()
    read(command)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(("command", "status"), [("ls | head", 0), ("ls && rm x", 1)])
def test_the_command_line_says_it_too(
    command: str,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QWEN_CODE_MEMORY_BASE_DIR", str(tmp_path / "memory"))
    options = ["--tool", "run_shell_command", "--project", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main(["explain", command, *options])
    assert ended.value.code == status
    assert ("`rm` is not one" if status else "Proven read-only") in capsys.readouterr().out


def test_a_command_that_nobody_looked_at_is_denied() -> None:
    effective = Effective(PROFILES["dream"])
    decision = decide(Call("run_shell_command", "shell"), None, effective)
    assert (decision.decision, decision.rule) == ("deny", "shell")


def test_nothing_is_proven_of_a_place_that_was_not_looked_at() -> None:
    reading = read("git status")
    assert reading.places == {()}
    assert not judge(reading, {}).read_only
    assert judge(reading, {(): ()}).read_only


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("a=1 2>/dev/null", 15),  # the grammar misses a command's name there
        ("ls )", 2),
        ("ls -l", 2),
        ("ls ; rm x", 2),
        ("if ls ; then rm x ; fi", 5),
        ("ls > x", 6),
        ("", 2),
        ("ls " + "x" * 9000, 9003),
    ],
)
def test_where_the_grammar_disagrees_nothing_is_proven(text: str, end: int) -> None:
    tokens = Tokens(text, (Run((Word("ls", "ls"),), 0, end),), ())
    with pytest.raises(Refused):
        statement(tokens)


def test_a_brace_in_quotes_ends_no_expansion() -> None:
    assert expansion('${x:-"a b"}', 0) == 11
    for text in ('${x:-"}"}', "${x:-'}'}", "${x:-\\}}", "${x:-{}}"):
        with pytest.raises(Refused):
            expansion(text, 0)


def test_where_git_runs() -> None:
    def places(command: str) -> set[tuple[str, ...]]:
        found = read(command)
        assert found.refusal is None
        return set(found.places)

    assert places("cd a && git log") == {("a",)}
    assert places("cd a; git log") == {(), ("a",)}
    assert places("cd a & git log") == {(), ("a",)}
    assert places("(cd a) && git log") == {()}
    assert places("(cd a && git log); git log") == {(), ("a",)}
    assert places("cd a && cd ../b && git log | head") == {("a", "../b")}
    assert places("cd a || git log") == {()}
    assert places("cd a && true || git log") == {(), ("a",)}
    assert places("cd a || cd b; git log") == {(), ("a",), ("b",)}
    assert places("cd /a && git log; cd b") == {("/a",)}
    assert places("bash -c 'cd a && git log'") == {("a",)}
    assert places("git diff; cd $x") == {()}
    assert places("{ cd a; }; git log") == {(), ("a",)}
    assert places("! cd a && git log") == {(), ("a",)}


# Repositories


class Ground:
    """A project with memory inside of it, and repositories made by hand."""

    def __init__(self, base: Path) -> None:
        env = {"QWEN_CODE_MEMORY_LOCAL": "1", "HOME": str(base / "home")}
        self.place = Embedded(base)
        self.place.gateway.env = env
        self.project = str(self.place.project)
        self.session = self.place.open("dream")
        self.memory = next(root.path for root in self.session.roots if root.kind == "project")
        assert self.memory.startswith(self.project)
        os.makedirs(self.memory)

    def repository(self, path: str, config: str = "[core]\n\tbare = false\n") -> str:
        for name in ("objects", "refs"):
            os.makedirs(f"{path}/{name}")
        write(f"{path}/HEAD", "ref: refs/heads/main\n")
        write(f"{path}/config", config)
        return path

    def ask(self, command: str = "git status", directory: str | None = None) -> str:
        more = {} if directory is None else {"directory": directory}
        decision = self.place.explain(self.session, "run_shell_command", command=command, **more)
        self.reason = decision["reason"]
        return str(decision["decision"])


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path.resolve())


PLAIN = """\
# comment
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = https://example.org/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "a \\"b\\" \\\\ c"]
	remote = origin
	merge = refs/heads/main
[user]
	name = "A \\"B\\""
"""
PROGRAMS = [
    "[core]\n\tfsmonitor = touch x", "[core]\n\tpager = x", "[diff]\n\texternal = x",
    "[include]\n\tpath = x", '[includeIf "gitdir:/"]\n\tpath = x', '[filter "x"]\n\tclean = x',
    '[diff "x"]\n\ttextconv = x', '[diff "x"]\n\tcommand = x', "[alias]\n\tlog = !x",
    "[core]\n\tsshcommand = x", "[core]\n\thookspath = x", "[core]\n\tworktree = /x",
    "[gpg]\n\tprogram = x", "[log]\n\tshowsignature = true", "[core]\n\taskpass = x",
    "[pager]\n\tlog = x", "[core] fsmonitor = x", "[core]\nbare = a \\\n b\n", "[CORE]\n\tFsMonitor = x",
    "[core]\n\tbare = false\r\n\tfsmonitor = x", "[core.x]\n\ta = b", "\ufeff[core]\n\tbare = false",
    '[remote "x"]\n\tuploadpack = x', '[remote "x"]\n\tvcs = x', "[credential]\n\thelper = x",
    "[extensions]\n\tpartialclone = x", "x = y", "[core]\n\tbare = \0", "[core", "]",
    '[remote "a]\n\turl = x', "[trailer \"x\"]\n\tcommand = x", "[core]\n\tattributesfile = x",
]  # fmt: skip


def test_a_plain_repository_outside_memory_passes(ground: Ground) -> None:
    ground.repository(f"{ground.project}/.git", PLAIN)
    os.makedirs(f"{ground.project}/sub dir/deep")
    for command in ("git status", "cd 'sub dir' && git log", "cd 'sub dir'; git log | head"):
        assert ground.ask(command) == "allow", ground.reason
    assert ground.ask(directory="sub dir/deep") == "allow", ground.reason
    assert ground.ask(directory=ground.project) == "allow", ground.reason
    assert ground.ask(directory=f"{ground.memory}") == "allow", ground.reason
    assert ground.ask(directory=f"{ground.project}/none") == "deny"


@pytest.mark.parametrize("config", PROGRAMS, ids=repr)
def test_a_configuration_that_may_name_a_program_does_not(ground: Ground, config: str) -> None:
    git = ground.repository(f"{ground.project}/.git", config)
    assert ground.ask() == "deny", ground.reason
    assert git in ground.reason
    assert ground.ask("git --version; ls") == "allow"
    write(f"{git}/config", PLAIN)
    assert ground.ask() == "allow"
    write(f"{git}/config.worktree", config)
    assert ground.ask() == "deny"


def test_no_repository_means_nothing_to_run(ground: Ground) -> None:
    assert ground.ask() == "allow"
    os.makedirs(f"{ground.project}/.git")  # no repository: git goes on upwards
    assert ground.ask() == "allow"
    assert ground.ask(directory=ground.memory) == "allow"


def test_a_repository_in_memory_never_passes(ground: Ground) -> None:
    ground.repository(f"{ground.memory}/x/.git")
    ground.repository(f"{ground.memory}/bare")
    outside = f"{ground.project}/outside"
    os.makedirs(outside)
    for directory in ("x", "bare", "bare/refs"):
        assert ground.ask(directory=f"{ground.memory}/{directory}") == "deny"
        assert "inside memory" in ground.reason
        assert ground.ask(f"cd {ground.memory}/{directory} && git status") == "deny"
        assert ground.ask(f"cd {ground.memory}; cd {directory}; git diff") == "deny"
    write(f"{outside}/.git", f"gitdir: {ground.memory}/bare\n")
    assert ground.ask("cd outside && git log") == "deny"
    os.unlink(f"{outside}/.git")
    os.symlink(f"{ground.memory}/bare", f"{outside}/.git")
    assert ground.ask("cd outside && git log") == "deny"
    os.unlink(f"{outside}/.git")
    os.symlink(f"{ground.memory}/x", f"{outside}/link")
    assert ground.ask("cd outside/link && git log") == "deny"
    assert ground.ask("cd outside/link/.. && git log") == "allow"


def test_parts_of_a_repository_that_lie_in_memory(ground: Ground) -> None:
    git = ground.repository(f"{ground.project}/.git")
    for name in ("config", "hooks"):
        kept = f"{git}/{name}.kept"
        if os.path.lexists(f"{git}/{name}"):
            os.rename(f"{git}/{name}", kept)
        write(f"{ground.memory}/{name}", "")
        os.symlink(f"{ground.memory}/{name}", f"{git}/{name}")
        assert ground.ask() == "deny", name
        os.unlink(f"{git}/{name}")
        if os.path.lexists(kept):
            os.rename(kept, f"{git}/{name}")
    assert ground.ask() == "allow"
    write(f"{git}/commondir", ground.repository(f"{ground.memory}/common") + "\n")
    assert ground.ask() == "deny"


def test_what_git_runs_without_being_told(ground: Ground) -> None:
    git = ground.repository(f"{ground.project}/.git")
    hook = write(f"{git}/hooks/post-index-change", "#!/bin/sh\n")
    assert ground.ask() == "deny" and "hook" in ground.reason
    os.unlink(hook)
    write(f"{git}/index", an_index(2, an_entry(2, "sub", 0o160000)))
    assert ground.ask() == "deny" and "submodules" in ground.reason
    for index in (b"nothing", b"DIRC", an_index(2, an_entry(2, "f", length=9))):
        write(f"{git}/index", index)
        assert ground.ask() == "deny" and "not plain" in ground.reason
    os.unlink(f"{git}/index")
    os.unlink(f"{git}/config")
    os.mkfifo(f"{git}/config")
    assert ground.ask() == "deny"


def an_entry(
    version: int, name: str, mode: int = 0o100644, length: int | None = None, kept: int = 0
) -> bytes:
    """`kept`: how much of a name stands for what is cut of the one before, in version 4."""
    said = (len(name) if length is None else length).to_bytes(2)
    head = bytes(24) + mode.to_bytes(4) + bytes(12) + bytes(20) + said
    if version == 4:
        return head + bytes([kept]) + name.encode() + b"\0"
    entry = head + name.encode()
    return entry + bytes(8 - len(entry) % 8)


def an_index(version: int, *entries: bytes, more: bytes = b"") -> bytes:
    head = b"DIRC" + version.to_bytes(4) + len(entries).to_bytes(4)
    return head + b"".join(entries) + more + bytes(20)


def an_extension(name: bytes, data: bytes = b"") -> bytes:
    return name + len(data).to_bytes(4) + data


@pytest.mark.parametrize("version", [2, 3, 4])
def test_indexes(version: int) -> None:
    plain, link = an_entry(version, "f"), an_entry(version, "g", 0o160000, kept=1)
    tree = an_extension(b"TREE", b"abc")
    assert not has_submodules(an_index(version), 20)
    assert not has_submodules(an_index(version, plain, an_entry(version, "g", kept=1)), 20)
    assert not has_submodules(an_index(version, plain, more=tree + an_extension(b"UNTR")), 20)
    for more in (an_extension(b"link", bytes(20)), an_extension(b"sdir")):
        assert has_submodules(an_index(version, plain, more=more), 20)
        assert has_submodules(an_index(version, plain, more=tree + more + tree), 20)
    assert has_submodules(an_index(version, plain, link), 20)
    assert has_submodules(an_index(version, plain, an_entry(version, "d", 0o040000)), 20)


def _offsets(version: int) -> dict[str, bytes]:
    plain = an_entry(version, "f")
    end, two = 12 + 2 * len(plain), an_entry(version, "g", kept=1)

    def index(*more: bytes) -> bytes:
        return an_index(version, plain, two, more=b"".join(more))

    def table(*numbers: int, kind: int = 1) -> bytes:
        return an_extension(b"IEOT", b"".join(each.to_bytes(4) for each in (kind, *numbers)))

    def ending(at: int) -> bytes:
        return an_extension(b"EOIE", at.to_bytes(4) + bytes(20))

    return {
        "good end": index(ending(end)),
        "good table": index(table(12, 1, 12 + len(plain), 1), ending(end)),
        "another end": index(ending(end - 8)),
        "an end in another extension": index(an_extension(b"ZZZZ", ending(end - 8))),
        "another place": index(table(12, 1, 13 + len(plain), 1)),
        "too many": index(table(12, 3, 12, 1)),
        "too few": index(table(12, 1)),
        "another kind": index(table(12, 2, kind=2)),
        "half a block": index(an_extension(b"IEOT", (1).to_bytes(4) + bytes(3))),
    }


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("name", _offsets(2))
def test_threads_read_the_same_index(version: int, name: str) -> None:
    index = _offsets(version)[name]
    if name.startswith("good"):
        assert not has_submodules(index, 20)
    else:
        with pytest.raises(ValueError):
            has_submodules(index, 20)


def test_a_table_may_not_begin_within_a_name() -> None:
    entries = an_entry(4, "ab"), an_entry(4, "c", length=2, kept=1)
    table = an_extension(
        b"IEOT", b"".join(n.to_bytes(4) for n in (1, 12, 1, 12 + len(entries[0]), 1))
    )
    assert not has_submodules(an_index(4, *entries), 20)
    with pytest.raises(ValueError):
        has_submodules(an_index(4, *entries, more=table), 20)


ODD_INDEXES = {
    "short": an_index(2, an_entry(2, "f"))[:-30],
    "no header": b"DIRC",
    "another version": an_index(5),
    "fewer entries": b"DIRC" + (2).to_bytes(4) + (9).to_bytes(4) + an_entry(2, "f") + bytes(20),
    "a longer name": an_index(2, an_entry(2, "f", length=9)),
    "a shorter name": an_index(2, an_entry(2, "f" * 9, length=1)),
    "a shorter name of version 4": an_index(4, an_entry(4, "f" * 9, length=1)),
    "a longer name of version 4": an_index(4, an_entry(4, "f", length=2)),
    "nothing to cut": an_index(4, an_entry(4, "f" * 6, length=3, kept=3)),
    "an endless number": an_index(4, an_entry(4, "f")[:62] + b"\xff" * 40),
    "an extension that must be known": an_index(2, more=an_extension(b"abcd")),
    "a long extension": an_index(2, more=b"ABCD" + (99).to_bytes(4)),
    "bytes behind": an_index(2, more=b"ABC"),
}


@pytest.mark.parametrize("name", ODD_INDEXES)
def test_an_odd_index_is_not_read(name: str) -> None:
    with pytest.raises(ValueError):
        has_submodules(ODD_INDEXES[name], 20)


def test_names_of_any_length() -> None:
    for length in (4094, 4095, 4096, 9000):
        entry = an_entry(2, "n" * length, length=min(length, 0xFFF))
        assert not has_submodules(an_index(2, entry), 20)


def test_settings_are_read_strictly() -> None:
    found = settings(PLAIN)
    assert found is not None
    assert ("remote.origin.url", "https://example.org/x.git") in found
    assert ('branch.a \\"b\\" \\\\ c.remote', "origin") in found


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "CDPATH"])
def test_an_environment_that_leads_elsewhere(ground: Ground, name: str) -> None:
    os.makedirs(f"{ground.project}/sub")
    assert ground.ask("cd sub && git log") == "allow"
    ground.place.gateway.env[name] = "/x"
    assert ground.ask("cd sub && git log") == "deny"
    assert ground.ask("ls") == "allow"


def test_the_second_of_two_places_counts(ground: Ground) -> None:
    ground.repository(f"{ground.project}/good/.git")
    ground.repository(f"{ground.project}/bad/.git", PROGRAMS[0])
    assert ground.ask("cd good && git log") == "allow"
    assert ground.ask("cd good && git log && cd ../bad && git log") == "deny"
    assert ground.ask("(cd bad && git log); cd good && git log") == "deny"
    assert ground.ask("(cd bad && ls); cd good && git log") == "allow"
    assert ground.ask("git log", "bad") == "deny"
    assert ground.ask("cd ../good && git log", "bad") == "allow"
    assert ground.ask("cd ../good; git log", "bad") == "deny"


DECOYS = {
    "garbage in HEAD": ("HEAD", "garbage"),
    "an empty HEAD": ("HEAD", ""),
    "a HEAD elsewhere": ("HEAD", "ref: elsewhere\n"),
    "a short name in HEAD": ("HEAD", "0123abcd\n"),
    "a HEAD that is a link": ("HEAD", None),
    "objects that lead nowhere": ("objects", None),
    "refs that lead nowhere": ("refs", None),
    "objects that are a file": ("objects", "x"),
    "a common directory elsewhere": ("commondir", "nowhere\n"),
}


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("decoy", DECOYS)
def test_what_git_passes_by_hides_nothing(ground: Ground, decoy: str, bare: bool) -> None:
    ground.repository(f"{ground.project}/.git", PROGRAMS[0])
    git = ground.repository(f"{ground.project}/sub" if bare else f"{ground.project}/sub/.git")
    assert ground.ask("cd sub && git status") == "allow", ground.reason
    name, text = DECOYS[decoy]
    if name in ("objects", "refs"):
        os.rmdir(f"{git}/{name}")
    if text is None:
        if name == "HEAD":
            os.rename(f"{git}/HEAD", f"{git}/nowhere")
        os.symlink("nowhere", f"{git}/{name}")
    else:
        write(f"{git}/{name}", text)
    assert ground.ask("cd sub && git status") == "deny"
    assert "fsmonitor" in ground.reason


@pytest.mark.parametrize("name", [".git", "commondir", "HEAD", "config"])
def test_a_nul_is_a_denial(ground: Ground, name: str) -> None:
    if name == ".git":
        write(f"{ground.project}/.git", b"gitdir: /a\0b\n")
    else:
        git = ground.repository(f"{ground.project}/.git")
        assert ground.ask() == "allow"
        write(f"{git}/{name}", b"x\0y")
        ground.repository(f"{os.path.dirname(ground.project)}/.git", PROGRAMS[0])
    assert ground.ask() == "deny"


def test_a_linked_work_tree_passes(ground: Ground) -> None:
    git = ground.repository(f"{ground.project}/.git")
    write(f"{git}/worktrees/w/HEAD", "ref: refs/heads/w\n")
    write(f"{git}/worktrees/w/commondir", "../..\n")
    write(f"{ground.project}/w/.git", f"gitdir: {git}/worktrees/w\n")
    assert ground.ask("cd w && git status") == "allow", ground.reason
    write(f"{git}/config", PROGRAMS[0])
    assert ground.ask("cd w && git status") == "deny"


def test_a_shell_may_mix_names_and_directories(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ground.project
    for path in ("start", "t/t1", "t/only", "u/u1", "u/only"):
        os.makedirs(f"{project}/{path}")
    os.symlink("../t/t1", f"{project}/start/link1")
    os.symlink("../u/u1", f"{project}/start/link2")
    ground.repository(f"{project}/u/only/.git", PROGRAMS[0])
    way = "cd link1 && cd .. && cd link2 && cd ../only && git status"
    assert ground.ask(way, "start") == "deny"
    assert "u/only" in ground.reason
    assert ground.ask("cd link1 && cd ../only && git status", "start") == "allow", ground.reason
    assert ground.ask("cd link1 && cd .. && cd .. && git log", "start") == "allow", ground.reason
    monkeypatch.setattr(repositories, "_MOST_SPELLINGS", 1)
    assert ground.ask("cd link1 && cd .. && git log", "start") == "deny"
    assert "too many" in ground.reason


def test_a_shell_may_know_the_directory_by_another_name(ground: Ground) -> None:
    os.makedirs(f"{ground.project}/a/b")
    outside = f"{os.path.dirname(ground.project)}/outside"
    ground.repository(f"{outside}/.git", PROGRAMS[0])
    os.symlink(f"{ground.project}/a/b", f"{outside}/link")
    assert ground.ask("cd .. && git status", "a/b") == "allow"
    ground.place.gateway.env["PWD"] = f"{outside}/link"
    assert ground.ask("cd .. && git status", "a/b") == "deny"
    assert ground.ask("cd .. && git status", "a") == "allow"


def test_only_some_words_do_without_cdpath(ground: Ground) -> None:
    for name in (".hid", "..x", "x"):
        os.makedirs(f"{ground.project}/{name}")
    ground.place.gateway.env["CDPATH"] = "/x"
    for name in (".hid", "..x", "x"):
        assert ground.ask(f"cd {name} && git status") == "deny"
        assert "CDPATH" in ground.reason
    for name in (".", "..", "./.hid", "../", ground.project, "~"):
        ground.ask(f"cd {name} && git status")
        assert "CDPATH" not in ground.reason


def test_what_was_seen_is_not_read_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ground.repository(f"{ground.project}/.git")
    write(f"{git}/index", an_index(2, an_entry(2, "f")))
    for number in range(30):
        os.makedirs(f"{ground.project}/d{number}")
    looks: list[int] = []

    def counted(index: bytes, digest: int) -> bool:
        looks.append(digest)
        return has_submodules(index, digest)

    monkeypatch.setattr(repositories, "has_submodules", counted)
    command = "; ".join(f"(cd d{number}; git status)" for number in range(30))
    assert ground.ask(command) == "allow", ground.reason
    assert looks == [20]
