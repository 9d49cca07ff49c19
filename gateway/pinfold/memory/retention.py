"""The tag on a read of managed memory: what was read, not what its path may mean later."""

import os

from pinfold.memory.roots import Look
from pinfold.paths.literal import encode
from pinfold.paths.opened import NO_MEANS, Opened, identity
from pinfold.policy.facts import RootFacts
from pinfold.policy.names import below, join, split
from pinfold.policy.pinned import is_reserved
from pinfold_protocol.decision import RootKind
from pinfold_protocol.retention import RetentionTag


def tag_for(
    opened: Opened,
    kind: RootKind,
    look: Look,
    sha256: str | None,
    *,
    complete: bool,
) -> RetentionTag | None:
    """The tag for a successful read of managed memory, by the look that the read was decided on;
    None if the file moved meanwhile.

    Raises OSError where something could not be looked at this time: a read that loses its tag, or
    the word that it is pinned, would be forgotten first.
    """
    roots = look.marked()
    look.require_means()
    if opened.real is None or not opened.still_named():
        return None
    return RetentionTag(
        scope=kind,
        pinned=any(_pinned(opened.real, root) for root in roots),
        complete=complete,
        path=opened.real,
        sha256=sha256,
    )


def _pinned(path: str, root: RootFacts) -> bool:
    return is_reserved(path, root) or _passes_reserved(path, root)


def _passes_reserved(path: str, root: RootFacts) -> bool:
    """By identity: a directory between the root and the file that is the reserved one."""
    inside = None if root.real is None else below(path, root.real)
    if not inside or root.reserved is None:
        return False
    anchors = {place.anchor for place in root.reserved.places if not place.names}
    if not anchors:
        return False
    way = split(path)
    first = len(way) - len(inside)
    return any(_identity(join(way[: end + 1])) in anchors for end in range(first, len(way) - 1))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        return identity(os.stat(encode(path)))
    except OSError as error:
        if error.errno in NO_MEANS:
            raise
        return None
