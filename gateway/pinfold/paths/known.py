"""What a session knows of the files that it has read or written: their digests and encodings.

By real path, and by identity, so that another name of the same file counts as read.
"""

import os
import threading
from collections import OrderedDict

import attrs

from pinfold.paths.opened import identity
from pinfold.policy.facts import Identity


@attrs.frozen
class Known:
    """A file as it was last seen: SHA-256 in hex, and an encoding that a caller named."""

    sha256: str
    encoding: str | None
    identity: Identity | None


class KnownFiles:
    """Bounded: what was seen longest ago is forgotten first. Thread-safe."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._by_path: OrderedDict[str, Known] = OrderedDict()
        self._by_identity: dict[Identity, str] = {}
        self._lock = threading.Lock()

    def remember(
        self, real: str, found: Identity | None, sha256: str, encoding: str | None
    ) -> None:
        """The file at `real` was read or written just now."""
        with self._lock:
            self._forget(real)
            self._by_path[real] = Known(sha256, encoding, found)
            if found is not None:
                self._by_identity[found] = real
            while len(self._by_path) > self._most:
                self._forget(next(iter(self._by_path)))

    def _forget(self, real: str) -> None:
        known = self._by_path.pop(real, None)
        if known and known.identity and self._by_identity.get(known.identity) == real:
            del self._by_identity[known.identity]

    def encoding(self, real: str | None) -> str | None:
        """The encoding that was last named for this file."""
        known = self._by_path.get(real or "")
        return known.encoding if known else None

    def last_seen(self, real: str, status: os.stat_result, sha256: str) -> str | None:
        """The digest of a file as this session last saw it, or None if it did not.

        `status` and `sha256` are those that the file has now. A freed inode number is given to
        another file at once, so identity alone counts only for a hard link, or with equal bytes.
        """
        with self._lock:
            if known := self._by_path.get(real):
                return known.sha256
            found = identity(status)
            other = None if found is None else self._by_path.get(self._by_identity.get(found, ""))
            if other and (status.st_nlink > 1 or other.sha256 == sha256):
                return other.sha256
            return None
