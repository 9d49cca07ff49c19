"""The command line, as a person or a script uses it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import clean_env, write


def pinfold(tmp_path: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    base = {"QWEN_CODE_MEMORY_BASE_DIR": str(tmp_path / "memory"), "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", "pinfold", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=clean_env(**{"COLUMNS": "200"} | base | env),
        cwd=tmp_path,
        timeout=50,
        check=False,
    )


def memory_of(tmp_path: Path, *more: str) -> str:
    result = pinfold(tmp_path, "roots", "--json", *more)
    path: str = json.loads(result.stdout)["roots"][0]["path"]
    return path


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["pinned/a.md", "--profile", "dream"], 1, "pinned (literal)"),
        (["alias/a.md", "--profile", "dream"], 1, "pinned (resolved)"),
        (["topic.md", "--profile", "dream"], 0, "ALLOW"),
        (["pinned/a.md"], 1, "the dream profile"),
        (["pinned/a.md", "--profile", "main"], 0, "ALLOW"),
        (["pinned/a.md", "--profile", "main", "--scope", "protectPinned=true"], 1, "an override"),
        (["pinned/a.md", "--profile", "dream", "--tool", "read_file"], 0, "ALLOW"),
        (["../x", "--profile", "remember", "--tool", "list_directory"], 1, "outside-memory"),
        (["x", "--profile", "dream", "--tool", "glob"], 1, "unknown-tool"),
        (["x", "--profile", "main", "--tool", "eidt"], 0, "does not know this tool"),
    ],
)
def test_explain_says_what_and_why(
    tmp_path: Path, arguments: list[str], status: int, words: str
) -> None:
    memory = memory_of(tmp_path)
    write(f"{memory}/pinned/a.md", "curated")
    os.symlink("pinned", f"{memory}/alias")
    path, *rest = arguments
    result = pinfold(tmp_path, "explain", f"{memory}/{path}", *rest)
    assert result.returncode == status, result.stderr
    assert words in result.stdout
    as_json = json.loads(pinfold(tmp_path, "explain", f"{memory}/{path}", *rest, "--json").stdout)
    assert as_json["decision"] == ("allow" if status == 0 else "deny")
    assert as_json["reason"] in " ".join(result.stdout.split())


def test_explain_says_where_else_the_path_is(tmp_path: Path) -> None:
    there = write(f"{memory_of(tmp_path)}/pinned/a.md", "curated")
    note = f"it counts from the project; in memory there is {there}"
    assert note in pinfold(tmp_path, "explain", "pinned/a.md").stdout
    for path in (there, "pinned/b.md"):
        assert "counts from" not in pinfold(tmp_path, "explain", path).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "x", "--scope", "protectPined=true"], "scope.protectPined"),
        (["explain", "x", "--scope", "protectPinned=yes"], "true or false"),
        (["explain", "x", "--profile", "dreams"], "dreams"),
        (["explain", ""], "empty"),
        (["explain", "x", "--project", "nowhere"], "no directory"),
        (["roots", "--project", "nowhere"], "no directory"),
        (["explain"], "PATH"),
        (["nothing"], "nothing"),
        ([], "which COMMAND?"),
        ([], "show where the memory of a project is"),
        (["explan", "x"], "no command 'explan'; 'explain'?"),
        (["--versoin"], "no option --versoin; '--version'?"),
        (
            ["explain", "x", "--profle", "dream"],
            "explain: there is no option --profle; '--profile'?",
        ),
        (["explain", "x", "--profile", "draem"], "not 'draem'; 'dream'?"),
        (["roots", "x"], "'x' is one argument too many"),
        (["roots", "--bogus"], "`pinfold roots --help` has its options"),
        (["explain", "x", "--scope", "shel=deny"], "scope.shel: is not a known member; 'shell'?"),
        (["hook", "--install"], "--host is missing: give claude-code or qwen-code"),
        (["explain", "x", "--config", "nowhere.json"], "nowhere.json: there is no such file"),
    ],
)
def test_what_cannot_be_done_is_said_on_stderr(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = pinfold(tmp_path, *arguments)
    assert result.returncode == 2 and words in result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""


def test_roots_shows_where_memory_is(tmp_path: Path) -> None:
    result = pinfold(tmp_path, "roots", "--profile", "dream")
    assert result.returncode == 0
    for words in ("project", "user", "team", "not there yet", "pinned", "outside the session"):
        assert words in result.stdout
    claude = pinfold(tmp_path, "roots", "--layout", "claude")
    assert "/.claude/projects/" in claude.stdout and "team" not in claude.stdout


def test_demo_shows_it_and_leaves_nothing(tmp_path: Path) -> None:
    result = pinfold(tmp_path, "demo", TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "unharmed, byte for byte" in result.stdout
    assert "12 calls, 8 denied" in result.stdout
    for words in ("hard-link", "resolved", "literal", "outside-memory", "preserve, pinned"):
        assert words in result.stdout
    assert not [name for name in os.listdir(tmp_path) if name.startswith("pinfold-demo")]


def test_version(tmp_path: Path) -> None:
    assert pinfold(tmp_path, "--version").stdout.startswith("pinfold 0.")


def test_serve_refuses_a_system_without_posix(tmp_path: Path) -> None:
    code = "import sys; from pinfold.cli import main; sys.platform = 'win32'; main(['serve'])"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=clean_env(HOME=str(tmp_path)),
        timeout=50,
        check=False,
    )
    assert ran.returncode == 2 and b"Windows is not supported" in ran.stderr and not ran.stdout


def test_explain_imports_rich_and_serve_does_not(tmp_path: Path) -> None:
    def imported(*arguments: str) -> set[Any]:
        result = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "pinfold", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=clean_env(HOME=str(tmp_path)),
            timeout=50,
            check=False,
        )
        return {
            line.rpartition("|")[2].strip().split(".")[0] for line in result.stderr.splitlines()
        }

    assert "rich" in imported("explain", "/x")
    assert not {"rich", "attr", "cattrs", "pygls"} & imported("serve")


def test_paths_cannot_play_tricks_on_a_terminal(tmp_path: Path) -> None:
    result = pinfold(
        tmp_path, "explain", "a\x1b[31mred\x1b]0;title\x07\u202e\nb", PYTHONIOENCODING="ascii"
    )
    assert result.returncode == 1 and "\x1b" not in result.stdout
    assert "a\\x1b[31mred" in result.stdout and "\\u202e\\nb" in result.stdout


def test_nothing_is_folded_in_a_pipe(tmp_path: Path) -> None:
    path = "/" + "long/" * 50 + "name.md"
    result = pinfold(tmp_path, "explain", path, COLUMNS="40")
    assert path in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--", "cat"], "goes with --upstream"),
        (["serve", "--upstream", "local", "--", "cat"], "neither local nor editor"),
        (["serve", "--upstream", "editor"], "neither local nor editor"),
        (["serve", "--upstream", ""], "a printable name"),
        (["serve", "--upstream"], "expected one argument"),
    ],
)
def test_an_upstream_that_cannot_be_is_refused(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = pinfold(tmp_path, *arguments)
    assert result.returncode == 2 and words in result.stderr and not result.stdout


@pytest.mark.parametrize("command", [["roots"], ["explain", "x"]])
def test_a_current_directory_that_has_gone_is_said(tmp_path: Path, command: list[str]) -> None:
    gone = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    result = subprocess.run(
        ["sh", "-c", gone, "sh", sys.executable, "-m", "pinfold", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean_env(HOME=str(tmp_path)),
        timeout=50,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "pinfold: the current directory has been removed: cd to another\n"


def test_a_missing_record_is_named_by_its_file(tmp_path: Path) -> None:
    result = pinfold(tmp_path, "audit")
    assert result.returncode == 2
    assert "audit.jsonl: there is no record" in result.stderr


# What the user has configured counts for what people ask, too


def configure(tmp_path: Path, text: str) -> str:
    return write(tmp_path / ".config/pinfold/config.json", text)


@pytest.mark.parametrize(
    ("config", "arguments", "status", "words"),
    [
        ({"profile": "main"}, ["explain", "x"], 0, "edit in a main session"),
        ({"profile": "main"}, ["explain", "x", "--profile", "dream"], 1, "in a dream session"),
        (
            {"scope": {"shell": "deny"}},
            ["explain", "ls", "--tool", "run_shell_command"],
            1,
            "shell",
        ),
        (
            {"rules": [{"decision": "deny", "tools": ["read_file"], "paths": ["*.env"]}]},
            ["explain", "local.env", "--tool", "read_file"],
            1,
            "rules[0] of the connection",
        ),
        ({"memory": {"projectRoot": "~/notes"}}, ["explain", "~/notes/a.md"], 0, "project root"),
        ({"memory": {"projectRoot": "~/notes"}}, ["explain", "~/notes/pinned/a.md"], 1, "pinned"),
        ({"memory": {"projectRoot": "~/notes"}}, ["roots", "--path", "project"], 0, "/notes\n"),
        ({"memory": {"projectRoot": "~/notes"}}, ["doctor"], 0, "project root  "),
        ({"memory": {"layout": "claude"}}, ["roots"], 0, "/.claude/projects/"),
        ({"memory": {"layout": "claude"}}, ["doctor"], 0, "(claude layout"),
        (
            {"audit": {"path": "~/notes/kept"}, "memory": {"projectRoot": "~/notes"}},
            ["explain", "~/notes/kept"],
            1,
            "record",
        ),
        ({"audit": {"path": "~/kept.jsonl"}}, ["doctor"], 0, "/kept.jsonl: none yet"),
    ],
)
def test_what_is_configured_counts(
    tmp_path: Path, config: dict[str, Any], arguments: list[str], status: int, words: str
) -> None:
    path = configure(tmp_path, json.dumps(config))
    result = pinfold(tmp_path, *arguments)
    assert result.returncode == status, result.stderr
    assert words in result.stdout
    assert path in result.stdout or arguments[0] == "doctor" or "--path" in arguments
    assert set(os.listdir(tmp_path)) == {".config"}  # nothing is recorded, or made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"profle": "dream"}', "profle: is not a known member; 'profile'?"),
        ('{"limits": {"readLines": 0}}', "limits.readLines: must be at least 1"),
        ('{"memory": {"projectRoot": "notes"}}', "memory.projectRoot: must be an absolute path"),
        ('{"backend": "fs"}', "backend: there is no upstream 'fs'"),
        ('{"upstreams": {"local": {"command": "x"}}}', "upstreams.local: "),
        ('{"upstreams": {"up": {"commnad": "x"}}}', "upstreams.up.commnad: is not a known member"),
        ('{"rules": [{"decision": "deny", "tools": ["edti"]}]}', "rules[0].tools[0]: "),
        ('{"audit": {"maxBytes": 1}}', "audit.maxBytes: "),
    ],
)
def test_what_a_session_refuses_the_doctor_finds(tmp_path: Path, text: str, words: str) -> None:
    path = configure(tmp_path, text)
    roots = pinfold(tmp_path, "roots")
    assert roots.returncode == 2 and f"pinfold: {path}: " in roots.stderr and words in roots.stderr
    doctor = pinfold(tmp_path, "doctor", "--json")
    assert doctor.returncode == 1, doctor.stderr
    wrong = [each for each in json.loads(doctor.stdout) if each["level"] == "wrong"]
    assert [each["id"] for each in wrong] == ["configuration-refused"]
    assert wrong[0]["title"].startswith(f"{path}: ") and words in wrong[0]["title"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["MEMORY/pinned/a.md"], 1, "Edit of claude-code, by the hook"),
        (["MEMORY/pinned/a.md", "--tool", "Write"], 1, "Pinned project memory is read-only"),
        (["MEMORY/a.md", "--tool", "Write"], 0, "ALLOW"),
        (["MEMORY/pinned/a.md", "--tool", "Read"], 0, "ALLOW"),
        (["MEMORY/pinned/a.md", "--tool", "Write", "--profile", "main"], 0, "ALLOW"),
        (["src.py", "--tool", "Write", "--profile", "dream"], 1, "outside-memory"),
        (["MEMORY/pinned/a.md", "--tool", "mcp__x__put"], 1, "pinfold does not know this tool"),
        (["x", "--tool", "WebFetch"], 0, "nothing to say of WebFetch"),
        (["rm x", "--tool", "Bash", "--scope", "shell=read-only"], 1, "shell"),
        (["x", "--scope", "shel=x"], 2, "no member 'shel'"),
        (["", "--tool", "Write"], 2, "empty"),
    ],
)
def test_explain_asks_a_hook(tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    roots = pinfold(tmp_path, "roots", "--path", "project", "--layout", "claude")
    given = [each.replace("MEMORY", roots.stdout.strip()) for each in arguments]
    result = pinfold(tmp_path, "explain", "--host", "claude-code", *given)
    assert result.returncode == status, (result.stdout, result.stderr)
    assert words in result.stdout + result.stderr


def test_memory_that_is_in_no_root_is_named(tmp_path: Path) -> None:
    theirs = pinfold(tmp_path, "roots", "--path", "project", "--layout", "claude").stdout.strip()
    os.makedirs(theirs)
    assert f"not in this session: {theirs}" in pinfold(tmp_path, "roots").stdout
    found = json.loads(pinfold(tmp_path, "doctor", "--json").stdout)
    (elsewhere,) = [each for each in found if each["id"] == "memory-elsewhere"]
    assert [each["path"] for each in elsewhere["paths"]] == [theirs]
    assert "--layout claude" in elsewhere["advice"]
    inside = pinfold(tmp_path, "roots", "--layout", "claude").stdout
    assert "not in this session" not in inside


@pytest.mark.parametrize("command", [["compact", "-", "--format", "openai"], ["hook"]])
def test_ctrl_c_shows_no_traceback(tmp_path: Path, command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_env(HOME=str(tmp_path)),
    ) as process:
        out, err = process.communicate(timeout=50)
    assert "Traceback" not in err and "fault" not in err and out == ""
    assert process.returncode == (2 if command == ["hook"] else 130)


_INTERRUPTED = """\
import io, os, sys, _thread
class Interrupted(io.RawIOBase):
    def read(self, size=-1): raise KeyboardInterrupt
    buffer = property(lambda self: self)
real = os.read
os.read = lambda fd, size: (_ for _ in ()).throw(KeyboardInterrupt) if fd == 0 else real(fd, size)
sys.stdin = Interrupted()
from pinfold.cli import main
main(sys.argv[1:])
"""


def test_no_color_means_plain_text(tmp_path: Path) -> None:
    def drawn(**env: str) -> bytes:
        parent, child = os.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "pinfold", "explain", "x"],
            stdin=subprocess.DEVNULL,
            stdout=child,
            stderr=child,
            env=clean_env(HOME=str(tmp_path), TERM="xterm", **env),
            cwd=tmp_path,
        ) as process:
            os.close(child)
            told = b""
            try:
                while part := os.read(parent, 4096):
                    told += part
            except OSError:  # how Linux says that the other end is closed
                pass
            os.close(parent)
        assert process.returncode == 1
        return told

    assert b"\x1b[" in drawn()
    assert b"\x1b" not in drawn(NO_COLOR="1")
