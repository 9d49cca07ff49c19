"""Linux's calls: descriptors that grant nothing, names read back, exchange, cached look-ups.

All names are bytes. Each function raises OSError with the kernel's errno.
"""

import errno
import os
import sys
from _thread import allocate_lock  # threading is not loaded for a hook
from functools import lru_cache
from typing import Any, NoReturn

from pinfold.paths.errors import WouldBlock

HANDLE = os.O_PATH | os.O_CLOEXEC
_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_XDEV = 0x01
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_CACHED = 0x20
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
_UNSYNCED = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
_STATX_BYTES = 256
_NUL = "embedded null byte"
_STATX_MNT_ID = 0x1000
"""Nothing else is asked for: a file system that must ask somebody may do so for all the rest."""
_STATX_ATTR_APPEND = 0x20
_STATX = "=I28xQ96xIIQ"
"""What is wanted of the answer: its mask, the inode, the device (two numbers), the mount."""
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
# File systems that answer from this machine. Anything else may wait for someone.
_LOCAL = frozenset(b"ext2 ext3 ext4 xfs btrfs f2fs tmpfs ramfs overlay".split())
_MOUNTS = b"/proc/self/mountinfo"


class _Calls:
    """What Python has no functions for. Made when it is first needed, since loading ctypes takes
    longer than all else here. Types of arguments are not declared: looking at each would cost as
    much as the call itself."""

    def __init__(self) -> None:
        import ctypes
        import struct

        libc = ctypes.CDLL(None, use_errno=True)
        self.syscall: Any = libc.syscall
        self.statx: Any = getattr(libc, "statx", _no_statx)
        self.renameat2: Any = getattr(libc, "renameat2", None)
        self.errno = ctypes.get_errno
        self.buffer = ctypes.c_char * _STATX_BYTES
        self.unpack = struct.Struct(_STATX).unpack_from


def _no_statx(*_: object) -> int:
    """For a C library that has none."""
    import ctypes

    ctypes.set_errno(errno.ENOSYS)
    return -1


_calls = lru_cache(maxsize=1)(_Calls)
_walking = False


def prepare() -> None:
    """Load now what is loaded late, before descriptors run out or permissions are lost."""
    _calls()


def only_walk() -> None:
    """For a process that looks at a few paths and ends: `open_resolved` is not to be had, so each
    is walked, which takes less than loading what that needs."""
    global _walking  # noqa: PLW0603 - one process, one way
    _walking = True


def _fail(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))


def open_root() -> int:
    """A handle on `/`."""
    return os.open(b"/", HANDLE | os.O_DIRECTORY)


def open_entry(directory: int, name: bytes) -> int:
    """A handle on one name in a directory; a link is not followed."""
    return os.open(name, HANDLE | os.O_NOFOLLOW, dir_fd=directory)


def open_entry_here(directory: int, name: bytes) -> int:
    """As `open_entry`, for a name that nothing is mounted on. Raises WouldBlock where something
    is, which may have to ask somebody, and where the kernel cannot answer from its caches."""
    calls = _calls()
    handle: int = calls.syscall(_OPENAT2, directory, name, _ENTRY_HERE, _HOW_BYTES)
    if handle < 0:
        if calls.errno() != errno.ENOENT:
            raise WouldBlock
        _fail(errno.ENOENT)
    return handle


def is_there(directory: int, name: bytes) -> bool:
    """Whether a directory has an entry of this name, a link that leads nowhere included; what
    cannot be looked at counts as there."""
    flags = _AT_SYMLINK_NOFOLLOW | _AT_STATX_DONT_SYNC
    calls = _calls()
    found = calls.statx(directory, name, flags, 0, calls.buffer())
    return found == 0 or calls.errno() != errno.ENOENT


def link_text(directory: int, name: bytes, link: int) -> bytes:
    """What a symbolic link says, read from its own descriptor."""
    return os.readlink(b"", dir_fd=link)


def is_path(directory: int, name: bytes, device: int, text: bytes) -> bool:
    """Whether what a symbolic link says is a path. Some of the kernel's own, in /proc, lead to what
    has no name: a pipe, a socket, a namespace, a file that was removed."""
    if device != _kernel_device():
        return True
    if not text.startswith(b"/"):
        return b":" not in text  # as in pipe:[4], anon_inode:inotify
    try:
        return not text.endswith(_REMOVED) or os.stat(name, dir_fd=directory).st_nlink > 0
    except OSError:
        return False


