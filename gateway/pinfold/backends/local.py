"""The local disk. A reader, a crash or a full disk at any moment finds the old bytes or the new."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from pinfold.backends.base import Reading, Written
from pinfold.backends.locks import DirectoryLocks
from pinfold.backends.publish import Replacement, Seam, no_seam
from pinfold.paths.errors import ChangedUnderfoot, WouldBlock, from_errno, reraise
from pinfold.paths.kernel import platform
from pinfold.paths.opened import CheckedPath, Opened
from pinfold_protocol.errors import ToolError

CACHED_BYTES = 1 << 20
"""Up to which size a file may be read in place, without a thread of its own."""

_LEAST_READ = 64 * 1024
_CHUNK = 1 << 20
_TOO_LARGE = "It cannot be changed here. Text of that size can be read, with offset and limit."


def require_regular(opened: Opened, path: str) -> os.stat_result:
    """The status of a regular file; ToolError for anything else, without opening it."""
    if failure := opened.failure():
        raise failure
    if opened.status is None:
        raise from_errno(errno.ENOENT, path)
    if stat.S_ISDIR(opened.status.st_mode):
        raise ToolError("is-directory", f"{path}: it is a directory. Give the path of a file.")
    if not stat.S_ISREG(opened.status.st_mode):
        raise not_regular(path)
    return opened.status


def not_regular(path: str) -> ToolError:
    """The error for what is neither a file nor a directory."""
    kinds = "a FIFO, a socket, a device or the like"
    message = f"{path}: it is not a regular file but {kinds}. Use another."
    return ToolError("not-a-regular-file", message)


class LocalBackend:
    """Reads the handle that was decided on, and replaces files in one step."""

    def __init__(self, seam: Seam = no_seam) -> None:
        self._locks = DirectoryLocks()
        self._seam = seam
        self._exchanging: dict[int, bool] = {}

    def read(
        self,
        path: CheckedPath,
        max_bytes: int,
        *,
        cached: bool = False,
        encoding: str | None = None,
    ) -> Reading:
        """The content of the very file that was decided on (see Backend)."""
        opened, name = path.opened, path.opened.literal
        status = require_regular(opened, name)
        if status.st_size > max_bytes:
            raise too_large(name, status.st_size, max_bytes)
        if cached and status.st_size > CACHED_BYTES:
            raise WouldBlock
        assert opened.target is not None
        try:
            descriptor = _open_to_read(opened.target, cached)
        except OSError as error:
            reraise(error, name)
        try:
            if cached:
                return Reading(platform.read_cached(descriptor, status.st_size))
            return Reading(_read_all(descriptor, status.st_size, max_bytes, name))
        except OSError as error:
            reraise(error, name)
        finally:
            os.close(descriptor)

    @contextmanager
    def chunks(self, path: CheckedPath) -> Iterator[Iterator[bytes]]:
        """The content in pieces of a mebibyte (see Backend)."""
        opened, name = path.opened, path.opened.literal
        require_regular(opened, name)
        assert opened.target is not None
        try:
            descriptor = _open_to_read(opened.target, cached=False)
        except OSError as error:
            reraise(error, name)
        try:
            yield iter(partial(os.read, descriptor, _CHUNK), b"")
        except OSError as error:
            reraise(error, name)
        finally:
            os.close(descriptor)

    def replace(
        self,
        path: CheckedPath,
        data: bytes,
        old: Reading | None,
        *,
        encoding: str | None = None,
        last_look: Callable[[], None] = lambda: None,
    ) -> Written:
        """Replace or create the file (see Backend). `last_look` is called right before it is
        published, and raises where that must not be."""
        require_replaceable(path.opened)
        try:
            with ExitStack() as cleanup:
                replacement = Replacement(path, self._locks, self._exchanging, self._seam, cleanup)
                return Written(replacement.run(data, last_look))
        except FileNotFoundError as error:  # the directory has gone
            raise ChangedUnderfoot(path.opened.literal) from error
        except OSError as error:
            reraise(error, path.opened.literal)


def _open_to_read(target: int, cached: bool) -> int:
    """Without waiting for data that may never come, as in some files of the kernel; but for
    somebody's lease on the file, where that is allowed."""
    try:
        return platform.reopen(target, os.O_RDONLY | os.O_NONBLOCK)
    except BlockingIOError:
        if cached:
            raise WouldBlock from None
        return platform.reopen(target, os.O_RDONLY)


def require_replaceable(opened: Opened) -> None:
    """Raise ToolError unless a file may be made of the target, or replaced there."""
    name = opened.literal
    if failure := opened.failure():
        raise failure
    if opened.directory_wanted:
        raise ToolError(
            "is-directory", f"{name}: the path names a directory. Give the path of a file."
        )
    if opened.status is not None:
        require_regular(opened, name)
    handle = opened.parent if opened.status is None else opened.target
    assert handle is not None
    if platform.writable(handle):
        return
    if os.fstatvfs(handle).f_flag & os.ST_RDONLY:
        raise from_errno(errno.EROFS, name)
    if opened.status is None:
        raise from_errno(errno.EACCES, name)
    raise ToolError("permission", f"{name}: the file is not writable. Ask the user to allow it.")


def too_large(path: str, size: int, most: int, then: str = _TOO_LARGE) -> ToolError:
    """The error for a file over the limit. `then`: what to do."""
    return ToolError(
        "too-large",
        f"{path}: {size} bytes, over the limit of {most}. {then}",
        sizeBytes=size,
        limit=most,
    )


def _read_all(descriptor: int, size: int, max_bytes: int, path: str) -> bytes:
    """Up to the end, whatever `size` said; ToolError if that is over the limit."""
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(descriptor, max(size - total + 1, _LEAST_READ)):
        total += len(chunk)
        if total > max_bytes:
            raise too_large(path, total, max_bytes)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
