"""Who may change a directory now: one call of this process, and one gateway of this machine."""

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pinfold.paths.opened import identity
from pinfold.policy.facts import Identity
from pinfold_protocol.errors import ToolError

_TRIES = 200
_PAUSE = 0.01
"""Seconds between two tries for another gateway's lock: about two seconds in all."""


class KeyedLocks:
    """A lock for each key, kept only while somebody wants it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[object, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, key: object) -> Iterator[bool]:
        """Hold the key's lock. Yields whether it had to be waited for."""
        with self._guard:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, users + 1)
        waited = not lock.acquire(blocking=False)
        if waited:
            lock.acquire()
        try:
            yield waited
        finally:
            lock.release()
            with self._guard:
                lock, users = self._locks.pop(key)
                if users > 1:
                    self._locks[key] = (lock, users - 1)


class DirectoryLocks:
    """`flock` between gateways, and a lock of our own between the calls of this one."""

    def __init__(self) -> None:
        self._locks = KeyedLocks()
        self._seen: set[Identity] = set()
        self._pause = threading.Event()

    @contextmanager
    def hold(self, directory: int, path: str) -> Iterator[None]:
        """Hold an open directory. Raises ToolError if another gateway keeps it locked."""
        with self._locks.hold(identity(os.fstat(directory))):
            self._flock(directory, path)
            try:
                yield
            finally:
                fcntl.flock(directory, fcntl.LOCK_UN)

    def _flock(self, directory: int, path: str) -> None:
        for _ in range(_TRIES):
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
            self._pause.wait(_PAUSE)
        message = f"{path}: another gateway keeps its directory locked. Nothing was changed; "
        message += "try again."
        raise ToolError("changed-underfoot", message)

    def first_time(self, directory: int) -> bool:
        """Whether this directory is held for the first time by this process."""
        here = identity(os.fstat(directory))
        if here is None or here in self._seen:
            return False
        self._seen.add(here)
        return True