_REMOVED = b" (deleted)"


@lru_cache(maxsize=1)
def _kernel_device() -> int | None:
    try:
        return os.stat(b"/proc/self/fd").st_dev
    except OSError:  # nothing is mounted there
        return None


def name_of(descriptor: int) -> bytes:
    """The kernel's name for what a descriptor stands for."""
    return os.readlink(b"/proc/self/fd/%d" % descriptor)


def reopen(descriptor: int, flags: int) -> int:
    """Open the very file that a handle stands for."""
    return os.open(b"/proc/self/fd/%d" % descriptor, flags | os.O_CLOEXEC)


def writable(descriptor: int) -> bool:
    """Whether this process may write the file that a handle stands for."""
    return os.access(b"/proc/self/fd/%d" % descriptor, os.W_OK, effective_ids=True)


def open_resolved(path: bytes, cached: bool) -> int:
    """A handle on what a path leads to, links followed, in one call.

    With `cached`, raises WouldBlock where the kernel cannot answer from its caches.
    """
    if _walking:
        _fail(errno.ENOSYS)
    if b"\0" in path:
        raise ValueError(_NUL)
    calls = _calls()
    handle: int = calls.syscall(_OPENAT2, _AT_FDCWD, path, _RESOLVED[cached], _HOW_BYTES)
    if handle < 0:
        number = calls.errno()
        if cached and number != errno.ENOENT:
            raise WouldBlock
        _fail(number)
    return handle


_RESOLVE = (_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_MAGICLINKS | _RESOLVE_CACHED)
_HOW_BYTES = 24


def _how(flags: int, resolve: int) -> bytes:
    return b"".join(each.to_bytes(8, sys.byteorder) for each in (flags, 0, resolve))


_RESOLVED = tuple(_how(HANDLE, each) for each in _RESOLVE)
_ENTRY_HERE = _how(HANDLE | os.O_NOFOLLOW, _RESOLVE_NO_XDEV | _RESOLVE_CACHED)
_WITHOUT_LINKS = tuple(_how(HANDLE, each | _RESOLVE_NO_SYMLINKS) for each in _RESOLVE)


def seat_at(path: bytes, cached: bool) -> tuple[int, ...] | None:
    """As `seat_of`, for what a path without any link in it leads to: what has this seat has this
    name too. None where a link is on the way, or nothing is there."""
    calls = _calls()
    handle = calls.syscall(_OPENAT2, _AT_FDCWD, path, _WITHOUT_LINKS[cached], _HOW_BYTES)
    if handle < 0:
        if cached and calls.errno() not in (errno.ENOENT, errno.ELOOP):
            raise WouldBlock
        return None
    try:
        return seat_of(handle, cached)
    finally:
        os.close(handle)


def is_plain(path: bytes) -> bool:
    """Whether nothing on the way of a path is a link, as far as it is there: the kernel's name for
    what it leads to is then this very path. Raises WouldBlock where the kernel cannot answer from
    its caches."""
    calls = _calls()
    handle = calls.syscall(_OPENAT2, _AT_FDCWD, path, _WITHOUT_LINKS[True], _HOW_BYTES)
    if handle < 0:
        number = calls.errno()
        if number not in (errno.ENOENT, errno.ELOOP):
            raise WouldBlock
        return bool(number == errno.ENOENT)
    os.close(handle)
    return True


