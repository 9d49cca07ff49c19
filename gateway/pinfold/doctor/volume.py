"""What a directory's volume does, tried out with what the gateway itself would use."""

import fcntl
import os
from contextlib import ExitStack

import msgspec

from pinfold.backends.temporaries import temporary_name
from pinfold.paths import volume
from pinfold.paths.kernel import platform
from pinfold.paths.opened import identity


class Means(msgspec.Struct, frozen=True):
    """What was found out; None where it could not be tried. `folding`: names in another case
    answer. `nameless`: files without names. `exchange`: of two names in one step."""

    folding: bool | None = None
    nameless: bool | None = None
    exchange: bool | None = None
    locks: bool | None = None


def is_full(path: str | int) -> bool:
    """Whether nothing more fits on the volume of a path or a descriptor, as far as it tells."""
    try:
        volume = os.statvfs(path)
    except OSError:
        return False
    return volume.f_blocks > 0 and volume.f_bavail == 0


def probe(directory: int, *, writable: bool) -> Means:
    """Try it in the directory that a handle stands for; what needs a file, only if `writable`.

    Raises OSError where it cannot be opened.
    """
    opened = platform.reopen(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not writable:
            return Means(_folding(directory), locks=_locks(opened))
        with ExitStack() as cleanup:
            names = [name for _ in range(2) if (name := _make(opened, cleanup))]
            return Means(
                _folding(directory),
                _nameless(opened),
                _exchange(opened, names[0], names[1]) if len(names) == 2 else None,
                _locks(opened),
            )
    finally:
        os.close(opened)


def _make(directory: int, cleanup: ExitStack) -> bytes | None:
    """An empty file, removed in the end."""
    name = temporary_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(name, flags, 0o600, dir_fd=directory))
    except OSError:
        return None
    cleanup.callback(_remove, directory, name)
    return name


def _remove(directory: int, name: bytes) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:  # the gateway's next write there takes it for what a killed writer left
        pass


def _folding(directory: int) -> bool | None:
    try:
        return volume.probe(directory)
    except OSError:
        return None


def _nameless(directory: int) -> bool:
    try:
        os.close(platform.open_nameless(directory, 0o600))
    except OSError:
        return False
    return True


def _exchange(directory: int, a: bytes, b: bytes) -> bool:
    """Some volumes take the flag and do a plain rename, so it is looked at what became of it."""
    try:
        before = [identity(os.stat(name, dir_fd=directory)) for name in (a, b)]
        platform.exchange(directory, a, b)
        after = [identity(os.stat(name, dir_fd=directory)) for name in (a, b)]
    except OSError:
        return False
    return before == after[::-1]


def _locks(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(directory, fcntl.LOCK_UN)
    except BlockingIOError:  # somebody has it, so there are locks
        return True
    except OSError:
        return False
    return True
