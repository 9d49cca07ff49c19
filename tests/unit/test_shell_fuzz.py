"""The shell gate against commands that are built: one writing part anywhere is never allowed."""

import getopt
import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from pinfold.policy.shell.commands import _DATE, _UNIQ
from pinfold.policy.shell.gate import judge, read
from pinfold.policy.shell.options import Syntax, readings
from pinfold.policy.shell.scripts import _AWK, _SED
from pinfold.policy.shell.words import Refused, Word, WordReader, expansion
from support import cases

READS = [
    "ls", "ls -la", "cat f", "pwd", "echo hi", "echo \"a b\"", "grep -n 'x y' f", "head -2 f",
    "wc -l f", "sort -n f", "uniq -c f", "find . -name '*.md'", "sed -n 1,3p f", "true",
    "awk '{print $1}' f", "printf '%s' a", "[ -f f ]", "test -d d", "date +%s", "diff a b",
    "git log", "git status", "cat <<< hi", "cat < f", "ls 2>/dev/null", "ls $x", "cat \"$x\"",
    "( ls )", "{ ls; }", "! ls", "stat f", "echo ${x:-y}", "echo $((1+2))",
]  # fmt: skip
JOINTS = st.sampled_from(
    [" | ", " && ", " || ", "; ", "\n", " & ", " |& ", ";", "|", "&&", " \\\n| "]
)
WRITES = st.sampled_from(
    [
        "rm f", "touch f", "cp a b", "tee f", "sed -i p f", "sort -o f g", "find . -delete",
        "awk '{print > \"o\"}' f", "git commit -m x", "git branch x", "python -c 1", "./x",
        "dd of=f", "uniq a b", "printf -v x y", "date -s 1", "file -C -m f", "tree -R -L 1", "$x",
        "sed 'w o' -e p", "sed -- 'w o' -e p", "sed '/a/w o' f", "awk 1 /inet/tcp/0/h/1", "diff -l a b",
        "awk 'BEGIN{ARGC=9}' f", "git log --format=%+GS", "git show --format='% G?'", "diff * a", "file * a",
        "eval ls", "alias ls=rm", "ls() { rm f; }", "export A=b", "trap 'rm f' EXIT", "exec ls",
    ]
)  # fmt: skip
REDIRECTIONS = st.sampled_from(
    [">o", " > o", ">>o", ">|o", "&>o", "&>>o", " 2>o", " 3>o", " <>o", " >&o", " >$x", " {x}>o", " >/dev/null"]
)  # fmt: skip
SUBSTITUTIONS = st.sampled_from(
    ["$(rm f)", "`rm f`", "\"$(rm f)\"", "\"`rm f`\"", "<(rm f)", ">(rm f)", "${x:-$(rm f)}",
     "${x:=y}", "${!x}", "${x@P}", "$((a[$(rm f)]))", "$((x))", "$[x]", "${a[x]}", "${x:y}",
     "\"${x:-`rm f`}\"", "$(<f)", "\"$((x=1))\"",
     "${x:-${y:-$(rm f)}}", "${x:-\"`rm f`\"}", "${x%\"$(rm f)\"}", "${x/a/${y:=b}}", "${x:-<(rm f)}", "${x:-}$(rm f)}"]
)  # fmt: skip
WRAPPERS = st.sampled_from(
    ["xargs", "env", "sudo", "nohup", "command", "exec", "time", "builtin", "nice", "timeout 1",
     "A=b", "PATH=.", "a=b", "zsh -c", "pwsh -c", "bash", "sh f -c", "bash --rcfile f -c",
     "bash -rcfile f -c", "bash -init-file f -c", "coproc", "if", "while", "for", "function f", "eval", "source"]
)  # fmt: skip
CONNECTIONS = st.sampled_from(
    ["/dev/tcp/h/1", "$_", "$BASH_COMMAND", "${BASH_EXECUTION_STRING#*q}", "$PWD", "${OLDPWD#*m}", "~+/tcp/h/1", "~/dev/tcp/h/1",
     "$HOME/dev/udp/h/1", "$x/tcp/h/1", "${x:-/dev/tcp/h/1}", "$1", "\"$x\"$y", "$DIRSTACK", "${x%y}", "*"]
)  # fmt: skip
PLAIN_SHELL = st.sampled_from(
    ["a+=/bin/x", "a[0]=/bin/x", "a=b c+=/bin/x", "uniq f 12<f", "uniq f 10>&1", "git branch 12<f", "ls >&12", "a=$[0 1/2]",
     "a=${x:1 1/2}", "a=${x/b 1/2/c}", "a=${x[0]/ 1/2}", "echo $'a'", "x=1 a+=b"]
)  # fmt: skip
DOCUMENTS = st.sampled_from(
    ["cat <<E | tee o\nE", "cat <<E > o\nE", "cat <<E && rm f\nE", "cat <<E\n$(rm f)\nE",
     "cat <<E\n`rm f`\nE", "cat <<E; rm f\nE", "sh <<E\nrm f\nE", "cat <<-E\nx\n\tE\nrm f\n",
     "cat <<'E'\n$(x)\nE\nrm f", "cat <<E\nE\\\nE\nrm f", "cat <<E\nrm f", "cat <<A <<B\nA\nB\nrm f"]
)  # fmt: skip
BEFORE = st.sampled_from(
    ["PATH=.", "IFS=x", "BASH_ENV=f", "LD_PRELOAD=f", "GIT_DIR=x", "HOME=/x", "a[x]=1", "A=b"]
)


