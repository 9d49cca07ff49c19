"""`pinfold hook --show`: what is noted of the documents that agents have read."""

import json
import time

from pinfold.doors.hook.reads import Document, sessions
from pinfold.terminal import console, shown
from pinfold.text.visible import visible


def show(host: str | None, *, as_json: bool) -> int:
    """Print it for every session of a host (None: of every host). Exit status 0."""
    found = [each for each in sessions() if host in (None, each[0])]
    if as_json:
        rows = [
            {"host": name, "session": session, "documents": [vars(each) for each in documents]}
            for name, session, documents in found
        ]
        print(json.dumps(rows, indent=2))
        return 0
    if not found:
        console().print("  Nothing is recorded: no session with a hook has read a memory document.")
    for name, session, documents in found:
        _draw(name, session, documents)
    return 0


def _draw(host: str, session: str, documents: list[Document]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text.assemble((f"  {visible(host)}", "bold"), (f"   {visible(session)}", "dim")))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for document in documents:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(document.at))
        scope = f"{document.scope}, pinned" if document.pinned else document.scope
        table.add_row(f"    {at}", visible(scope), shown(document.path))
    out.print(table)
