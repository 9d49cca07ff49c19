"""`pinfold demo`: a project with memory in a temporary directory, a real gateway, and attacks.

Every line that is drawn is an answer of that gateway, spawned and spoken to as a host would.
"""

import asyncio
import os
import tempfile
from typing import Any

import msgspec
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from pinfold import terminal
from pinfold_protocol.client import Client, Session
from pinfold_protocol.retention import RETENTION_KEY
from pinfold_protocol.tools import DECISION_KEY, DETAILS_KEY, ToolResult

_RULE = "# House rules\n\nReleases happen on Tuesdays. Ask before touching the billing tables.\n"
_TOPIC = "---\nname: Build\ntype: project\n---\n\nThe build needs Python 3.11.\n"


class Place(msgspec.Struct, frozen=True):
    """Where the demo lives."""

    base: str
    project: str
    memory: str

    @property
    def pinned_file(self) -> str:
        """The curated document that everything is about."""
        return f"{self.memory}/pinned/rules.md"

    def ways(self) -> list[tuple[str, str]]:
        """What a dream session must not write: what it is called, and its path."""
        return [
            ("directly", f"{self.memory}/pinned/rules.md"),
            ("a new file", f"{self.memory}/pinned/new.md"),
            ("in another case", f"{self.memory}/PINNED/rules.md"),
            ("a zero-width letter", f"{self.memory}/pin\u200bned/rules.md"),
            ("through a symlink", f"{self.memory}/tips/alias/rules.md"),
            ("`..` after a link", f"{self.memory}/tips/sub/../rules.md"),
            ("by a hard link", f"{self.memory}/tips/twin.md"),
            ("out of memory", f"{self.project}/src.py"),
        ]

    def short(self, path: str) -> str:
        """A path as the demo shows it."""
        return path.replace(self.memory, "MEMORY").replace(self.base, "TMP")


def run() -> int:
    """Run the demo; 0 if everything happened as it should, else 1."""
    console = terminal.console()
    with tempfile.TemporaryDirectory(prefix="pinfold-demo-") as base:
        return asyncio.run(_demo(os.path.realpath(base), console))


async def _demo(base: str, console: Console) -> int:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("QWEN_", "CLAUDE_"))}
    env["QWEN_CODE_MEMORY_BASE_DIR"] = f"{base}/memory"
    project = f"{base}/project"
    os.mkdir(project)
    async with await Client.spawn(env=env) as client:
        session = await client.open_session("dream", project)
        place = Place(base, project, session.opened.roots[0].path)
        lay_out(place)
        _introduce(console, place)
        shown = [
            await _reads(console, place, session),
            await _ordinary_work(console, place, session),
            await _attacks(console, place, session),
        ]
        counts = await session.close()
    unharmed = _read(place.pinned_file) == _RULE
    _conclude(console, place, counts, unharmed)
    return 0 if unharmed and all(shown) else 1


def lay_out(place: Place) -> None:
    """Make its memory, with the doors into `pinned/` that people leave open."""
    for directory in ("pinned/team", "project", "tips"):
        os.makedirs(f"{place.memory}/{directory}")
    for path, text in (("pinned/rules.md", _RULE), ("project/build.md", _TOPIC)):
        with open(f"{place.memory}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
    os.symlink("../pinned", f"{place.memory}/tips/alias")
    os.symlink(f"{place.memory}/pinned/team", f"{place.memory}/tips/sub")
    os.link(place.pinned_file, f"{place.memory}/tips/twin.md")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _introduce(console: Console, place: Place) -> None:
    console.print()
    console.print(Text.assemble(("pinfold demo", "bold"), "  a gateway, a dream session, one file"))
    console.print(
        Text(
            "An agent tidies up its memory in the background. One document there is curated\n"
            f"by hand, {place.short(place.pinned_file)}: it may be read, and nothing else.",
            "dim",
        )
    )


async def _reads(console: Console, place: Place, session: Session) -> bool:
    _heading(console, "Reads of memory come back tagged, so that clients keep them")
    table = _table()
    good = True
    for path, expected in (
        (place.pinned_file, "pinned"),
        (f"{place.memory}/project/build.md", "kept"),
    ):
        result = await session.call("read_file", {"file_path": path})
        tag: dict[str, Any] | None = result.meta.get(RETENTION_KEY)
        words = "no tag"
        if tag:
            words = "preserve, pinned" if tag["pinned"] else "preserve"
        good &= tag is not None and tag["pinned"] == (expected == "pinned")
        _row(table, True, "read_file", place.short(path), words)
    console.print(table)
    return good


async def _ordinary_work(console: Console, place: Place, session: Session) -> bool:
    _heading(console, "Ordinary topics are the agent's own")
    table = _table()
    path = f"{place.memory}/project/build.md"
    edit = {"file_path": path, "old_string": "Python 3.11", "new_string": "Python 3.12"}
    changed = await session.call("edit", edit)
    new = f"{place.memory}/user/editor.md"
    created = await session.call("write_file", {"file_path": new, "content": "Likes vim.\n"})
    for name, target, result in (("edit", path, changed), ("write_file", new, created)):
        _row(table, not result.is_error, name, place.short(target), _said(result))
    console.print(table)
    diff = changed.meta[DETAILS_KEY].get("diff", "").split("\n", 2)[-1]
    syntax = Syntax(diff.rstrip(), "diff", background_color="default", theme="ansi_dark")
    console.print(Panel(syntax, expand=False, border_style="dim", padding=(0, 1)))
    return not changed.is_error and not created.is_error


async def _attacks(console: Console, place: Place, session: Session) -> bool:
    _heading(console, "Every way into pinned/ is denied, whatever it is called")
    table = _table()
    good = True
    for how, path in place.ways():
        result = await session.call("write_file", {"file_path": path, "content": "gone\n"})
        decision: dict[str, Any] = result.meta[DECISION_KEY]
        denied = result.is_error and decision["decision"] == "deny"
        good &= denied
        why = decision["rule"] + (f" ({decision['match']})" if decision["match"] else "")
        _row(table, not denied, how, place.short(path), why)
    console.print(table)
    return good


def _conclude(console: Console, place: Place, counts: dict[str, int], unharmed: bool) -> None:
    console.print()
    verdict = (
        Text("unharmed, byte for byte", "bold green") if unharmed else Text("CHANGED", "bold red")
    )
    body = Text.assemble(
        f"{counts['calls']} calls, {counts['denials']} denied. ",
        f"{place.short(place.pinned_file)} is ",
        verdict,
        ".",
    )
    console.print(Panel(body, expand=False, border_style="green" if unharmed else "red"))
    console.print(
        Text("Next: `pinfold explain PATH --profile dream` in a project of yours.", "dim")
    )
    console.print()


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=3, no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    return table


def _row(table: Table, allowed: bool, how: str, path: str, said: str) -> None:
    mark = Text("  ✓", "green") if allowed else Text("  ✗", "red")
    table.add_row(mark, how, terminal.shown(path), Text(said, "green" if allowed else "red"))


def _said(result: ToolResult) -> str:
    details = result.meta[DETAILS_KEY]
    if result.is_error:
        return str(details["error"]["kind"])
    return "created" if details["created"] else "changed"
