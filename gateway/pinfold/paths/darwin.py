"""macOS by its documented calls. Untested: nobody here has run it.

There is no O_PATH and no /proc: a handle is a read-only descriptor, a link is read by its name,
and `F_GETPATH` gives the kernel's name. FIFOs, devices and sockets are never opened.
"""

import ctypes
import errno
import fcntl
import os
import stat
from functools import lru_cache

from pinfold.paths.errors import WouldBlock

_F_GETPATH = 50
_O_EVTONLY = 0x8000
_O_SYMLINK = 0x200000
_RENAME_SWAP = 0x2
_RENAME_EXCL = 0x4


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """All is there."""


def only_walk() -> None:
    """There is nothing else."""


def open_root() -> int:
    """A handle on `/`."""
    return os.open(b"/", os.O_RDONLY | os.O_DIRECTORY)


def open_entry(directory: int, name: bytes) -> int:
    """A handle on one name in a directory; a link is not followed."""
    mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        return os.open(name, _O_EVTONLY | _O_SYMLINK, dir_fd=directory)
    if stat.S_ISDIR(mode):
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    flags = _O_EVTONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    if not stat.S_ISREG(mode):
        raise OSError(errno.EOPNOTSUPP, "not a regular file")
    return os.open(name, flags, dir_fd=directory)


def open_entry_here(directory: int, name: bytes) -> int:
    """Never in place."""
    raise WouldBlock


def is_there(directory: int, name: bytes) -> bool:
    """Whether a directory has an entry of this name, a link that leads nowhere included; what
    cannot be looked at counts as there."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def link_text(directory: int, name: bytes, link: int) -> bytes:
    """What a symbolic link says."""
    return os.readlink(name, dir_fd=directory)


def is_path(directory: int, name: bytes, device: int, text: bytes) -> bool:
    """Every link here says a path."""
    return True


def name_of(descriptor: int) -> bytes:
    """The kernel's name for what a descriptor stands for."""
    return fcntl.fcntl(descriptor, _F_GETPATH, b"\0" * 1024).rstrip(b"\0")


def reopen(descriptor: int, flags: int) -> int:
    """Open the file at the kernel's name, and only if it is the same one."""
    opened = os.open(name_of(descriptor), flags | os.O_NOFOLLOW)
    if not os.path.sameopenfile(opened, descriptor):
        os.close(opened)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    return opened


def writable(descriptor: int) -> bool:
    """Whether this process may write the file that a handle stands for."""
    return os.access(name_of(descriptor), os.W_OK)


def open_resolved(path: bytes, cached: bool) -> int:
    """Not to be had in one call: the caller walks."""
    if cached:
        raise WouldBlock
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def require_local(descriptor: int) -> None:
    """Never in place."""
    raise WouldBlock


def seat_of(descriptor: int, cached: bool) -> tuple[int, ...] | None:
    """Not to be had: every look finds out anew."""
    return None


def seat_at(path: bytes, cached: bool) -> tuple[int, ...] | None:
    """Not to be had, as `seat_of`."""
    return None


def keeps_names(directory: int) -> bool:
    """Whether names can be added to a directory but not taken away or replaced."""
    return bool(getattr(os.fstat(directory), "st_flags", 0) & (stat.UF_APPEND | stat.SF_APPEND))


def is_plain(path: bytes) -> bool:
    """Never in place."""
    raise WouldBlock


def read_cached(descriptor: int, size: int) -> bytes:
    """Never in place."""
    raise WouldBlock


def open_nameless(directory: int, mode: int) -> int:
    """Not to be had: the caller falls back to an exclusive temporary."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def link_nameless(descriptor: int, directory: int, name: bytes) -> None:
    """Not to be had, as `open_nameless`."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def open_made(directory: int, name: bytes) -> int:
    """Open a directory that was just made, for its contents; no link is followed."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)


def exchange(directory: int, a: bytes, b: bytes) -> None:
    """Swap two names of one directory in one step."""
    _rename_at(directory, a, directory, b, _RENAME_SWAP)


def rename_new(source: int, name: bytes, directory: int, new: bytes) -> None:
    """Rename, unless the new name is taken (FileExistsError)."""
    _rename_at(source, name, directory, new, _RENAME_EXCL)


def _rename_at(source: int, name: bytes, directory: int, new: bytes, flags: int) -> None:
    if _libc().renameatx_np(source, name, directory, new, flags) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
