"""Publishing a change in one step (docs/policy.md, "What is decided is what is touched").

Bytes go to a file without a name in the target's own directory; it is published by an exclusive
link or by exchange, under a lock on the directory, after everything was opened and decided once
more.
"""

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from pinfold.backends.attributes import keep_attributes
from pinfold.backends.locks import DirectoryLocks
from pinfold.backends.temporaries import remove_left_over, temporary_name
from pinfold.paths.errors import ChangedUnderfoot
from pinfold.paths.kernel import platform
from pinfold.paths.literal import encode
from pinfold.paths.opened import CheckedPath, identity, snapshot
from pinfold.policy.facts import Identity
from pinfold.policy.names import join, split
from pinfold_protocol.errors import ToolError

Seam = Callable[[str], None]
_NOT_HERE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
_NO_LINKS = _NOT_HERE | {errno.EPERM, errno.EMLINK}
# What O_TMPFILE answers on a file system that does not have it.
_NO_NAMELESS = _NOT_HERE | {errno.EISDIR, errno.ENOENT}

_KEEPS_NAMES = (
    "its directory is append-only, so nothing in it can be replaced. Nothing was changed; ask the "
    "user to allow it, or use a file elsewhere."
)


def no_seam(moment: str) -> None:
    """Tests put something between two system calls here; nobody else does."""


class _Made(msgspec.Struct):
    """A directory that was made for a write: where, its name, and a handle on it."""

    parent: int
    name: bytes
    handle: int


class Replacement:
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

    def run(self, data: bytes, last_look: Callable[[], None]) -> Identity | None:
        """Fill and publish it: the identity that the file has then. `last_look` is called when
        nothing but the publishing is left, and raises where that must not be."""
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
                    last_look()
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
            if os.fstat(directory).st_nlink == 0:  # ext4 answers EPERM for one that is removed
                raise ChangedUnderfoot(self._opened.literal) from error
            raise

    def _name_temporary(self, directory: int) -> bytes:
        """Its name from now on. Raises ToolError where it could not be taken away again."""
        if platform.keeps_names(directory):
            raise ToolError("permission", f"{self._opened.literal}: {_KEEPS_NAMES}")
        self._temporary = temporary_name()
        return self._temporary

    def _open_temporary(self, directory: int) -> int:
        if platform.name_of(directory) != self._expected:
            raise ChangedUnderfoot(self._opened.literal)
        name = self._name_temporary(directory)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return self._hold(os.open(name, flags, self._mode, dir_fd=directory))

    def _fill(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        status = self._opened.status
        if status is not None:
            assert self._opened.target is not None
            keep_attributes(self._opened.target, status, descriptor, self._opened.literal)
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
            self._require_in_place(directory, made, where, name, descriptor)
        except FileExistsError as error:
            _remove_made(made)
            raise ChangedUnderfoot(self._opened.literal) from error
        except BaseException:
            _remove_made(made)
            raise
        for each in made:
            _sync_directory(each.handle)

    def _require_in_place(
        self, directory: int, made: list[_Made], where: int, name: bytes, descriptor: int
    ) -> None:
        """The kernel's names must be the decided ones; else what was published is taken away."""
        try:
            if self._in_place(directory, made):
                return
        except OSError:  # it cannot be said, for a path that is too long
            _take_away(where, name, identity(os.fstat(descriptor)))
            raise
        _take_away(where, name, identity(os.fstat(descriptor)))
        raise ChangedUnderfoot(self._opened.literal)

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
        _rename_new(directory, temporary, where, name)
        self._temporary = None

    def _make_directory(self, parent: int, name: bytes) -> _Made:
        os.mkdir(name, 0o777, dir_fd=parent)
        try:
            return _Made(parent, name, self._hold(platform.open_made(parent, name)))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EXDEV):
                raise ChangedUnderfoot(self._opened.literal) from error
            _remove_empty(parent, name)
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
            platform.link_nameless(descriptor, directory, self._name_temporary(directory))
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
        try:
            in_place = platform.name_of(directory) == self._expected
            right = in_place and self._is_decided(directory, temporary)
        except OSError:
            self._take_back(descriptor, directory, temporary, name)
            raise
        if not right:
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
        temporary, probe = self._temporary, temporary_name()
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
            _rename_new(directory, temporary, directory, name)
        except FileExistsError:
            return
        self._temporary = None

    def _drop_temporary(self, directory: int) -> None:
        if self._temporary is not None:
            _discard(directory, self._temporary)


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


def _identity_at(directory: int, name: bytes) -> Identity | None:
    """None if nothing is there."""
    try:
        return identity(os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _take_away(directory: int, name: bytes, ours: Identity | None) -> None:
    """Remove a name that we made, if it still is our file: moved aside first, then looked at."""
    aside = temporary_name()
    try:
        os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    except FileNotFoundError:
        return
    if _identity_at(directory, aside) != ours:
        try:
            _rename_new(directory, aside, directory, name)
            return
        except FileExistsError:
            pass  # replaced once more: what we moved aside would be gone by now
    _discard(directory, aside)


def _rename_new(source: int, name: bytes, directory: int, new: bytes) -> None:
    """Rename to a name that is free. FileExistsError if it is not; where the system has no such
    call there is a gap between the look and the rename (docs/policy.md)."""
    try:
        platform.rename_new(source, name, directory, new)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        if _identity_at(directory, new) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=directory)


def _discard(directory: int, name: bytes) -> None:
    """Remove a file, or an empty directory; what cannot be removed is left for a person."""
    try:
        os.unlink(name, dir_fd=directory)
    except IsADirectoryError:
        _remove_empty(directory, name)
    except OSError:
        pass


def _remove_empty(parent: int, name: bytes) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        pass


def _remove_made(made: list[_Made]) -> None:
    """Remove directories that were made, innermost first; one that is not empty stays."""
    for each in reversed(made):
        if _identity_at(each.parent, each.name) == identity(os.fstat(each.handle)):
            try:
                os.rmdir(each.name, dir_fd=each.parent)
            except OSError:
                return
