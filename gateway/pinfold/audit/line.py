"""A line of the record, written and read. Never contents."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from pinfold.audit.entry import Entry
from pinfold_protocol.errors import short

LONGEST = 60_000
"""Bytes of the longest line: below the smallest size of a file, so that each line fits in one."""
_MOST, _FEW = 4096, 512
"""Characters of a path that are written; fewer where all of them would make a line too long."""


def line_of(entry: Entry) -> bytes:
    """One line of JSON in ASCII: a byte of a name that is no UTF-8 is a lone surrogate's escape."""
    line = _line(entry, _MOST)
    return line if len(line) <= LONGEST else _line(entry, _FEW)


def _line(entry: Entry, most: int) -> bytes:
    trace, decision = entry.trace, entry.trace.decision
    return _dump(
        {
            "time": rfc3339(entry.time),
            "session": short(entry.session),
            "turn": decision and _cut(decision.turn_id, _FEW),
            "tool": short(entry.tool),
            "path": _cut(decision.path if decision else trace.path, most),
            "realPath": decision and _cut(decision.resolved_path, most),
            "links": trace.links,
            "decision": decision and decision.decision,
            "rule": decision and decision.rule,
            "match": decision and decision.match,
            "outcome": trace.outcome,
            "sha256Before": trace.before,
            "sha256After": trace.after,
        }
    )


def lost_line(count: int) -> bytes:
    """In place of `count` lines that could not be kept."""
    return _dump({"time": rfc3339(time.time()), "lost": count})


def _dump(members: dict[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode("ascii") + b"\n"


def _cut(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"


def rfc3339(seconds: float) -> str:
    """UTC, with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_TEXTS = ("session", "turn", "tool", "path", "realPath", "decision", "rule", "match", "outcome")


class Record(msgspec.Struct, frozen=True):
    """A line that was read back: `members` as they stand, `when` in local time. `lost` is how
    many lines are missing here, where the line says only that."""

    members: dict[str, Any]
    when: datetime
    lost: int | None = None

    def text(self, name: str) -> str | None:
        """A member that is text; None where it is absent or null."""
        value: str | None = self.members.get(name)
        return value


def parse(line: bytes) -> Record | None:
    """A line as it stands in the file; None if it is no record."""
    try:
        members = json.loads(line)
        when = datetime.fromisoformat(members["time"]).astimezone()
        lost = members.get("lost")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
    if lost is not None:
        return Record(members, when, lost) if type(lost) is int else None
    texts = (members.get(name) for name in _TEXTS)
    if not all(value is None or type(value) is str for value in texts):
        return None
    return Record(members, when) if members.get("tool") is not None else None
