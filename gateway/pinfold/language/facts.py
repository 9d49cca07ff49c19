"""What the service is told of a document's place and of what its links lead to. Gathered by
`memory.survey`, read here."""

import msgspec

from pinfold.text.frontmatter import Topic
from pinfold_protocol.decision import Match, RootKind


class Where(msgspec.Struct, frozen=True):
    """A document below a memory root. `path`: absolute, as text; `root`: the root's path as
    `path` names it; `relative`: from there on. `pinned`: how it is, None where it is not;
    `leaves`: a link on its way leads out of the root; `mark`: the file begins with a byte-order
    mark, which editors do not show."""

    path: str
    kind: RootKind
    root: str
    relative: str
    pinned: Match | None = None
    leaves: bool = False
    mark: bool = False


class Linked(msgspec.Struct, frozen=True):
    """What a link leads to. `modified` in nanoseconds since the epoch. `topic` is there for a
    valid one that may be read."""

    path: str
    exists: bool
    inside: bool
    pinned: bool = False
    topic: Topic | None = None
    modified: int | None = None
