"""The file: lines of several gateways, each whole, bounded in size by rotation.

Whoever appends holds an advisory lock on the file itself and has looked that it still is the one
at the path. Rotation is a chain of renames under that lock; whoever waited for it finds another
file at the path then, and opens that.
"""

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

_TRIES = 200
_PAUSE = 0.005
"""Seconds between two tries for another gateway's lock: about a second in all."""
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | os.O_CREAT
    | os.O_NOFOLLOW
    | os.O_CLOEXEC
    | os.O_NONBLOCK
    | os.O_NOCTTY
)

Seam = Callable[[str], None]


class Place(msgspec.Struct, frozen=True):
    """Where the record is: `path`, absolute; a file of at most `max_bytes`; `keep` older ones."""

    path: str
    max_bytes: int
    keep: int


class Log:
    """The record's file. For one thread; raises OSError where it cannot be written."""

    def __init__(self, place: Place, seam: Seam = lambda moment: None) -> None:
        self._place = place
        self._seam = seam
        self._descriptor: int | None = None
        self._pause = threading.Event()
        self.vanished = False
        """Whether somebody removed the file while it was open."""

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._place.path

    def append(self, lines: list[bytes]) -> int:
        """Append lines, each by one write; how many of them are there now, in order.

        Raises OSError where none is.
        """
        done = 0
        try:
            while done < len(lines):
                with self._locked() as descriptor:
                    done += self._fill(descriptor, lines[done:])
        except OSError:
            self.close()
            if not done:
                raise
        return done

    def close(self) -> None:
        """Give the descriptor back; the next append opens the file again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    # Under the lock

    def _fill(self, descriptor: int, lines: list[bytes]) -> int:
        """As many of the lines as fit: fewer than all where the file had to be rotated."""
        size = self._whole(descriptor)
        for count, line in enumerate(lines):
            if size and size + len(line) > self._place.max_bytes:
                self._rotate(descriptor)
                return count
            try:
                self._write(descriptor, line, size)
            except OSError:
                if not count:
                    raise
                return count
            size += len(line)
        return len(lines)

    def _whole(self, descriptor: int) -> int:
        """The size, after half a line that a crash left was ended."""
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            self._write(descriptor, b"\n", size)
            size += 1
        return size

    def _write(self, descriptor: int, line: bytes, size: int) -> None:
        self._seam("write")
        written = os.write(descriptor, line)
        if written < len(line):  # the disk is full: no half a line stays
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _rotate(self, descriptor: int) -> None:
        """`path` becomes `path.1`, and so on; the oldest goes. Without any, the file is emptied."""
        path, keep = self._place.path, self._place.keep
        if not keep:
            os.ftruncate(descriptor, 0)
            return
        for number in range(keep - 1, 0, -1):
            try:
                os.rename(f"{path}.{number}", f"{path}.{number + 1}")
            except FileNotFoundError:
                pass
        self._seam("rotating")
        os.rename(path, f"{path}.1")

    # The lock

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file at the path, locked. Raises OSError; BlockingIOError if somebody keeps it."""
        for _ in range(_TRIES):
            descriptor = self._opened()
            if not self._lock(descriptor):
                self._pause.wait(_PAUSE)
                continue
            try:
                if self._in_place(descriptor):
                    yield descriptor
                    return
            finally:
                _unlock(descriptor)
            self.close()
        raise BlockingIOError(errno.EAGAIN, "somebody keeps it locked")

    def _opened(self) -> int:
        if self._descriptor is None:
            self._descriptor = _open(self._place.path)
        return self._descriptor

    def _lock(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in _NO_LOCKS
        return True

    def _in_place(self, descriptor: int) -> bool:
        """Whether the file still is the one at the path: neither rotated nor removed."""
        mine = os.fstat(descriptor)
        try:
            there = os.lstat(self._place.path)
        except (FileNotFoundError, NotADirectoryError):
            self.vanished = self.vanished or not mine.st_nlink
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)


def _unlock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError:  # a file system without locks
        pass


def _open(path: str) -> int:
    """A regular file, nobody else's to read if it is new, with its directories. Never waits."""
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, _FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor
