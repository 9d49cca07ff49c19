"""Mistakes that are made for real, and what is said of them: the examples in docs/errors.md."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pinfold.library import move
from pinfold_protocol.errors import ToolError
from support import Bench, Held, Raw, clean_env, request, write

PLACE = "/home/you"


class Desk:
    """A place with memory, where mistakes are made. What is said has its paths below PLACE."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.bench = Bench(base)
        self.note = write(f"{self.bench.project}/notes.txt", "one\ntwo\none\n")

    def said(self, text: str) -> str:
        """With places and numbers that differ from run to run made alike."""
        text = text.replace(os.path.realpath(self.base), PLACE).replace(str(self.base), PLACE)
        key = re.sub(r"[^A-Za-z0-9]", "-", self.bench.project)
        return text.replace(key, "-home-you-project").strip()

    def tool(self, name: str, session: Any = None, **arguments: Any) -> str:
        """What a model reads."""
        result = self.bench.place.call(session or self.bench.main, name, **arguments)
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def fails(self, number: int) -> str:
        """What a model reads where the system fails while a file is written."""

        def fail() -> None:
            raise OSError(number, os.strerror(number))

        self.bench.seam.at("written", fail)
        return self.tool("write_file", file_path=self.note, content="new")

    def explained(self, session: Any, name: str, **arguments: Any) -> str:
        return str(self.bench.place.explain(session, name, **arguments)["reason"])

    def command(self, *arguments: str, given: str = "") -> str:
        """What a command says on stderr; it must fail."""
        env = clean_env(HOME=str(self.base), COLUMNS="100")
        done = subprocess.run(
            [sys.executable, "-m", "pinfold", *arguments],
            input=given,
            capture_output=True,
            text=True,
            cwd=self.bench.project,
            env=env,
            timeout=50,
            check=False,
        )
        assert done.returncode == 2 and "Traceback" not in done.stderr, done
        return done.stderr.splitlines()[-1]

    def answer(self, *messages: Any, initialize: bool = True, lines: bool = False) -> str:
        """The error of the last answer, as a host gets it."""
        with Raw(lines=lines) as raw:
            if initialize:
                raw.initialize({"limits": {"maxMessageBytes": 4096}})
            for message in messages:
                raw.send(message)
                answer = raw.receive()
        error = answer["error"]
        data = f", data {error['data']}" if "data" in error else ""
        return f"{error['code']}: {error['message']}{data}"


def _fifo(desk: Desk) -> str:
    os.mkfifo(f"{desk.bench.project}/pipe")
    return desk.tool("read_file", file_path="pipe")


def _written(desk: Desk, name: str, content: bytes, tool: str = "read_file", **more: Any) -> str:
    write(f"{desk.bench.project}/{name}", content)
    return desk.tool(tool, file_path=name, **more)


def _huge(desk: Desk) -> str:
    os.truncate(desk.note, 65 << 20)
    return desk.tool("read_file", file_path="notes.txt")


def _moved(desk: Desk) -> str:
    gateway, opened = desk.bench.place.gateway, desk.bench.main
    other = write(f"{desk.bench.project}/other.txt", "")
    try:
        move(gateway, gateway.sessions.get(opened.session_id), desk.note, other)
    except ToolError as error:
        return error.message
    raise AssertionError("it was moved")


def _locked(desk: Desk) -> str:
    held = Held(Path(desk.bench.project))
    try:
        return desk.tool("write_file", file_path="notes.txt", content="new")
    finally:
        held.release()


def _not_read(desk: Desk) -> str:
    strict = desk.bench.place.open("main", scope={"staleness": "require-read"})
    return desk.tool("write_file", strict, file_path="notes.txt", content="new")


def _ruled(desk: Desk) -> str:
    rules = [{"decision": "ask", "tools": ["edit"]}]
    session = desk.bench.place.open("main", rules=rules)
    return (
        desk.explained(session, "edit", file_path="notes.txt")
        + "\n"
        + desk.tool("edit", session, file_path="notes.txt", old_string="two", new_string="2")
    )


def _settings(desk: Desk) -> str:
    write(f"{desk.bench.project}/.claude/settings.json", "{")
    where = ("--host", "claude-code", "--project", ".", "--yes")
    return desk.command("hook", "--install", *where)


def _no_length(desk: Desk) -> str:
    with Raw() as raw:
        raw.write(b"Content-Length: many\r\n\r\n")
        error = raw.receive()["error"]
        return f"{error['code']}: {error['message']}"


