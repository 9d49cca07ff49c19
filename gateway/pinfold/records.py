"""`pinfold audit`: the record, for people."""

import json
import select
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pinfold.audit.line import Record, parse
from pinfold.audit.reader import Trail
from pinfold.terminal import console
from pinfold.text.visible import visible
from pinfold_protocol.errors import short

if TYPE_CHECKING:
    from rich.text import Text

DONE, FAILED, INTERRUPTED = 0, 2, 130
_POLL_SECONDS = 0.25


class Wanted(msgspec.Struct, frozen=True):
    """What of the record is asked for; what is missing in it is always told."""

    denied: bool = False
    session: str | None = None

    def fits(self, record: Record) -> bool:
        """Whether a record is asked for."""
        if record.lost is not None:
            return True
        if self.denied and record.text("decision") != "deny":
            return False
        return self.session is None or record.text("session") == short(self.session)


def show(path: str, wanted: Wanted, *, follow: bool, as_json: bool) -> int:
    """Print the record; with `follow` also what is added, until somebody ends it. Exit status.

    Raises OSError where the record or the output fails.
    """
    trail, printer = Trail(path), _Printer(wanted, as_json)
    try:
        printer.print(trail.new())
        while follow and not _reader_gone():
            printer.print(trail.new())
        printer.print(trail.rest())
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        trail.close()
        printer.finish()
    return DONE


class _Printer:
    """Prints the lines that are wanted, and counts those that are no records."""

    def __init__(self, wanted: Wanted, as_json: bool) -> None:
        self._wanted = wanted
        self._as_json = as_json
        self._console = console()
        self._broken = 0

    def print(self, lines: Iterator[bytes]) -> None:
        """Print what is wanted of these lines. Raises OSError where that fails."""
        for line in lines:
            record = parse(line)
            if record is None:
                self._broken += 1
            elif self._wanted.fits(record):
                sys.stdout.write(self._shown(record) + "\n")
        sys.stdout.flush()

    def _shown(self, record: Record) -> str:
        if self._as_json:
            return json.dumps(record.members)
        text = drawn(record)
        if not self._console.is_terminal:
            return text.plain
        with self._console.capture() as capture:
            self._console.print(text, soft_wrap=True, end="")
        return capture.get()

    def finish(self) -> None:
        """Say what could not be read."""
        if self._broken:
            lines = "line that is" if self._broken == 1 else "lines that are"
            _say(f"skipped {self._broken} {lines} no record")


_MARKS = {"allow": ("✓", "bold green"), "deny": ("✗", "bold red"), None: ("–", "yellow")}


def drawn(record: Record) -> "Text":
    """One line: when, allowed or denied, tool, path and where that leads, why, what became of it,
    session."""
    from rich.text import Text

    when = (f"{record.when:%Y-%m-%d %H:%M:%S}  ", "dim")
    if record.lost is not None:
        return Text.assemble(when, (f"!  {record.lost} lines are missing here", "bold yellow"))
    path, real, match = record.text("path"), record.text("realPath"), record.text("match")
    leads = f" → {visible(real)}" if real is not None and real != path else ""
    rule = visible(record.text("rule") or "undecided") + (f" ({visible(match)})" if match else "")
    outcome = visible(record.text("outcome") or "")
    return Text.assemble(
        when,
        _MARKS.get(record.text("decision"), ("?", "yellow")),
        (f"  {visible(record.text('tool') or ''):<11}  ", "bold"),
        "no path" if path is None else visible(path),
        (leads, "cyan"),
        f"  {rule}  ",
        (outcome, "red" if outcome.startswith(("denied", "failed")) else ""),
        (f"  {visible(record.text('session') or '')}", "dim"),
    )


def _reader_gone() -> bool:
    """Wait a little. Whether nobody can read the output any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(_POLL_SECONDS * 1000))


def _say(message: str) -> None:
    if sys.stderr is not None:
        print(f"pinfold: {visible(message)}", file=sys.stderr)
