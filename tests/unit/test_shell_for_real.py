"""What the gate allows is run for real, in a scratch directory that must not change."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pinfold.policy.shell.gate import read
from support import Embedded, cases, snapshot, write

SECONDS = 2.0
"""Some of them wait for input or more of it for ever, and are ended."""

COMMANDS = [case["command"] for case in cases("shell.json") if case["expect"] == "allow"]
MORE = [
    "test -f f && cat f 2>/dev/null", "[ -d dir ] && date +%F", "diff a b", "file f ./*",
    "sort -t: -k1 f | uniq -c", "find . -type f | sort | head -3", "sed -e 's/a/b/' -e 1d f",
    "awk '/a|b/ {n++} END {print n}' f", "git log -p --stat", "git status -v", "git blame f",
    "git branch --list 'x*'", "git remote -v", "git grep -n a", "git describe --always",
    "git show HEAD:f", "cd dir && git status", "cat <<-E | head -1\n\ta\n\tE",
    "bash --norc -c 'ls | head' && pwd", "printf '%s\\n' a b", "echo ${x:-y} $((1 + 2))",
    "sed -n '/b/p' f", "sed '/^$/d' f | sed -n -e '/a\\/b/p'", "sed -l 5 -n l f", "sed --expression s/a/b/ f",
    "awk '/system/ {print}' f", "awk '/a@b/' f", "awk -- '{print \"a@b\"}' f -", "date -Is; date --da=yesterday",
    "echo ${x:-$y} ${x:-\"a b\"} ${x:-~/n} \"${x//\\//_}\" \"${x%%[0-9]*}\" \"${x#\"a\"}\"",
    "sh -c 'a=${x:-\"a b\"}; echo $a $((1 + 2))'", "cat < \"$HOME/nothing\"", "file ./* ; diff ./a b", "sort -S 1k f",
    "bash -rc ls",
    "test -v a[0] || true", "(cd dir; ls) | wc -l; { pwd; }", "x=1; echo $x", "! ls nowhere",
]  # fmt: skip
LEAST = 60

_SET_UP = ("-o", "extendedglob", "-o", "braceccl", "-o", "rcquotes", "-o", "magicequalsubst")
SHELLS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "bash": (("bash", "-c"), {}),
    "bash, options end at the first operand": (("bash", "-c"), {"POSIXLY_CORRECT": "1"}),
    "zsh": (("zsh", "-fc"), {}),
    "zsh, as some set it up": (("zsh", "-f", *_SET_UP, "-c"), {}),
}
"""Whatever reads a command, and how the programs that it runs look for options."""

pytestmark = pytest.mark.slow


def _environment(base: Path) -> dict[str, str]:
    home = str(base / "home")
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(base),
        "LC_ALL": "C.UTF-8",
        "HISTFILE": f"{home}/history",
    }


def _lay(project: Path, env: dict[str, str]) -> None:
    for name in ("f", "a", "b", "in", "foo", "x.md", "dir/g", "jsonl/x.jsonl"):
        write(project / name, f"{name}\nb a\nc\n")
    os.makedirs(env["HOME"])
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for command in (["init", "-q"], ["add", "f", "a"], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *who, *command], cwd=project, env=env, check=True, timeout=20)


def _missing(command: str) -> str | None:
    """A program of the command that this machine lacks."""
    names = {"rg", "tree", "column", "ps", "which", "where", "file", "awk", "git"}
    return next((n for n in command.split() if n in names and not shutil.which(n)), None)


def _run(command: str, project: Path, env: dict[str, str], shell: str = "bash") -> None:
    words, more = SHELLS[shell]
    process = subprocess.Popen(
        [*words, command],
        cwd=project,
        env=env | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also what it left in the background
        except ProcessLookupError:
            pass
        process.wait()


def _times(top: Path) -> dict[str, tuple[int, int]]:
    paths = [Path(directory, name) for directory, _, names in os.walk(top) for name in names]
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in paths}


def _require(shell: str) -> None:
    program = SHELLS[shell][0][0]
    if not shutil.which("git") or not shutil.which(program):
        pytest.skip(f"needs {program} and git")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_allowed_ones_leave_the_tree_as_it_was(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _require(shell)
    base = tmp_path.resolve()
    place = Embedded(base)
    env = _environment(base)
    _lay(place.project, env)
    session = place.open("dream")
    ran, skipped = 0, []
    before = snapshot(base), _times(base)
    for command in (*COMMANDS, *MORE):
        decision = place.explain(session, "run_shell_command", command=command)
        assert decision["decision"] == "allow", (command, decision["reason"])
        if lacking := _missing(command):
            skipped.append(f"{command!r}: no {lacking} here")
            continue
        _run(command, place.project, env, shell)
        assert (snapshot(base), _times(base)) == before, command
        ran += 1
    with capsys.disabled():
        print(f"\n{ran} commands ran and changed nothing; skipped:", *skipped, sep="\n  ")
    assert ran >= LEAST


# Random ones

NAMES = (
    "awk basename cat cd column cut date df diff dirname du echo file find grep head ls printf pwd sed sort stat tail test "
    "[ true uniq wc where which bash sh"
).split()
NAMES += ["uniq", "sed", "awk", "sort"] * 6  # whose words decide
PARTS = [
    "a", "b", "7", "8", "d/c", "-", "--", "-c", "-o", "-n", "-e", "-f", "-w", "-w5", "-s", "-k1", "-u", "-i", "-v", "-t", "-d", "-D",
    "-T.", "-S1", "-l", "-z", "-C", "-m", "-1", "+1", "+%Y", "--count", "--skip-fields", "--output=b", "--out", "--date=now", "--posix",
    "d/-w/../../b", "-w/../b", "-fprint", "-delete", "-exec", "';'", "p", "5", "1p", "'w b'", "s/a/b/", "'s/o/b/w b'", "'{print}'",
    "'{print > \"b\"}'", "x=1", "$x", "${x:-b}", "*", "./*", "{a,b}", "{ab}", "-{o}", "~", "\"a\"", "'a''b'", "a#", "7#", "^a", "a~b",
    "$x[PATH=1]", "$x:F:PATH=1:h", "$~x", "$#x", "$=x", "${x}[1]", "=ls", "a}", "}", "{", "always", "'%d'", "'%s'", "'path[$(touch y)]'",
    "'*(e:touch y:)'", "-eq", "-gt", "=", "-a", "]", "2>&1", "2>/dev/null", ">b", ">&2", "12>&1", "<a", "<7-8>&2", "<->", "<<<b",
    "/dev/stdin", "/dev/null", "'uniq a b'", "-c'cat a'",
]  # fmt: skip
JOINTS = ["; ", " | ", " && ", "\n", " & ", " || ", " &! ", " |& "]
FORMS = [
    "{}",
    "{}",
    "{}",
    "{{ {}; }}",
    "( {} )",
    "x='*(e:touch y:)'; {}",
    "path=tools; {}",
    "path[1]=1; {}",
    "{}; ls",
    "{{ {} }}",
]
TRAPS = "a b 7 8 77 ab d/c -c -o -w -w5 --output=b --count d/-w/x".split()
DURING = 5.0
"""Seconds for each shell, unless PINFOLD_SECONDS says otherwise."""


def _at_random(chosen: random.Random) -> str:
    def simple() -> str:
        words = (chosen.choice(PARTS) for _ in range(chosen.randint(0, 5)))
        return " ".join((chosen.choice(NAMES), *words))

    command = chosen.choice(FORMS).format(simple())
    return command if chosen.random() < 0.6 else command + chosen.choice(JOINTS) + simple()


def _lay_traps(project: Path) -> None:
    """Files called like options, and programs that leave a trace where PATH leads to them."""
    for name in TRAPS:
        write(project / name, "one\none\ntwo\n")
    for name in NAMES:
        for directory in ("1", "tools"):
            path = write(project / directory / name, f"#!/bin/sh\necho > '{project}/trace'\n")
            os.chmod(path, 0o755)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_passes_of_random_commands_leaves_the_tree_as_it_was(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _require(shell)
    base, seed = tmp_path.resolve(), int(os.environ.get("PINFOLD_SEED", "1"))
    project, env, chosen = base / "project", _environment(base), random.Random(seed)
    _lay_traps(project)
    os.makedirs(env["HOME"])
    before = snapshot(base), _times(base)
    until, read_of, ran = time.monotonic() + float(os.environ.get("PINFOLD_SECONDS", DURING)), 0, 0
    while time.monotonic() < until:
        command = _at_random(chosen)
        read_of += 1
        if read(command).refusal is not None:
            continue
        ran += 1
        _run(command, project, env, shell)
        assert (snapshot(base), _times(base)) == before, command
    with capsys.disabled():
        print(f"\n{ran} of {read_of} random commands passed, and changed nothing by {shell}")
    assert ran
