"""The local disk. A reader, a crash or a full disk at any moment finds the old bytes or the new.

Bytes go to a file without a name in the target's own directory; it is published by an exclusive
link or by exchange, under a lock on the directory, after everything was opened and decided once
more (docs/policy.md, "What is decided is what is touched").
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import attrs

from pinfold.backends.locks import DirectoryLocks
from pinfold.paths.errors import ChangedUnderfoot, WouldBlock, from_errno, reraise
from pinfold.paths.kernel import platform
from pinfold.paths.literal import encode
from pinfold.paths.opened import CheckedPath, Opened, identity, snapshot
from pinfold.policy.facts import Identity
from pinfold.policy.names import join, split
from pinfold_protocol.errors import ToolError

TEMPORARY = (b".pinfold-", b".tmp")
CACHED_BYTES = 256 * 1024
"""Up to which size a file may be read in place, without a thread of its own."""

_LEAST_READ = 64 * 1024
_CHUNK = 1 << 20

Seam = Callable[[str], None]
_NOT_HERE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
# What O_TMPFILE answers on a file system that does not have it.
_NO_LINKS = _NOT_HERE | {errno.EPERM, errno.EMLINK}
_NO_NAMELESS = _NOT_HERE | {errno.EISDIR, errno.ENOENT}


def _no_seam(moment: str) -> None:
    """Tests put something between two system calls here; nobody else does."""


def require_regular(opened: Opened, path: str) -> os.stat_result:
    """The status of a regular file; ToolError for anything else, without opening it."""
    if opened.problem is not None:
        raise from_errno(opened.problem, path)
    if opened.status is None:
        raise from_errno(errno.ENOENT, path)
    if stat.S_ISDIR(opened.status.st_mode):
        raise ToolError("is-directory", f"{path}: it is a directory")
    if not stat.S_ISREG(opened.status.st_mode):
        raise ToolError("not-a-regular-file", f"{path}: it is not a regular file")
    return opened.status


class LocalBackend:
    """Reads the handle that was decided on, and replaces files in one step."""

    def __init__(self, seam: Seam = _no_seam) -> None:
        self._locks = DirectoryLocks()
        self._seam = seam
        self._exchanging: dict[int, bool] = {}

    def read(self, path: CheckedPath, max_bytes: int, *, cached: bool = False) -> bytes:
        """The content of the very file that was decided on (see Backend)."""
        opened, name = path.opened, path.opened.literal
        status = require_regular(opened, name)
        if status.st_size > max_bytes:
            raise too_large(name, status.st_size, max_bytes)
        if cached and status.st_size > CACHED_BYTES:
            raise WouldBlock
        assert opened.target is not None
        try:
            waiting = 0 if not cached else os.O_NONBLOCK  # for somebody's lease on the file
            descriptor = platform.reopen(opened.target, os.O_RDONLY | waiting)
        except BlockingIOError:
            raise WouldBlock from None
        except OSError as error:
            reraise(error, name)
        try:
            if cached:
                return platform.read_cached(descriptor, status.st_size)
            return _read_all(descriptor, status.st_size, max_bytes, name)
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
            descriptor = platform.reopen(opened.target, os.O_RDONLY)
        except OSError as error:
            reraise(error, name)
        try:
            yield iter(partial(os.read, descriptor, _CHUNK), b"")
        except OSError as error:
            reraise(error, name)
        finally:
            os.close(descriptor)

    def replace(self, path: CheckedPath, data: bytes) -> Identity | None:
        """Replace or create the file (see Backend)."""
        require_replaceable(path.opened)
        try:
            with ExitStack() as cleanup:
                replacement = _Replacement(path, self._locks, self._exchanging, self._seam, cleanup)
                return replacement.run(data)
        except OSError as error:
            reraise(error, path.opened.literal)


def require_replaceable(opened: Opened) -> None:
    """Raise ToolError unless a file may be made of the target, or replaced there."""
    name = opened.literal
    if opened.problem is not None:
        raise from_errno(opened.problem, name)
    if opened.directory_wanted:
        raise ToolError("is-directory", f"{name}: the path names a directory")
    if opened.status is not None:
        require_regular(opened, name)
        assert opened.target is not None
        if not platform.writable(opened.target):
            raise ToolError("permission", f"{name}: the file is not writable")


def too_large(path: str, size: int, most: int) -> ToolError:
    """The error for a file over the limit."""
    return ToolError(
        "too-large", f"{path}: {size} bytes, over the limit of {most}", sizeBytes=size, limit=most
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


@attrs.define
class _Made:
    """A directory that was made for a write: where, its name, and a handle on it."""

    parent: int
    name: bytes
    handle: int


class _Replacement:
    """One file being replaced: its descriptors are given back by `cleanup`, whatever happens."""

    def __init__(
        self,
        path: CheckedPath,
        locks: DirectoryLocks,
        exchanging: dict[int, bool],
        seam: Seam,
        cleanup: ExitStack,
    ) -> None:
        self._path = path
        self._exchanging = exchanging
        self._opened = path.opened
        self._locks = locks
        self._seam = seam
        self._cleanup = cleanup
        self._temporary: bytes | None = None
        # A new file gets what the umask leaves; a replacement is private until it is like the old.
        self._mode = 0o666 if self._opened.status is None else 0o600
        assert self._opened.parent is not None
        self._parent = self._opened.parent
        leaf = len(self._opened.missing) or 1
        self._expected = encode(join(split(self._opened.real or "")[:-leaf]))

    def run(self, data: bytes) -> Identity | None:
        directory = self._hold(platform.reopen(self._parent, os.O_RDONLY | os.O_DIRECTORY))
        nameless = self._open_nameless(directory)
        if nameless is not None:
            self._fill(nameless, data)
        self._seam("written")
        with self._locks.hold(directory, self._opened.literal):
            try:
                descriptor = nameless
                if descriptor is None:
                    descriptor = self._open_temporary(directory)
                    self._fill(descriptor, data)
                with self._path.publishing():
                    self._seam("decided")
                    self._remove_left_over(directory)
                    self._publish(descriptor, nameless is not None, directory)
            finally:
                self._drop_temporary(directory)
            # It is published: nothing that fails now may be reported as if it were not.
            _sync_directory(directory)
            return _identity_of(descriptor)

    def _hold(self, descriptor: int) -> int:
        self._cleanup.callback(os.close, descriptor)
        return descriptor

    # The bytes, before anything has a name

    def _open_nameless(self, directory: int) -> int | None:
        try:
            return self._hold(platform.open_nameless(directory, self._mode))
        except OSError as error:
            if error.errno in _NO_NAMELESS:
                return None
            raise

    def _open_temporary(self, directory: int) -> int:
        if platform.name_of(directory) != self._expected:
            raise ChangedUnderfoot(self._opened.literal)
        self._temporary = _temporary_name()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return self._hold(os.open(self._temporary, flags, self._mode, dir_fd=directory))

    def _fill(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        status = self._opened.status
        if status is not None:
            assert self._opened.target is not None
            _keep_attributes(self._opened.target, status, descriptor, self._opened.literal)
        os.fsync(descriptor)

    # Under the lock

    def _remove_left_over(self, directory: int) -> None:
        """What a killed writer left: whoever holds the lock knows that nobody is using it."""
        if self._path.sweep and self._locks.first_time(directory):
            remove_left_over(directory, self._temporary)

    def _publish(self, descriptor: int, nameless: bool, directory: int) -> None:
        if self._opened.status is None:
            self._create(descriptor, nameless, directory)
        else:
            self._exchange(descriptor, nameless, directory)

    def _create(self, descriptor: int, nameless: bool, directory: int) -> None:
        *parents, leaf = self._opened.missing
        made: list[_Made] = []
        where, name = directory, encode(leaf)
        try:
            for parent in parents:
                made.append(self._make_directory(where, encode(parent)))
                where = made[-1].handle
            self._seam("parents")
            self._name_new_file(descriptor, nameless, directory, where, name)
            self._seam("linked")
            if not self._in_place(directory, made):
                _take_away(where, name, identity(os.fstat(descriptor)))
                raise ChangedUnderfoot(self._opened.literal)
        except FileExistsError as error:
            _remove_made(made)
            raise ChangedUnderfoot(self._opened.literal) from error
        except BaseException:
            _remove_made(made)
            raise
        for each in made:
            _sync_directory(each.handle)

    def _name_new_file(
        self, descriptor: int, nameless: bool, directory: int, where: int, name: bytes
    ) -> None:
        """Exclusively: FileExistsError if the name is taken."""
        if nameless:
            platform.link_nameless(descriptor, where, name)
            return
        temporary = self._temporary
        assert temporary is not None
        try:
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=where)
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        try:
            platform.rename_new(directory, temporary, where, name)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            if _identity_at(where, name) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=where)
        self._temporary = None

    def _make_directory(self, parent: int, name: bytes) -> _Made:
        os.mkdir(name, 0o777, dir_fd=parent)
        try:
            return _Made(parent, name, self._hold(platform.open_made(parent, name)))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EXDEV):
                raise ChangedUnderfoot(self._opened.literal) from error
            raise

    def _in_place(self, directory: int, made: list[_Made]) -> bool:
        """Whether the kernel's names still are the decided ones."""
        expected = self._expected
        places = [(directory, expected)]
        for each in made:
            expected = expected.rstrip(b"/") + b"/" + each.name
            places.append((each.handle, expected))
        return all(platform.name_of(descriptor) == name for descriptor, name in places)

    def _exchange(self, descriptor: int, nameless: bool, directory: int) -> None:
        name = encode(self._opened.name)
        if nameless:
            self._temporary = _temporary_name()
            platform.link_nameless(descriptor, directory, self._temporary)
        if not self._can_exchange(descriptor, directory):
            self._rename(directory, name)
            return
        temporary = self._temporary
        assert temporary is not None
        try:
            platform.exchange(directory, temporary, name)
        except FileNotFoundError as error:
            raise ChangedUnderfoot(self._opened.literal) from error
        self._seam("exchanged")
        in_place = platform.name_of(directory) == self._expected
        if not in_place or not self._is_decided(directory, temporary):
            self._take_back(descriptor, directory, temporary, name)
            raise ChangedUnderfoot(self._opened.literal)

    def _can_exchange(self, descriptor: int, directory: int) -> bool:
        """Tried once for each device with two temporaries, since some volumes take the flag and
        do a plain rename."""
        device = os.fstat(directory).st_dev
        if device not in self._exchanging:
            self._exchanging[device] = self._try_exchange(descriptor, directory)
        return self._exchanging[device]

    def _try_exchange(self, descriptor: int, directory: int) -> bool:
        temporary, probe = self._temporary, _temporary_name()
        assert temporary is not None
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory))
        try:
            platform.exchange(directory, temporary, probe)
        except OSError as error:
            os.unlink(probe, dir_fd=directory)
            if error.errno in _NOT_HERE:
                return False
            raise
        self._temporary = probe  # exchanged or renamed: our bytes are there now
        left = _identity_at(directory, temporary)
        if left is None:
            return False
        os.unlink(temporary, dir_fd=directory)
        return left != identity(os.fstat(descriptor))

    def _rename(self, directory: int, name: bytes) -> None:
        """Where exchange is missing: the same checks, with a gap after them (docs/policy.md)."""
        temporary = self._temporary
        assert temporary is not None
        in_place = platform.name_of(directory) == self._expected
        if not in_place or not self._is_decided(directory, name):
            raise ChangedUnderfoot(self._opened.literal)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        self._temporary = None

    def _is_decided(self, directory: int, name: bytes) -> bool:
        """Whether the file at `name` is the one that was decided on, unchanged."""
        assert self._opened.status is not None
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return snapshot(found) == snapshot(self._opened.status)

    def _take_back(self, descriptor: int, directory: int, temporary: bytes, name: bytes) -> None:
        """Undo an exchange: what was displaced goes back, unless someone came after us.

        Afterwards the temporary's name is nobody's, or holds what someone else has replaced.
        """
        ours = identity(os.fstat(descriptor))
        there = _identity_at(directory, name)
        if there is None and not self._is_decided(directory, temporary):
            self._restore(directory, temporary, name)
        if there != ours:
            return  # replaced or removed after us, and with us what we displaced
        try:
            platform.exchange(directory, temporary, name)
            if _identity_at(directory, temporary) != ours:  # replaced between our look and now
                platform.exchange(directory, temporary, name)
        except FileNotFoundError:
            return

    def _restore(self, directory: int, temporary: bytes, name: bytes) -> None:
        """Somebody's new file was displaced, and ours moved away: theirs must not be lost."""
        try:
            os.link(
                temporary,
                name,
                src_dir_fd=directory,
                dst_dir_fd=directory,
                follow_symlinks=False,
            )
        except OSError:
            return

    def _drop_temporary(self, directory: int) -> None:
        if self._temporary is not None:
            try:
                os.unlink(self._temporary, dir_fd=directory)
            except OSError:  # gone, or left for the next writer to remove
                pass


