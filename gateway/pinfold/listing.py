"""`pinfold index`: the memory documents, for people."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pinfold.terminal import console, shown
from pinfold_protocol.memory import MemoryDocument, MemoryIndexResult, SkippedDocument
from pinfold_protocol.session import Root

if TYPE_CHECKING:
    from rich.table import Table

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_LONGEST = 80
"""Characters of a title that are shown."""


def draw(result: MemoryIndexResult, roots: Sequence[Root]) -> None:
    """Print the documents root by root, and what was skipped with its reason. Raises OSError
    where the output fails."""
    from rich.text import Text

    out = console()
    now = datetime.now(UTC)
    for root in roots:
        documents = [each for each in result.documents if each.kind == root.kind]
        skipped = [each for each in result.skipped if each.kind == root.kind]
        count = "1 document" if len(documents) == 1 else f"{len(documents)} documents"
        state = f"   {count}" if root.exists else "   not there yet"
        out.print(Text.assemble((f"  {root.kind}", "bold"), (state, "dim")))
        if documents:
            out.print(_table(documents, now))
        if skipped:
            out.print(_skipped(skipped))
    if result.truncated:
        out.print(Text("  There are more: --limit N shows N of each root.", "yellow"))


def _table(documents: Sequence[MemoryDocument], now: datetime) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for head in ("          ", "title", "type", "age"):
        table.add_column(head, no_wrap=True)
    table.add_column("path in the root", overflow="fold")
    for each in documents:
        mark = Text("    pinned" if each.pinned else "", "bold green")
        name = each.title if each.title != each.type else "(no name)"
        title = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        age = Text(_age(each.modified, now), "dim")
        row = (shown(title), Text(each.type, "cyan"), age, shown(each.relative_path, "dim"))
        table.add_row(mark, *row)
    return table


def _skipped(skipped: Sequence[SkippedDocument]) -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="yellow", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for each in skipped:
        table.add_row("    skipped", shown(each.path), shown(each.reason))
    return table


def _age(modified: str, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = (now - datetime.fromisoformat(modified)).total_seconds()
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "now"
