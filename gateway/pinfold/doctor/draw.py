"""What people see of it: in groups, each line with a mark, each problem with what to do."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from pinfold.doctor.finding import Finding, Spot, count
from pinfold.policy.names import below
from pinfold.terminal import console, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "bold red")}
_MOST = 10
"""How many paths of a finding are drawn; --json has more."""


def draw(findings: Sequence[Finding]) -> None:
    """All of it, and how it stands, in the last line."""
    out = console()
    for about, group in groupby(findings, key=lambda each: each.about):
        out.print(shown(about, "bold"))
        _group(out, group)
    out.print(shown(summary(findings), "bold"))


def _group(out: "Console", findings: Iterable[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in findings:
        mark, style = _MARKS[each.level]
        table.add_row(Text(f"  {mark}", style), shown(each.title))
        for spot in each.spots[:_MOST]:
            table.add_row("", _drawn(spot, each.base))
        if hidden := len(each.spots[_MOST:]) + each.more:
            table.add_row("", Text(f"  … and {hidden:,} more", "dim"))
        if each.advice:
            table.add_row("", shown(each.advice, "dim"))
    out.print(table)


def _drawn(spot: Spot, base: str) -> "Text":
    from rich.text import Text

    text = Text("  ") + shown(_below(spot.path, base), "cyan")
    if spot.to is not None:
        text += Text(" → ") + shown(_below(spot.to, base), "cyan")
    return text if spot.said is None else text + shown(f"  {spot.said}")


def _below(path: str, base: str) -> str:
    """What the heading says already is left out; never where that would be all."""
    inside = below(path, base) if base else None
    return "/".join(inside) if inside else path


def summary(findings: Sequence[Finding]) -> str:
    """One line: how many of what."""
    levels = [each.level for each in findings]
    wrong, notes = levels.count("wrong"), levels.count("note")
    noted = f", {count(notes, 'thing')} to know" if notes else ""
    if wrong:
        return f"{count(wrong, 'thing is', 'things are')} wrong{noted}."
    return f"Nothing is wrong{noted}."