def open_made(directory: int, name: bytes) -> int:
    """Open a directory that was just made, for its contents: no link, nothing mounted on it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if b"\0" in name:
        raise ValueError(_NUL)
    how = _how(flags, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_XDEV)
    calls = _calls()
    handle: int = calls.syscall(_OPENAT2, directory, name, how, _HOW_BYTES)
    if handle < 0:
        _fail(calls.errno())
    return handle


def require_local(descriptor: int) -> None:
    """Raise WouldBlock unless a handle's file system is one that answers from this machine; asking
    it nothing, so that this never waits."""
    seat = seat_of(descriptor, cached=True)
    if seat is None or not _is_local(seat[2]):
        raise WouldBlock


def seat_of(descriptor: int, cached: bool) -> tuple[int, ...] | None:
    """What a handle stands for and where it is mounted: device (two numbers), mount, inode. None
    where the kernel does not tell; with `cached`, WouldBlock where it cannot."""
    calls = _calls()
    buffer = calls.buffer()
    if calls.statx(descriptor, b"", _UNSYNCED, _STATX_MNT_ID, buffer) < 0:
        if cached:
            raise WouldBlock
        return None
    mask, inode, major, minor, mount = calls.unpack(buffer)
    return (major, minor, mount, inode) if inode and mask & _STATX_MNT_ID else None


def keeps_names(directory: int) -> bool:
    """Whether names can be added to a directory but not taken away or replaced: it is append-only.
    False where the kernel does not tell."""
    calls = _calls()
    buffer = calls.buffer()
    if calls.statx(directory, b"", _UNSYNCED, 0, buffer) < 0:
        return False
    attributes: int = int.from_bytes(buffer.raw[8:16], sys.byteorder)
    return bool(attributes & _STATX_ATTR_APPEND)


class _Mounts:
    """Which mounts are of a local file system.

    Numbers of devices and of mounts are given out again, but no mount's as long as a handle on
    something in it is open, and none without a change of the mount table. The kernel tells of each
    change; what was found before it counts no more. So a mount is asked about with the handle open.
    """

    def __init__(self) -> None:
        import select

        self._table = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._changes = select.poll()
        self._changes.register(self._table, select.POLLPRI)
        self._local: dict[int, bool] = {}

    def is_local(self, mount: int) -> bool:
        """For one thread at a time. Raises OSError."""
        if self._changes.poll(0):
            self._local.clear()
        found = self._local.get(mount)
        if found is None:  # read behind the poll: a change in between is told by the next one
            found = self._local[mount] = self._kind(mount) in _LOCAL
        return found

    def _kind(self, mount: int) -> bytes:
        """The type of its file system; empty for one that this process does not see."""
        os.lseek(self._table, 0, os.SEEK_SET)
        text = b"\n" + b"".join(iter(lambda: os.read(self._table, 1 << 16), b""))
        _, _, line = text.partition(b"\n%d " % mount)
        return line.partition(b"\n")[0].partition(b" - ")[2].partition(b" ")[0]


_mounts = lru_cache(maxsize=1)(_Mounts)
_mounts_lock = allocate_lock()


def _is_local(mount: int) -> bool:
    """Whether a mount that a handle is open in is of a local file system, as far as can be told."""
    with _mounts_lock:
        try:
            return _mounts().is_local(mount)
        except OSError:
            return False


def read_cached(descriptor: int, size: int) -> bytes:
    """Read from the start without waiting for the disk; WouldBlock where that is not possible."""
    buffer = bytearray(size + 1)
    try:
        count = os.preadv(descriptor, [buffer], 0, os.RWF_NOWAIT)
    except OSError:  # not cached, or a file system without the flag
        raise WouldBlock from None
    if count != size:  # partly cached, or it grew meanwhile
        raise WouldBlock
    return bytes(memoryview(buffer)[:count])


def open_nameless(directory: int, mode: int) -> int:
    """A new file without a name in a directory. EOPNOTSUPP where the volume has none."""
    return os.open(b".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=directory)


def link_nameless(descriptor: int, directory: int, name: bytes) -> None:
    """Give a nameless file its name, exclusively."""
    os.link(
        b"/proc/self/fd/%d" % descriptor, name, src_dir_fd=directory, dst_dir_fd=directory,
        follow_symlinks=True,
    )  # fmt: skip


def exchange(directory: int, a: bytes, b: bytes) -> None:
    """Swap two names of one directory in one step. EINVAL or ENOSYS where that is missing."""
    _rename_at(directory, a, directory, b, _RENAME_EXCHANGE)


def rename_new(source: int, name: bytes, directory: int, new: bytes) -> None:
    """Rename, unless the new name is taken (FileExistsError). EINVAL or ENOSYS where missing."""
    _rename_at(source, name, directory, new, _RENAME_NOREPLACE)


def _rename_at(source: int, name: bytes, directory: int, new: bytes, flags: int) -> None:
    calls = _calls()
    if calls.renameat2 is None:
        _fail(errno.ENOSYS)
    if calls.renameat2(source, name, directory, new, flags) < 0:
        _fail(calls.errno())
