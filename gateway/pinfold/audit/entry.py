"""What is recorded of a call. Imported with every gateway, so nothing else is here."""

import os
import stat
import time

import msgspec

from pinfold_protocol.decision import Decision


class Trace(msgspec.Struct):
    """What comes to be known of a call while it runs: filled in on the way, recorded at its end.

    `path`: what the call names, where a path could be made of it. `status`: of its target, where
    there is one. `before` and `after`: SHA-256 of its bytes (hex).
    """

    path: str | None = None
    decision: Decision | None = None
    status: os.stat_result | None = None
    outcome: str = "done"
    before: str | None = None
    after: str | None = None

    @property
    def links(self) -> int | None:
        """How many names the target has, where it is a file."""
        status = self.status
        return status.st_nlink if status is not None and stat.S_ISREG(status.st_mode) else None


class Entry(msgspec.Struct, frozen=True):
    """One call that is over, or one explained decision. `time` is seconds since 1970."""

    session: str
    tool: str
    trace: Trace
    time: float = msgspec.field(default_factory=time.time)