def _sync_directory(directory: int) -> None:
    try:
        os.fsync(directory)
    except OSError:  # some file systems cannot
        pass


def _identity_of(descriptor: int) -> Identity | None:
    try:
        return identity(os.fstat(descriptor))
    except OSError:  # some forget a file whose first name is gone
        return None


def _temporary_name() -> bytes:
    return TEMPORARY[0] + secrets.token_hex(8).encode() + TEMPORARY[1]


def _identity_at(directory: int, name: bytes) -> Identity | None:
    """None if nothing is there."""
    try:
        return identity(os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _take_away(directory: int, name: bytes, ours: Identity | None) -> None:
    """Remove a name that we made, if it still is our file: moved aside first, then looked at."""
    aside = _temporary_name()
    try:
        os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    except FileNotFoundError:
        return
    if _identity_at(directory, aside) != ours:
        try:
            platform.rename_new(directory, aside, directory, name)
            return
        except FileExistsError:
            pass  # replaced once more: what we moved aside would be gone by now
    os.unlink(aside, dir_fd=directory)


def _remove_made(made: list[_Made]) -> None:
    """Remove directories that were made, innermost first; one that is not empty stays."""
    for each in reversed(made):
        if _identity_at(each.parent, each.name) == identity(os.fstat(each.handle)):
            try:
                os.rmdir(each.name, dir_fd=each.parent)
            except OSError:
                return


def _keep_attributes(source: int, status: os.stat_result, target: int, path: str) -> None:
    """Owner, ACL, `user.*` attributes and label, then the permission bits; ToolError if the
    owner cannot be kept."""
    have = os.fstat(target)
    if (have.st_uid, have.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(target, status.st_uid, status.st_gid)
        except PermissionError as error:
            message = f"{path}: it belongs to someone else, and its owner could not be kept"
            raise ToolError("permission", message) from error
    if hasattr(os, "listxattr"):
        _copy_extended_attributes(source, target)
    os.fchmod(target, stat.S_IMODE(status.st_mode) & 0o777)


_ACL = "system.posix_acl_access"
_KEPT = (_ACL, "security.selinux", "security.SMACK64")


def _copy_extended_attributes(source: int, target: int) -> None:
    named = f"/proc/self/fd/{source}"
    try:
        attributes = os.listxattr(named)
    except OSError:
        return
    if _ACL not in attributes and _attribute(target, _ACL) is not None:
        os.removexattr(target, _ACL)  # what the directory's default gave to a new file
    for name in attributes:
        if name.startswith("user.") or name in _KEPT:
            try:
                value = os.getxattr(named, name)
                if _attribute(target, name) != value:
                    os.setxattr(target, name, value)
            except OSError as error:
                if error.errno not in _NOT_HERE | {errno.ENODATA}:
                    raise


def _attribute(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError:
        return None


_LEFT_OVER = re.compile(re.escape(TEMPORARY[0]) + rb"[0-9a-f]{16}" + re.escape(TEMPORARY[1]))


def remove_left_over(directory: int, mine: bytes | None) -> None:
    """Remove temporaries of killed writers from a directory whose lock is held, but not `mine`.

    Only regular files with our name pattern, our owner, one link and a free lock.
    """
    for name in os.listdir(directory):
        raw = os.fsencode(name)
        if _LEFT_OVER.fullmatch(raw) and raw != mine:
            try:
                _remove_one(directory, raw)
            except OSError:
                continue


def _remove_one(directory: int, name: bytes) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not ours or status.st_nlink != 1:
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if snapshot(os.fstat(descriptor)) == snapshot(status):
            os.unlink(name, dir_fd=directory)
    finally:
        os.close(descriptor)
