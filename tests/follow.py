"""Follows a page: runs its blocks in order, in an empty home with one project that has memory.

A block says by the comment on the line before it what is to come of it:
`<!-- not run: reason -->`, or `<!-- run: exit 1 -->`. Without one a shell block (`sh`, `bash`,
`console`) must end with 0, a `python` block too, and data (`json`, `jsonc`, `toml`, `yaml`) must
parse. In a `console` block `$ ` begins a command; the lines below it are lines of its output, in
this order, `…` standing for anything. A block in any other language needs a reason; one without
a language, or of `text`, is an illustration and holds no commands.

A reader sits in one terminal: directory and variables stay from block to block. Names in capitals
that pages use for what a reader has are there in the project: DIR, FILE (base rules), PATH,
HISTORY; and `/home/me` is the reader's home, `/path/to/project` and `/home/me/project` the project.
"""

import fnmatch
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import tree_sitter
import tree_sitter_json
import yaml

from pages import Block, Page
from support import clean_env, write

SECONDS = 50
ILLUSTRATIONS = ("", "text")
_PLACES = ("XDG_", "PYTHON", "PINFOLD_", "VIRTUAL_ENV")

_TOPIC = "---\nname: {0}\ntype: {1}\n---\n\n{0}: as agreed.\n"
_MEMORY = {
    "MEMORY.md": "- [House rules](pinned/rules.md)\n- [Build](project/build.md)\n- [Releases](feedback/releases.md)\n",
    "pinned/rules.md": _TOPIC.format("House rules", "user"),
    "project/build.md": _TOPIC.format("Build", "project"),
    "feedback/releases.md": _TOPIC.format("Releases", "feedback"),
}
_CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "What do the notes say?"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "call-1", "name": "Read", "input": {"file_path": "a.py"}}
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call-1", "content": "print(1)\n"}],
    },
]
_PROJECT = {
    "a.py": "print(1)\n",
    "PATH": "A file.\n",
    "DIR/a.py": "print(1)\n",
    "FILE": json.dumps([{"decision": "deny", "tools": ["edit"], "paths": ["docs/**"]}]),
    "HISTORY": json.dumps(_CHAT),
    "chat.json": json.dumps(_CHAT),
}


