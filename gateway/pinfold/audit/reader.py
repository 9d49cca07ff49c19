"""Reading the record: the rotated files, oldest first, then the live one; and what is added."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader

_MOST = 1 << 20
"""Bytes of a line that are kept; one that is longer is no record."""

Identity = tuple[int, int]


class Trail:
    """The lines of a record, also while it grows and is rotated. Close it when done."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BufferedReader | None = None
        self._rest = b""

    def new(self) -> Iterator[bytes]:
        """The whole lines that were added since the last time; the first time all there are.

        Raises OSError where a file cannot be read, FileNotFoundError where there is none at all.
        """
        later = [] if self._in_place() else self._later()
        if self._file is not None:
            yield from self._drain(self._file)
        for index, file in enumerate(later):
            try:
                yield from self._switch(file)
            except BaseException:
                _close(later[index + 1 :])
                raise

    def rest(self) -> Iterator[bytes]:
        """What stands after the last whole line, at the end."""
        if self._rest:
            rest, self._rest = self._rest, b""
            yield rest

    def close(self) -> None:
        """Give the descriptor back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _switch(self, file: BufferedReader) -> Iterator[bytes]:
        """Go on with the next file: nothing is added any more to the one before."""
        self.close()
        self._file = file
        yield from self.rest()
        yield from self._drain(file)

    def _drain(self, file: BufferedReader) -> Iterator[bytes]:
        if os.fstat(file.fileno()).st_size < file.tell():  # emptied, as with `keep` 0
            file.seek(0)
            self._rest = b""
        while chunk := file.readline(_MOST):
            self._rest = (self._rest + chunk)[: _MOST + 1]
            if chunk.endswith(b"\n"):
                line, self._rest = self._rest, b""
                yield line

    def _in_place(self) -> bool:
        """Whether what is being read is the live file."""
        if self._file is None:
            return False
        try:
            return _identity(os.stat(self._path)) == _identity(os.fstat(self._file.fileno()))
        except FileNotFoundError:  # just being rotated, or removed: there may be more later
            return True

    def _later(self) -> list[BufferedReader]:
        """The files after the one that is being read, oldest first."""
        files = _open_all(self._path)
        if self._file is None:
            if not files:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._path)
            return files
        mine = os.fstat(self._file.fileno())
        there = [os.fstat(file.fileno()) for file in files]
        known = [_identity(status) for status in there]
        if _identity(mine) in known:
            after = known.index(_identity(mine)) + 1
        else:  # removed, and only what was written since is new
            after = sum(status.st_mtime_ns <= mine.st_mtime_ns for status in there)
        _close(files[:after])
        return files[after:]


def _open_all(path: str) -> list[BufferedReader]:
    """All files, oldest first: opened from the newest on, so that what is rotated meanwhile is
    met twice rather than missed."""
    found: dict[Identity, BufferedReader] = {}
    try:
        for name in (path, *(f"{path}.{number}" for number in range(1, _oldest(path) + 2))):
            file = _open(name)
            if file is not None:
                there = _identity(os.fstat(file.fileno()))
                if found.setdefault(there, file) is not file:
                    file.close()
    except BaseException:
        _close([*found.values()])
        raise
    return [*reversed(found.values())]


def _oldest(path: str) -> int:
    """The highest number of a rotated file; 0 if there is none."""
    directory, base = os.path.split(path)
    pattern = re.compile(re.escape(base) + r"\.([1-9][0-9]{0,2})")
    try:
        names = os.listdir(directory or ".")
    except FileNotFoundError:  # what is missing is the record, whose path says more
        names = []
    matches = map(pattern.fullmatch, names)
    return max((int(match[1]) for match in matches if match), default=0)


def _open(path: str) -> BufferedReader | None:
    """A regular file; None if nothing is there. Never waits."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return os.fdopen(descriptor, "rb")


def _close(files: list[BufferedReader]) -> None:
    for file in files:
        file.close()


def _identity(status: os.stat_result) -> Identity:
    return (status.st_dev, status.st_ino)
