"""`pinfold audit`: the record, as a person looks at it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinfold.audit.entry import Entry, Trace
from pinfold.audit.line import line_of, lost_line
from pinfold.audit.log import Log, Place
from pinfold_protocol.decision import Decision
from support import DEADLINE, clean_env, write
from unit.test_cli import pinfold

NOON = 1_767_268_800.25  # 2026-01-01 12:00 UTC
ENV = {"TZ": "UTC"}


def line(tool: str, session: str = "s-1", path: str = "/m/a.md", *, denied: bool = False) -> bytes:
    decision = (
        Decision("deny", "pinned", "why", "project", "resolved", path, "/m/pinned/a.md")
        if denied
        else Decision("allow", "default", "why", None, None, path, path)
    )
    trace = Trace(None, decision, os.stat(__file__), "denied" if denied else "done")
    return line_of(Entry(session, tool, trace, NOON))


UNDECIDED = line_of(Entry("s-2", "edit", Trace(outcome="failed:invalid-path"), NOON))


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    write(f"{path}.2", line("read_file", path="/m/first.md"))
    write(f"{path}.1", b"garbage\n" + line("edit", denied=True) + lost_line(3))
    write(path, UNDECIDED + line("write_file", "s-2", "/m/\x1b[31m\u202e\udcff.md") + b'{"half')
    return path


def test_the_oldest_comes_first_and_one_line_says_it_all(tmp_path: Path, record: Path) -> None:
    result = pinfold(tmp_path, "audit", str(record), **ENV)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[2].endswith("!  3 lines are missing here")
    assert [*lines[:2], *lines[3:]] == [
        "2026-01-01 12:00:00  ✓  read_file    /m/first.md  default  done  s-1",
        "2026-01-01 12:00:00  ✗  edit         /m/a.md → /m/pinned/a.md  pinned (resolved)  denied  s-1",
        "2026-01-01 12:00:00  –  edit         no path  undecided  failed:invalid-path  s-2",
        r"2026-01-01 12:00:00  ✓  write_file   /m/\x1b[31m\u202e\udcff.md  default  done  s-2",
    ]
    assert result.stderr == "pinfold: skipped 2 lines that are no record\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["read_file", "edit", None, "edit", "write_file"]),
        (["--denied"], ["edit", None]),
        (["--session", "s-2"], [None, "edit", "write_file"]),
        (["--session", "s-1", "--denied"], ["edit", None]),
        (["--session", "nobody"], [None]),
    ],
)
def test_what_is_asked_for(
    tmp_path: Path, record: Path, arguments: list[str], expected: list[str | None]
) -> None:
    result = pinfold(tmp_path, "audit", str(record), "--json", *arguments)
    assert result.returncode == 0 and result.stdout.isascii()
    shown = [json.loads(each) for each in result.stdout.splitlines()]
    assert [members.get("tool") for members in shown] == expected


def test_without_a_name_it_is_where_the_gateway_puts_it(tmp_path: Path) -> None:
    for env in ({"XDG_STATE_HOME": str(tmp_path / "x")}, {"XDG_STATE_HOME": ""}):
        directory = env["XDG_STATE_HOME"] or f"{tmp_path}/.local/state"
        missing = pinfold(tmp_path, "audit", **env)
        assert missing.returncode == 2 and "there is no record" in missing.stderr
        write(f"{directory}/pinfold/audit.jsonl", line("edit"))
        assert "/m/a.md" in pinfold(tmp_path, "audit", **env).stdout


@pytest.mark.parametrize("what", ["none.jsonl", "directory", "fifo", "none/x"])
@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_what_cannot_be_read_is_two(tmp_path: Path, what: str, follow: list[str]) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    result = pinfold(tmp_path, "audit", str(tmp_path / what), *follow)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("pinfold: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("redirection", "status", "told"),
    [
        (">&-", 2, "pinfold: there is no output to write to\n"),
        (">/dev/full", 2, "pinfold: the output: No space left on device\n"),
        ("2>&-", 0, ""),
        ("| true", 0, ""),
    ],
)
def test_an_output_that_takes_nothing(
    tmp_path: Path, redirection: str, status: int, told: str
) -> None:
    path = write(tmp_path / "a", b"garbage\n" * ("2>" in redirection) + line("edit") * 5000)
    shell = f"set -o pipefail; {sys.executable} -m pinfold audit {path} {redirection}"
    result = subprocess.run(
        ["bash", "-c", shell],
        capture_output=True,
        text=True,
        timeout=50,
        env=clean_env(),
        check=False,
    )
    assert (result.returncode, result.stderr) == (status, told)


@contextmanager
def following(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "pinfold", "audit", str(path), "--follow", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(),
        # Tests may run in the background of a shell, which ignores it for all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def next_tool(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return str(json.loads(process.stdout.readline())["tool"])


def test_it_follows_through_rotation_and_ends_when_told(tmp_path: Path) -> None:
    path = tmp_path / "a"
    log = Log(Place(str(path), 1 << 16, 50))
    log.append([line("first")])
    with following(path) as process:
        assert next_tool(process) == "first"
        log.append([line(f"t{n}") for n in range(1000)])
        assert os.path.exists(f"{path}.3")
        assert [next_tool(process) for _ in range(1000)] == [f"t{n}" for n in range(1000)]
        log.append([line("last")])
        assert next_tool(process) == "last"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
        assert process.stderr is not None and process.stderr.read() == b""
    log.close()


def test_following_ends_when_nobody_reads_any_more(tmp_path: Path) -> None:
    path = write(tmp_path / "a", line("first"))
    with following(Path(path)) as process:
        assert next_tool(process) == "first"
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(DEADLINE) == 0 and process.stderr.read() == b""
