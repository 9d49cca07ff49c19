"""What the gate allows is run for real, in a scratch directory that must not change."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support import Embedded, cases, snapshot, write

SECONDS = 3.0
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


def _run(command: str, project: Path, env: dict[str, str]) -> None:
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=project,
        env=env,
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


@pytest.mark.timeout(600)
def test_the_allowed_ones_leave_the_tree_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not shutil.which("git") or not shutil.which("bash"):
        pytest.skip("needs bash and git")
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
        _run(command, place.project, env)
        assert (snapshot(base), _times(base)) == before, command
        ran += 1
    with capsys.disabled():
        print(f"\n{ran} commands ran and changed nothing; skipped:", *skipped, sep="\n  ")
    assert ran >= LEAST
