"""The tag that lets a client keep a memory read through compaction (section 6)."""

from typing import Literal

from pinfold_protocol.decision import RootKind
from pinfold_protocol.wire import Wire

RETENTION_KEY = "pinfold/retention"


class RetentionTag(Wire, frozen=True):
    """On a successful read whose real path is inside a memory root; describes what was read.

    `path` is the real path, `sha256` the hex digest of the whole file, null where it was streamed.
    """

    scope: RootKind
    pinned: bool
    complete: bool
    path: str
    sha256: str | None
    preserve: bool = True
    reason: Literal["managed-memory"] = "managed-memory"
