"""The listing of memory documents (section 3 of the contract)."""

from typing import Literal

from pinfold_protocol.decision import RootKind
from pinfold_protocol.wire import Wire

DocumentType = Literal["user", "feedback", "project", "reference"]
DEFAULT_LIMIT = 200


class MemoryIndexParams(Wire, frozen=True):
    """`memory/index`. `kinds`: of which roots, all of them where it is null. `limit`: how many
    documents of each root at most, at least 1 (200 where it is null)."""

    session_id: str
    kinds: list[RootKind] | None = None
    limit: int | None = DEFAULT_LIMIT


class MemoryDocument(Wire, frozen=True):
    """One valid topic. `path` is absolute, below the root as it is configured; `relative_path` the
    same from the root on. `title` and `description` stand as in the file. `pinned`: a session that
    protects pinned memory may not change it under this name. `size_bytes` is of the whole file,
    `modified` RFC 3339 in UTC."""

    kind: RootKind
    path: str
    relative_path: str
    type: DocumentType
    title: str
    description: str
    pinned: bool
    size_bytes: int
    modified: str


class SkippedDocument(Wire, frozen=True):
    """What looked like a topic and is none, or could not be looked at: why, without any of its
    content. A byte of a name that is no UTF-8 is U+FFFD here."""

    kind: RootKind
    path: str
    reason: str


class MemoryIndexResult(Wire, frozen=True):
    """The documents root by root (project, user, team): newest first, of the team's by path.
    `truncated`: some root has more of them than the limit let through."""

    documents: list[MemoryDocument]
    truncated: bool
    skipped: list[SkippedDocument]
