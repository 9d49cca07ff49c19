"""Moving a file to a name that is free, in one step, from one decided place to another.

As with a change of its bytes: everything is opened and decided once more under locks on both
directories, the rename is exclusive and relative to descriptors, and what it did is looked at
afterwards; if that is not what was decided, it is undone.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from pinfold.backends.locks import DirectoryLocks
from pinfold.paths.errors import ChangedUnderfoot, from_errno, reraise
from pinfold.paths.kernel import platform
from pinfold.paths.literal import encode
from pinfold.paths.opened import CheckedPath, Opened, identity
from pinfold.policy.names import join, split
from pinfold_protocol.errors import ToolError


class Movement:
    """One move of one file. `publishing` opens and decides both ends once more, and raises unless
    the outcome is the same."""

    def __init__(
        self,
        source: CheckedPath,
        target: CheckedPath,
        locks: DirectoryLocks,
        publishing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._source = source.opened
        self._target = target.opened
        self._locks = locks
        self._publishing = publishing
        self._held = ExitStack()

    def run(self) -> None:
        """Move. Raises ToolError or ChangedUnderfoot; then nothing was moved."""
        _require_movable(self._source, self._target)
        try:
            with self._held:
                self._move()
        except FileNotFoundError as error:
            raise ChangedUnderfoot(self._source.literal) from error
        except FileExistsError as error:
            raise ChangedUnderfoot(self._target.literal) from error
        except OSError as error:
            if error.errno == errno.EXDEV:
                name = self._target.literal
                raise ToolError(
                    "io", f"{name}: it is on another volume, where nothing can be moved. Copy it."
                ) from error
            reraise(error, self._target.literal)

    def _move(self) -> None:
        source, target = self._open(self._source.parent), self._open(self._target.parent)
        places = {identity(os.fstat(each)): each for each in (source, target)}
        with ExitStack() as locked:
            for here in sorted(places, key=repr):
                locked.enter_context(self._locks.hold(places[here], self._source.literal))
            with self._publishing():
                self._rename(source, target)
            for each in places.values():
                _sync(each)

    def _open(self, handle: int | None) -> int:
        assert handle is not None
        opened = platform.reopen(handle, os.O_RDONLY | os.O_DIRECTORY)
        self._held.callback(os.close, opened)
        return opened

    def _rename(self, source: int, target: int) -> None:
        *parents, leaf = map(encode, self._target.missing)
        name = encode(self._source.name)
        made: list[tuple[int, bytes]] = []
        where = target
        try:
            for parent in parents:
                os.mkdir(parent, 0o777, dir_fd=where)
                made.append((where, parent))
                where = platform.open_made(where, parent)
                self._held.callback(os.close, where)
            platform.rename_new(source, name, where, leaf)
            if not self._in_place(source, where, leaf):
                platform.rename_new(where, leaf, source, name)
                raise ChangedUnderfoot(self._source.literal)
        except BaseException:
            for above, each in reversed(made):
                _remove_empty(above, each)
            raise
        if where != target:
            _sync(where)

    def _in_place(self, source: int, where: int, leaf: bytes) -> bool:
        """Whether what was moved is the file that was decided on, and both directories still are
        where they were."""
        assert self._source.status is not None
        moved = os.stat(leaf, dir_fd=where, follow_symlinks=False)
        from_, to = split(self._source.real or "")[:-1], split(self._target.real or "")[:-1]
        return (
            identity(moved) == identity(self._source.status)
            and platform.name_of(source) == encode(join(from_))
            and platform.name_of(where) == encode(join(to))
        )


def _require_movable(source: Opened, target: Opened) -> None:
    for each in (source, target):
        if failure := each.failure():
            raise failure
    if source.status is None:
        raise from_errno(errno.ENOENT, source.literal)
    if not stat.S_ISREG(source.status.st_mode):
        raise ToolError(
            "not-a-regular-file",
            f"{source.literal}: it is not a regular file, and only those are moved.",
        )
    if target.status is not None:
        raise ToolError(
            "already-exists", f"{target.literal}: it is there already. Choose another name."
        )
    if target.directory_wanted:
        raise ToolError(
            "is-directory",
            f"{target.literal}: the path names a directory. Give the path of a file.",
        )


def _remove_empty(parent: int, name: bytes) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        pass


def _sync(directory: int) -> None:
    try:
        os.fsync(directory)
    except OSError:  # some file systems cannot
        pass