ALLOWED = [case for case in cases("shell.json") if case["expect"] == "allow"]


def allowed(command: str) -> bool:
    """With no repository anywhere."""
    reading = read(command)
    return judge(reading, dict.fromkeys(reading.places, ())).read_only


@st.composite
def reading_parts(draw: st.DrawFn, least: int = 0) -> list[str]:
    return draw(st.lists(st.sampled_from(READS), min_size=least, max_size=4))


@st.composite
def joined(draw: st.DrawFn, parts: list[str]) -> str:
    command = parts[0]
    for part in parts[1:]:
        # A here-document's end is a line of its own.
        command += ("\n" if "<<E" in command or "<<'E" in command else draw(JOINTS)) + part
    return command


@st.composite
def wrapped(draw: st.DrawFn, command: str) -> str:
    form = draw(st.sampled_from(["{}", "( {}\n)", "{{ {}\n}}", "bash -c '{}'", " {} ", "{}\n"]))
    if "bash" in form:
        command = command.replace("'", "'\\''")
    return form.format(command)


@st.composite
def only_reading(draw: st.DrawFn) -> str:
    return draw(wrapped(draw(joined(draw(reading_parts(1))))))


@st.composite
def writing(draw: st.DrawFn) -> str:
    """Reading parts, and one that writes in some position."""
    before, after = draw(reading_parts()), draw(reading_parts())
    victim = draw(st.sampled_from(READS[:16]))
    part = draw(
        st.one_of(
            WRITES,
            DOCUMENTS,
            REDIRECTIONS.map(lambda text: victim + text),
            REDIRECTIONS.map(lambda text: f"{text.lstrip()} {victim}"),
            SUBSTITUTIONS.map(lambda text: f"{victim} {text}"),
            SUBSTITUTIONS.map(lambda text: f"a={text}"),
            SUBSTITUTIONS.map(lambda text: f"cat < {text}"),
            SUBSTITUTIONS.map(lambda text: f"cat <<< {text}"),
            CONNECTIONS.map(lambda text: f"{victim} <{text}"),
            CONNECTIONS.map(lambda text: f"0< {text} {victim}"),
            WRAPPERS.map(lambda text: f"{text} {victim}"),
            BEFORE,
            BEFORE.map(lambda text: f"{text} {victim}"),
            WRITES.map(lambda text: f"{victim} & {text}"),
            WRITES.map(lambda text: f"{victim}\\\n; {text}"),
            WRITES.map(lambda text: f"({text})"),
            WRITES.map(lambda text: f"{{ {text}; }}"),
        )
    )
    return draw(wrapped(draw(joined([*before, part, *after]))))


@given(only_reading())
def test_what_is_built_of_reading_parts_passes(command: str) -> None:
    # Two wrappers, and a `!` or `{` behind a pipe, are no command of bash's.
    reading = read(command)
    if not re.search(r"\|&?(?: |\\\n)*!", command):
        assert allowed(command), reading.refusal


@given(writing())
@example("ls & rm f")
def test_one_writing_part_anywhere_is_never_allowed(command: str) -> None:
    assert not allowed(command)


@given(st.data())
def test_what_a_plain_shell_reads_otherwise_is_never_allowed(data: st.DataObject) -> None:
    parts = [*data.draw(reading_parts()), data.draw(PLAIN_SHELL), *data.draw(reading_parts())]
    command = data.draw(joined(parts)).replace("'", "'\\''")
    shell = data.draw(st.sampled_from(["sh", "/bin/sh", "/usr/bin/sh", "sh -e", "sh -ux"]))
    assert not allowed(f"{shell} -c '{command}'")


