"""Where one document stands in memory, and what its links lead to: facts for `language`, gathered
with the policy's own tests, on descriptors."""

import os
import stat
from collections.abc import Callable, Iterable

from pinfold.language.facts import Linked, Where
from pinfold.language.links import MOST_LINKS
from pinfold.memory.documents import topic_of
from pinfold.memory.roots import Look
from pinfold.paths.kernel import platform
from pinfold.paths.opened import Opened
from pinfold.paths.walk import walk
from pinfold.policy.confinement import managed
from pinfold.policy.facts import Facts, RootFacts, Target
from pinfold.policy.names import below, collapse
from pinfold.policy.pinned import find_pinned
from pinfold.text.frontmatter import Topic
from pinfold_protocol.decision import Match

_MARK = b"\xef\xbb\xbf"
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Readable = Callable[[Target, tuple[RootFacts, ...]], bool]


class Survey:
    """One look at the roots, for one document and its links. `readable`: whether the session may
    read what a target is."""

    def __init__(self, look: Look, readable: Readable) -> None:
        self._look = look
        self._readable = readable
        self._roots = look.marked()

    def where(self, path: str) -> Where | None:
        """Where a document is; None where no root has it. `path` is absolute, as text."""
        with walk(path) as opened:
            found = _by_name(collapse(path), self._roots) or _by_name(opened.real, self._roots)
            if found is None:
                return None
            root, base, relative = found
            leaves = opened.real is not None and managed(opened.real, self._roots) != root.kind
            return Where(
                f"{base}/{relative}",
                root.kind,
                base,
                relative,
                self._pinned(opened),
                leaves,
                _has_mark(opened),
            )

    def linked(self, where: Where, paths: Iterable[str]) -> dict[str, Linked]:
        """What absolute paths lead to, at most MOST_LINKS of them."""
        return {path: self._linked(where, path) for path, _ in zip(paths, range(MOST_LINKS))}

    def _linked(self, where: Where, path: str) -> Linked:
        with walk(path) as opened:
            by_name = _by_name(path, self._roots)
            inside = by_name is not None and by_name[0].kind == where.kind
            if opened.real is not None and managed(opened.real, self._roots) != where.kind:
                inside = False
            status = opened.status
            if not inside or status is None:
                return Linked(path, status is not None, inside)
            return Linked(
                path,
                True,
                True,
                self._pinned(opened) is not None,
                self._topic(opened),
                status.st_mtime_ns,
            )

    def _pinned(self, opened: Opened) -> Match | None:
        try:
            facts = self._look.for_change(opened, self._roots)
        except OSError:
            facts = Facts(opened.as_target(), self._roots)
        found = find_pinned(facts)
        return None if found is None else found[1]

    def _topic(self, opened: Opened) -> Topic | None:
        status = opened.status
        if status is None or not stat.S_ISREG(status.st_mode):
            return None
        if not self._readable(opened.as_target(), self._roots):
            return None
        try:
            found = _read(opened)
        except OSError:
            return None
        return found if isinstance(found, Topic) else None


def _by_name(path: str | None, roots: tuple[RootFacts, ...]) -> tuple[RootFacts, str, str] | None:
    """The innermost root that a path is in by its own text, as it is configured or as it really is:
    it, the path of it that was met, and the names from there on."""
    best: tuple[RootFacts, str, str] | None = None
    for root in roots:
        for base in (root.path, root.real):
            inside = None if base is None or path is None else below(path, base)
            if inside and base is not None and (best is None or len(base) > len(best[1])):
                best = root, base.rstrip("/"), "/".join(inside)
    return best


def _has_mark(opened: Opened) -> bool:
    """Whether the file on the disk begins with a byte-order mark of UTF-8."""
    status = opened.status
    if opened.target is None or status is None or not stat.S_ISREG(status.st_mode):
        return False
    try:
        handle = platform.reopen(opened.target, _FILE)
    except OSError:
        return False
    try:
        return os.read(handle, len(_MARK)) == _MARK
    except OSError:
        return False
    finally:
        os.close(handle)


def _read(opened: Opened) -> Topic | str:
    assert opened.target is not None
    handle = platform.reopen(opened.target, _FILE)
    try:
        return topic_of(handle)
    finally:
        os.close(handle)
