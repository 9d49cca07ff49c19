"""What a path led to when it was opened, the descriptors that prove it, and who may pass on."""

import errno
import os
import stat
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

import msgspec

from pinfold.paths.errors import ChangedUnderfoot, describe, from_errno
from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode
from pinfold.policy import names
from pinfold.policy.facts import Identity, Target, Way
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import ToolError

NO_MEANS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Errors that say nothing of what is there: it could not be looked at this time."""


def identity(status: os.stat_result) -> Identity | None:
    """Device and inode; inode 0 is no identity."""
    return (status.st_dev, status.st_ino) if status.st_ino else None


class Closing:
    """What is given back at the end of a `with`."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give back what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Opened(Closing, msgspec.Struct, eq=False):
    """A path, opened by descriptors that grant nothing. Close it when the call ends.

    `target` and `status` are None where nothing is there; `missing` are then the names that are
    not, the first of them in the directory `parent`. `parent` is None where only the target was
    opened. A target that is a symbolic link is one of the kernel's own that leads to no file with a
    name, and was not followed. `problem` is the errno that stopped the resolution at `stopped`, the
    beginning of the path as it was written; `real` is then None. `passed`: every directory that a
    walk was in, also those that a link led out of again. `held` is whatever must stay as long as
    this: descriptors that are not its own.
    """

    literal: str
    real: str | None = None
    walked: str | None = None
    ways: tuple[Way, ...] = ()
    target: int | None = None
    status: os.stat_result | None = None
    parent: int | None = None
    name: str = ""
    missing: tuple[str, ...] = ()
    directory_wanted: bool = False
    problem: int | None = None
    stopped: str | None = None
    passed: set[Identity] = msgspec.field(default_factory=set)
    descriptors: list[int] = msgspec.field(default_factory=list)
    held: object = None

    def close(self) -> None:
        """Give the descriptors back."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    @property
    def nameless(self) -> bool:
        """Whether it is a pipe, a socket or the like that only the kernel's own link leads to."""
        return self.status is not None and stat.S_ISLNK(self.status.st_mode)

    def failure(self) -> ToolError | None:
        """What stopped the resolution, and where; None if nothing did."""
        if self.problem is None:
            return None
        where = self.stopped or self.literal
        if self.problem != errno.ENOTDIR:
            return from_errno(self.problem, where)
        message = f"{where}: this part of the path leads to no directory. Check the path."
        return ToolError("not-found", message)

    def as_target(self) -> Target:
        """The facts that the policy needs."""
        problem = None if self.problem is None else describe(self.problem)
        return Target(self.literal, self.real, self.walked, problem, self.ways)

    @property
    def parent_identity(self) -> Identity | None:
        """Device and inode of `parent`."""
        return None if self.parent is None else identity(os.fstat(self.parent))

    @property
    def key(self) -> tuple[object, ...]:
        """What changes to this file queue up under: its directory's identity, its folded name."""
        leaf = (self.name,) if self.target is not None else self.missing
        return (self.parent_identity, *(tuple(sorted(names.folds(each))) for each in leaf))

    def require_same(self, again: "Opened") -> None:
        """Raise ChangedUnderfoot unless `again` found the same thing at the same place, and OSError
        where it could not look."""
        again.require_means()
        if self._fingerprint() != again._fingerprint():
            raise ChangedUnderfoot(self.literal)

    def require_means(self) -> None:
        """Raise OSError where it is only this process that could not look."""
        if self.problem in NO_MEANS:
            raise OSError(self.problem, os.strerror(self.problem), self.literal)

    def _fingerprint(self) -> tuple[object, ...]:
        return (
            self.real,
            self.problem,
            self.missing,
            self.parent_identity,
            None if self.status is None else (*snapshot(self.status), self.status.st_ctime_ns),
        )

    def still_named(self) -> bool:
        """Whether the kernel's name for the target still is the one that was decided on."""
        if self.target is None:
            return False
        return decode(platform.name_of(self.target)) == self.real

    def stands(self) -> bool:
        """As `still_named`, also for what is missing: its nearest directory then. What cannot be
        resolved cannot move."""
        handle = self.parent if self.missing else self.target
        if handle is None or self.real is None:
            return True
        named = names.split(decode(platform.name_of(handle)))
        return (*named, *self.missing) == names.split(self.real)


def snapshot(status: os.stat_result) -> tuple[int, ...]:
    """What tells one state of a file from another: identity, size, time of change."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


Publishing = Callable[[], AbstractContextManager[None]]
_key = object()


class CheckedPath:
    """An opened path together with the decision that let it through. Only `check` makes one.

    `publishing` opens and decides once more, and raises unless the outcome is the same; what is
    done inside of it can no longer be cancelled. `sweep`: whether what a killed writer left in the
    target's directory may be removed (never in a reserved directory).
    """

    __slots__ = ("decision", "opened", "publishing", "sweep")

    def __init__(
        self,
        key: object,
        opened: Opened,
        decision: Decision,
        publishing: Publishing,
        sweep: bool,
    ) -> None:
        if key is not _key:
            raise TypeError("a CheckedPath is made by paths.opened.check alone")
        self.opened = opened
        self.decision = decision
        self.publishing = publishing
        self.sweep = sweep


def _never() -> AbstractContextManager[None]:
    raise PermissionError("a path that was opened to be read is not written")


def check(
    opened: Opened, decision: Decision, publishing: Publishing = _never, *, sweep: bool = False
) -> CheckedPath:
    """The only maker of a CheckedPath. Raises PermissionError unless the decision allows."""
    if decision.decision != "allow":
        raise PermissionError(decision.reason)
    return CheckedPath(_key, opened, decision, publishing, sweep)
