"""One bounded walk through a root: names, links, several names of one file. Nothing is followed."""

import os
import stat
import time
from collections.abc import Callable

import msgspec

from pinfold.paths.literal import decode, encode
from pinfold.paths.opened import identity
from pinfold.policy.facts import Identity
from pinfold.policy.names import RESERVED, same


class Limits(msgspec.Struct, frozen=True):
    """How far a look at one root goes: entries that are listed, links that are followed, files
    with several names that are remembered, seconds."""

    entries: int = 250_000
    links: int = 2_000
    linked: int = 50_000
    seconds: float = 5.0


LIMITS = Limits()


class Linked(msgspec.Struct, frozen=True):
    """A file with several names: how many it has in all, and those that were found."""

    links: int
    names: list[str]


class Census(msgspec.Struct):
    """What lies in a root, by real paths. `pinned_*`: in the reserved directory.
    `listed`: the listing has `pinned`, letter by letter."""

    entries: int = 0
    documents: int = 0
    listed: bool = False
    links: list[str] = msgspec.field(default_factory=list)
    aliases: list[str] = msgspec.field(default_factory=list)
    nested: list[str] = msgspec.field(default_factory=list)
    linked: dict[Identity, Linked] = msgspec.field(default_factory=dict)
    pinned_linked: dict[Identity, Linked] = msgspec.field(default_factory=dict)
    directories: dict[Identity, str] = msgspec.field(default_factory=dict)
    pinned_directories: dict[Identity, str] = msgspec.field(default_factory=dict)
    unreadable: list[str] = msgspec.field(default_factory=list)
    pinned_unreadable: list[str] = msgspec.field(default_factory=list)
    other_volumes: list[str] = msgspec.field(default_factory=list)
    stopped: str | None = None


class _Directory(msgspec.Struct, frozen=True):
    path: str
    depth: int
    pinned: bool


class _Stop(Exception):
    """A limit is reached; the text says which."""


def take(
    real: str,
    guarded: bool,
    reserved: tuple[str, ...] = (),
    limits: Limits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> Census:
    """Walk through the root at a real path. `guarded`: it has a reserved directory, and
    `reserved` are the real paths of what that leads to, where it is a link."""
    return _Walk(real, guarded, reserved, limits, clock).run()


class _Walk:
    def __init__(
        self,
        real: str,
        guarded: bool,
        reserved: tuple[str, ...],
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self._census = Census()
        self._guarded = guarded
        self._reserved = frozenset(reserved)
        self._limits = limits
        self._clock = clock
        self._end = clock() + limits.seconds
        self._todo = [_Directory(path, 1, True) for path in reserved]
        self._todo.append(_Directory(real, 0, False))
        self._seen: set[str] = set()
        self._device: int | None = None

    def run(self) -> Census:
        try:
            while self._todo:
                self._list(self._todo.pop())
        except _Stop as stop:
            self._census.stopped = str(stop)
        return self._census

    def _list(self, directory: _Directory) -> None:
        if directory.path in self._seen:
            return
        self._seen.add(directory.path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            opened = os.open(encode(directory.path), flags)
        except OSError:
            self._failed(directory)
            return
        try:
            if self._enter(directory, os.fstat(opened)):
                with os.scandir(opened) as entries:
                    for entry in entries:
                        self._entry(directory, entry)
        except OSError:
            self._failed(directory)
        finally:
            os.close(opened)

    def _failed(self, directory: _Directory) -> None:
        census = self._census
        lost = census.pinned_unreadable if directory.pinned else census.unreadable
        lost.append(directory.path)

    def _enter(self, directory: _Directory, status: os.stat_result) -> bool:
        """Whether to list it: another volume, which may be slow or endless, is only named."""
        if not directory.depth:
            self._device = status.st_dev
        elif directory.path in self._reserved:
            return True
        elif self._device is not None and status.st_dev != self._device and not directory.pinned:
            self._census.other_volumes.append(directory.path)
            return False
        return True

    def _entry(self, directory: _Directory, entry: "os.DirEntry[str]") -> None:
        census = self._census
        census.entries += 1
        if census.entries > self._limits.entries:
            raise _Stop(f"after {self._limits.entries:,} entries")
        if not census.entries % 256 and self._clock() > self._end:
            raise _Stop(f"after {self._limits.seconds:g} seconds")
        name = decode(os.fsencode(entry.name))
        path = f"{directory.path.rstrip('/')}/{name}"
        first = directory.depth == 0
        reserved = self._guarded and first and same(name, RESERVED)
        if reserved and name != RESERVED:
            census.aliases.append(path)
        census.listed = census.listed or (reserved and name == RESERVED)
        pinned = directory.pinned or reserved or path in self._reserved
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return  # it has just vanished
        self._sort(_Directory(path, directory.depth + 1, pinned), name, status)

    def _sort(self, found: _Directory, name: str, status: os.stat_result) -> None:
        census = self._census
        if stat.S_ISLNK(status.st_mode):
            if len(census.links) < self._limits.links:
                census.links.append(found.path)
            else:
                census.stopped = f"after {self._limits.links:,} links"
        elif stat.S_ISDIR(status.st_mode):
            if not found.pinned and same(name, RESERVED):
                census.nested.append(found.path)
            self._remember(found, status)
            self._todo.append(found)
        elif stat.S_ISREG(status.st_mode):
            census.documents += found.pinned
            self._count_names(found, status)

    def _remember(self, found: _Directory, status: os.stat_result) -> None:
        here, census = identity(status), self._census
        table = census.pinned_directories if found.pinned else census.directories
        if here is not None:
            table.setdefault(here, found.path)

    def _count_names(self, found: _Directory, status: os.stat_result) -> None:
        here = identity(status)
        if here is None or status.st_nlink < 2:
            return
        census = self._census
        table = census.pinned_linked if found.pinned else census.linked
        if here in table or len(table) < self._limits.linked:
            table.setdefault(here, Linked(status.st_nlink, [])).names.append(found.path)
        else:
            census.stopped = f"after {self._limits.linked:,} files with several names"