BODIES = st.recursive(
    st.sampled_from(["a", "a b", "$y", "${y}", "~/n", "[0-9]*", "\\/", "'a b'", "*", "$((1 + 2))", "é", "!x"]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from([":-", ":+", "#", "%%", "/", "//a/", "?"]), inner).map(lambda pair: "${x" + "".join(pair) + "}"),
        st.lists(inner, max_size=3).map("".join),
        inner.filter(lambda text: '"' not in text).map('"{}"'.format),
    ),
    max_leaves=4,
)  # fmt: skip


@given(BODIES, st.sampled_from(["${{x:-{}}}", "${{x%{}}}", "${{x/{}/b}}"]), st.booleans())
def test_an_expansion_of_harmless_parts_has_one_end(body: str, form: str, quoted: bool) -> None:
    piece = form.format(body)
    try:
        end = expansion(piece + "}z", 0)
    except Refused:
        return
    assert end == len(piece)
    word = WordReader(f'"{piece}" z' if quoted else f"{piece} z", 0).read()
    assert word.expands and word.raw == (f'"{piece}"' if quoted else piece)


PIECES = st.sampled_from(
    [*"$`'\"\\(){}[]<>|&;!#*?~=: \t\n\r", "ls", "rm", "cat", "f", "$(", "${", "$((", "))", "<<E", "\nE\n",
     "${x:-", "/dev/tcp/h/1", "sed ", "awk ", "sh -c ", "a=", "<<<", ">&", "2>", "/dev/null", "bash -c ", "git", "x", "\\\n", "@", "-v", "1", "\u00a0", "é"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_text_is_answered(command: str) -> None:
    reading = read(command)
    assert reading.refusal is None or reading.refusal
    if reading.refusal is None:
        outside = re.sub(r"'[^']*'", "", command)
        assert "`" not in re.sub(r"\\.", "", outside, flags=re.DOTALL)
        assert not re.search(r"\brm\b", outside) or re.search(r"\b(ls|cat|git)\b", outside)


@given(
    st.sampled_from(ALLOWED),
    st.sampled_from(["; rm f", " > o", "\nrm f", " && rm f", " | tee o", " & rm f"]),
)
def test_a_vector_with_a_writing_end_is_never_allowed(case: dict[str, str], end: str) -> None:
    assert not allowed(case["command"] + end), json.dumps(case)


SYNTAXES = {"awk": _AWK, "date": _DATE, "sed": _SED, "uniq": _UNIQ}
ARGUMENTS = st.lists(
    st.sampled_from(
        ["f", "-", "--", "5", "+1", "-w", "-w5", "-cw", "-e", "-ne", "-nep", "-l", "-l5", "-d", "-D", "-dD", "-Dc", "-F", "-F:", "-v",
         "-I", "-Id", "-u", "--skip-fields", "--skip-f", "--skip-f=1", "--count", "--all", "--all=x", "--expression", "--e=p", "--date", "--x", "-x"]
    ),
    max_size=7,
)  # fmt: skip


def _as_getopt_reads(
    arguments: list[str], syntax: Syntax, valued: str, permutes: bool
) -> tuple[list[tuple[str, str]], list[str]]:
    """Python's own reader. `valued`: which of the letters that have several readings are so."""
    bare = "".join(letter for letter in syntax.bare if letter not in valued)
    both = "".join(each for each in valued + syntax.valued if each not in bare)
    long = [*syntax.long, *(f"{name}=" for name in syntax.long_valued)]
    reader = getopt.gnu_getopt if permutes else getopt.getopt
    return reader(arguments, bare + "".join(f"{each}:" for each in both), long)


@given(st.sampled_from(sorted(SYNTAXES)), ARGUMENTS, st.booleans(), st.booleans())
@example("uniq", ["./-w/x.md", "-w/../pinned/rules.md"], False, False)
@example("sed", ["-l", "5", "p"], True, True)
def test_what_another_reader_of_options_finds_is_among_the_readings(
    name: str, arguments: list[str], permutes: bool, valued: bool
) -> None:
    syntax = SYNTAXES[name]
    words = tuple(Word(text, text) for text in arguments)
    try:
        found = readings(name, words, syntax)
        options, operands = _as_getopt_reads(arguments, syntax, "l" * valued, permutes)
    except (Refused, getopt.GetoptError):
        return  # not known here, or the end of the program
    told = [(option.lstrip("-"), value) for option, value in options]
    assert any(
        [word.value for word in reading.operands] == operands
        and len(reading.options) == len(told)
        and [value or "" for _, value in reading.options] == [value for _, value in told]
        for reading in found
    )