def _silent(desk: Desk) -> str:
    """A host that never says what the event is."""
    reader, writer = os.pipe()
    try:
        command = [sys.executable, "-m", "pinfold", "hook", "--host", "claude-code"]
        done = subprocess.run(
            [*command, "--deadline", "0.5"],
            stdin=reader,
            capture_output=True,
            text=True,
            env=clean_env(HOME=str(desk.base)),
            timeout=50,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 2, done
    return done.stderr


def _edit(old: str, new: str = "2", **more: Any) -> Callable[[Desk], str]:
    arguments = {"file_path": "notes.txt", "old_string": old, "new_string": new, **more}
    return lambda desk: desk.tool("edit", **arguments)


def _config(desk: Desk) -> str:
    write(f"{desk.bench.project}/rules.json", '[{"decision": "no", "tools": ["*"]}]')
    return desk.command("explain", "x", "--rules", "rules.json")


MADE: dict[str, Callable[[Desk], str]] = {
    "denied": lambda d: d.tool("write_file", d.bench.dream, file_path=d.bench.pinned, content=""),
    "not-found": lambda d: d.tool("read_file", file_path="note.txt"),
    "is-directory": lambda d: d.tool("read_file", file_path="."),
    "not-a-regular-file": _fifo,
    "binary": lambda d: _written(d, "tool.bin", b"\x7fELF\0"),
    "undecodable": lambda d: _written(d, "old.txt", "caf\u00e9\n".encode("cp1252")),
    "too-large": _huge,
    "permission": lambda d: d.fails(errno.EACCES),
    "no-match": _edit("Two"),
    "ambiguous-match": _edit("one"),
    "no-change": _edit("two", "two"),
    "already-exists": _moved,
    "stale": lambda d: d.tool(
        "write_file", file_path="notes.txt", content="new", expected_sha256="0" * 64
    ),
    "not-read": _not_read,
    "invalid-path": lambda d: d.tool("read_file", file_path=""),
    "invalid-arguments": lambda d: d.tool("read_file", file_path="notes.txt", lines=5),
    "read-only-filesystem": lambda d: d.fails(errno.EROFS),
    "no-space": lambda d: d.fails(errno.ENOSPC),
    "changed-underfoot": _locked,
    "io": lambda d: d.fails(errno.EIO),
    "rpc-parse-error": _no_length,
    "rpc-invalid-request": lambda d: d.answer({"id": 1, "method": "session/list"}),
    "rpc-method-not-found": lambda d: d.answer(request(1, "session/begin")),
    "rpc-invalid-params": lambda d: d.answer(
        request(1, "session/open", {"profile": "dreams", "projectRoot": "/tmp"})
    ),
    "rpc-not-initialized": lambda d: d.answer(request(1, "session/list"), initialize=False),
    "rpc-unknown-session": lambda d: d.answer(request(1, "memory/roots", {"sessionId": "gone"})),
    "rpc-message-too-large": lambda d: d.answer(request(1, "session/list", {"x": "x" * 5000})),
    "denied-pinned": lambda d: d.explained(d.bench.dream, "edit", file_path=d.bench.pinned),
    "denied-outside-memory": lambda d: d.explained(d.bench.dream, "edit", file_path="notes.txt"),
    "denied-base-rule": _ruled,
    "denied-shell": lambda d: d.explained(
        d.bench.dream, "run_shell_command", command="cat notes.txt > copy.txt"
    ),
    "denied-unknown-tool": lambda d: d.explained(d.bench.dream, "glob"),
    "command-line": lambda d: d.command("roots", "--lay-out", "qwen"),
    "command-output": lambda d: d.command("audit"),
    "command-value": _config,
    "command-transcript": lambda d: d.command("compact", "-", "--format", "openai", given="{}"),
    "hook-options": lambda d: d.command("hook", "--install"),
    "hook-event": lambda d: d.command("hook", "--host", "claude-code", given="{"),
    "hook-fault": _silent,
    "hook-settings": _settings,
}
"""By anchor."""

NOT_MADE: dict[str, str] = {
    "backend": "it takes an editor or a file server that fails: tests/wire/test_editor_backend.py "
    "and tests/wire/test_upstream_wire.py",
    "cancelled": "no code makes it today",
    "rpc-internal-error": "it takes a mistake of ours",
    "rpc-cancelled": "when a cancel arrives is a matter of luck: tests/wire/test_lifecycle.py",
    "rpc-request-failed": "it takes an editor: tests/wire/test_lsp_service.py",
    "rpc-unsupported-version": "it takes another dialect: tests/wire/test_mcp_door.py",
}
"""Why the others have no example here, and where they are shown instead."""