class Reader:
    """A home below `base`, and a terminal in the project's directory."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.project = self.home / "project"
        self._state = base / "state"
        self._lay_out()
        kept = {k: v for k, v in clean_env().items() if not k.startswith(_PLACES)}
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
        self._env = kept | {"HOME": str(self.home), "PATH": path, "COLUMNS": "100"}

    def _lay_out(self) -> None:
        self._state.mkdir(parents=True)
        for name, text in _PROJECT.items():
            write(self.project / name, text)
        for owner in (self.project, self.project / "DIR"):
            key = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(owner))
            for host in (".qwen", ".claude"):
                for name, text in _MEMORY.items():
                    write(self.home / host / "projects" / key / "memory" / name, text)
        write(self._state / "directory", str(self.project))
        write(self._state / "variables", "")

    def own(self, text: str) -> str:
        """The text with this reader's places in it."""
        for name in ("/path/to/project", "/home/me/project"):
            text = text.replace(name, str(self.project))
        return text.replace("/home/me", str(self.home))

    def shell(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run commands until one fails; what they left of the terminal is there for the next."""
        state = str(self._state)
        before = f'set -a; . {state}/variables; cd "$(cat {state}/directory)"\n'
        leave = f"trap 'pwd >{state}/directory; declare -px >{state}/variables' EXIT\n"
        return self._run(["bash", "-c", f"{before}{leave}set -euo pipefail\n{self.own(text)}"])

    def python(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a program in the terminal's directory."""
        directory = (self._state / "directory").read_text().strip()
        return self._run([sys.executable, "-c", self.own(text)], cwd=directory)

    def _run(self, command: list[str], **more: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
            **more,
        )


class Marker(msgspec.Struct, frozen=True):
    """What a block says of itself: it is not run, or it ends with this status. `wrong`: the marker
    cannot be understood."""

    run: bool = True
    status: int = 0
    wrong: str | None = None


def marker(note: str) -> Marker:
    """The marker that a comment is; a comment that is none says nothing."""
    kind, _, rest = note.partition(":")
    if kind == "not run":
        return Marker(run=False, wrong=None if rest.strip() else "`not run` without a reason")
    if kind != "run":
        return Marker()
    word, _, status = rest.strip().partition(" ")
    if word == "exit" and status.isascii() and status.isdigit():
        return Marker(status=int(status))
    return Marker(wrong=f"`{note}` is neither `run: exit N` nor `not run: reason`")


def follow(page: Page, base: Path) -> Iterator[str]:
    """What goes wrong when one follows the page, block by block, with file and line."""
    reader: Reader | None = None
    for block in page.blocks:
        told = marker(block.note)
        problem = told.wrong
        if problem is None and told.run:
            reader = reader or Reader(base)
            problem = _problem(block, told.status, reader)
        if problem is not None:
            yield f"{page.path}:{block.line}: {problem}\n{block.text}"


def _problem(block: Block, status: int, reader: Reader) -> str | None:
    if block.language in ILLUSTRATIONS:
        shows = any(line.startswith("$ ") for line in block.text.splitlines())
        return "shows a command: call it `console`, or say why it is not run" if shows else None
    how = _HOW.get(block.language)
    if how is None:
        return f"`{block.language}` cannot be run here: say why by `<!-- not run: reason -->`"
    return how(block, status, reader)


def _shell(block: Block, status: int, reader: Reader) -> str | None:
    return _ended(reader.shell(block.text), status)


def _python(block: Block, status: int, reader: Reader) -> str | None:
    return _ended(reader.python(block.text), status)


def _console(block: Block, status: int, reader: Reader) -> str | None:
    for command, lines in _commands(block.text):
        done = reader.shell(command)
        problem = _ended(done, status) or _unseen(done.stdout, lines)
        if problem:
            return problem
    return None


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """Commands and the lines that are shown below them; `> ` goes on with a command."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        elif found and line.strip():
            found[-1][1].append(line.rstrip())
    return found


def _unseen(output: str, lines: list[str]) -> str | None:
    """The first line that is promised and does not come, in its order."""
    coming = iter(output.splitlines())
    for line in lines:
        if not any(fnmatch.fnmatchcase(each.rstrip(), _pattern(line)) for each in coming):
            return f"`{line}` is not said; what is:\n{output}"
    return None


def _pattern(line: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in line).replace("…", "*")


def _ended(done: "subprocess.CompletedProcess[str]", status: int) -> str | None:
    if done.returncode == status:
        return None
    return f"exit status {done.returncode} instead of {status}, having said:\n{done.stdout}"


def _data(read: Callable[[str], object]) -> Callable[[Block, int, Reader], str | None]:
    def problem(block: Block, _status: int, _reader: Reader) -> str | None:
        try:
            read(block.text)
        except (ValueError, yaml.YAMLError) as error:
            return f"does not parse: {error}"
        return None

    return problem


def _jsonc(text: str) -> None:
    """One value, comments apart. Raises ValueError."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_json.language()))
    root = parser.parse(text.encode()).root_node
    values = [child for child in root.named_children if child.type != "comment"]
    if root.has_error or len(values) != 1:
        raise ValueError("it is not one value of JSON with comments")


_HOW: dict[str, Callable[[Block, int, Reader], str | None]] = {
    "sh": _shell,
    "bash": _shell,
    "console": _console,
    "python": _python,
    "json": _data(json.loads),
    "jsonc": _data(_jsonc),
    "toml": _data(tomllib.loads),
    "yaml": _data(yaml.safe_load),
}
