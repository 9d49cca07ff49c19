"""What a session knows of the files that it has read or written: their digests and encodings.

By real path, and by identity, so that another name of the same file counts as read.
"""

import os
import threading
from collections import OrderedDict
from typing import TypeVar

import msgspec

from pinfold.paths.opened import identity
from pinfold.policy.facts import Identity

K = TypeVar("K")
V = TypeVar("V")
MOST = 4096
"""How many files a session remembers."""


class Known(msgspec.Struct, frozen=True):
    """A file as it was last seen: SHA-256 in hex, and whether it had several links."""

    sha256: str
    linked: bool


class KnownFiles:
    """Bounded: what was seen longest ago is forgotten first. Thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_path: OrderedDict[str, Known] = OrderedDict()
        self._by_identity: OrderedDict[Identity, Known] = OrderedDict()
        self._encodings: OrderedDict[str, str] = OrderedDict()
        self._written: OrderedDict[str, int] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Forget all files; a read that is under way is remembered when it ends."""
        with self._lock:
            for table in (self._by_path, self._by_identity, self._encodings, self._written):
                table.clear()

    def now(self) -> int:
        """A moment, to be given to `saw` by a read that began then."""
        return self._count

    def saw(self, real: str, status: os.stat_result | None, sha256: str, since: int) -> None:
        """A file was read; `status` is None where it is not on disk. If the session has written it
        since the read began, that counts."""
        with self._lock:
            if self._written.get(real, -1) < since:
                found = None if status is None else identity(status)
                linked = status is not None and status.st_nlink > 1
                self._remember(real, found, Known(sha256, linked))

    def wrote(self, real: str, found: Identity | None, sha256: str) -> None:
        """A file was written, and is the only one of its identity."""
        with self._lock:
            self._count += 1
            _put(self._written, real, self._count - 1, self._most)
            self._remember(real, found, Known(sha256, False))

    def _remember(self, real: str, found: Identity | None, known: Known) -> None:
        _put(self._by_path, real, known, self._most)
        if found is not None:
            _put(self._by_identity, found, known, self._most)

    def encoding(self, real: str | None, named: str | None) -> str | None:
        """The encoding that is named now, which is remembered for this file, or was last."""
        if named is None or real is None:
            return named or self._encodings.get(real or "")
        with self._lock:
            _put(self._encodings, real, named, self._most)
        return named

    def last_seen(self, real: str, status: os.stat_result | None, sha256: str) -> str | None:
        """The digest of a file as this session last saw it, or None if it did not.

        `status` (None: it is not on disk) and `sha256` are those that it has now. A freed inode
        number is given to another file at once, so identity alone counts only for a hard link, or
        with equal bytes.
        """
        with self._lock:
            if known := self._by_path.get(real):
                return known.sha256
            found = None if status is None else identity(status)
            other = None if found is None else self._by_identity.get(found)
            if status is None or other is None:
                return None
            linked = other.linked and status.st_nlink > 1
            return other.sha256 if linked or other.sha256 == sha256 else None


def _put(table: "OrderedDict[K, V]", key: K, value: V, most: int) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > most:
        table.popitem(last=False)
