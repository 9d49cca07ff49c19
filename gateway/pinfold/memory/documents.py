"""What documents lie below a memory root: a walk on descriptors, from the root's own on.

Each directory is opened relative to the one above it, and no link is followed on the way; so what
is listed is below the root, whatever is exchanged meanwhile. Of each file only the beginning is
read. Something that cannot be looked at is reported, and hides nothing else.
"""

import errno
import os
import stat
from collections.abc import Callable
from typing import Protocol

import msgspec

from pinfold.paths.errors import describe
from pinfold.paths.kernel import platform
from pinfold.paths.literal import MAX_BYTES, encode
from pinfold.paths.opened import Opened, identity
from pinfold.paths.walk import walk
from pinfold.policy.confinement import managed
from pinfold.policy.facts import Identity, RootFacts, Step, Target, Way
from pinfold.text.frontmatter import INDEX_NAME, Topic, read_topic

MOST_NAMES = 200_000
"""How many names below one root are looked at."""

_SUFFIX = ".md"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HEAD, _MORE = 4096, 64 * 1024
_KEPT_OPEN = 16
"""How many directories on the way down stay open, so that depth costs no descriptors."""

_LEAVES = "it is a link that leaves its root, and is not followed"
_NOT_REGULAR = "it is not a regular file"
_PLAIN_WORDS = {
    errno.ELOOP: "it was exchanged for a link while it was listed",
    errno.ENOTDIR: "it was exchanged while it was listed",
    errno.ENXIO: _NOT_REGULAR,
    errno.EAGAIN: "another program holds it",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
}


class Level(msgspec.Struct, eq=False):
    """A directory on the way. `relative`: its path from the root on, with a slash at the end
    (empty for the root); `room`: how many bytes of a path are left for a name in it; `todo`: names
    of directories in it that are still to be listed; `pinned`: whether it is, once asked."""

    relative: str
    handle: int | None
    identity: Identity | None
    way: Way
    target: Target
    room: int
    todo: list[str] = msgspec.field(default_factory=list)
    pinned: bool | None = None


class Found(msgspec.Struct, eq=False):
    """A valid topic. `size` in bytes, `modified` in nanoseconds since the epoch; `linked` is where
    a link leads."""

    level: Level
    name: str
    topic: Topic
    size: int
    modified: int
    identity: Identity | None
    linked: Target | None = None

    @property
    def relative(self) -> str:
        """Its path from the root on."""
        return self.level.relative + self.name

    @property
    def target(self) -> Target:
        """The facts that the policy needs."""
        above = self.level.target
        way = (*self.level.way, Step(self.name, self.identity))
        return self.linked or Target(
            f"{above.literal}/{self.name}", f"{above.real}/{self.name}", ways=(way,)
        )


class Listener(Protocol):
    """Who hears what a walk meets."""

    def found(self, document: Found) -> None:
        """A valid topic."""

    def skipped(self, relative: str, reason: str) -> None:
        """Something that is none; `relative` is its path from the root on."""


class Scanner:
    """One walk below one root. `roots` are all of them, `elsewhere` the directories of the others:
    what lies in those is theirs. `readable` says of a target (and whether it is a directory)
    whether the session may read it; what it may not read is neither opened nor told of."""

    def __init__(
        self,
        root: RootFacts,
        roots: tuple[RootFacts, ...],
        elsewhere: frozenset[Identity],
        readable: Callable[[Target, bool], bool] | None,
        listener: Listener,
    ) -> None:
        assert root.real is not None
        self._root = root
        self._real = root.real.rstrip("/")
        self._path = root.path.rstrip("/")
        self._roots = roots
        self._elsewhere = elsewhere
        self._readable = readable
        self._listener = listener
        self._names = 0
        self._levels: list[Level] = []
        self.full = False

    def run(self, root: Opened) -> None:
        """List everything. Raises nothing for what it meets below the root."""
        assert root.target is not None
        try:
            handle = platform.reopen(root.target, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            self._failed("", error)
            return
        try:
            self._enter("", self._path.rpartition("/")[2], handle)
            while self._levels:
                level = self._levels[-1]
                if level.todo and not self.full:
                    self._descend(level, level.todo.pop())
                else:
                    self._leave()
        finally:
            for level in self._levels:
                _close(level)

    # Directories

    def _enter(self, relative: str, name: str, handle: int) -> None:
        found = identity(os.fstat(handle))
        above = self._levels[-1].way if self._levels else ()
        way = (*above, Step(name, found))
        target = msgspec.structs.replace(self._place(relative[:-1]), ways=(way,))
        room = MAX_BYTES - len(encode(f"{self._path}/{relative}"))
        level = Level(relative, handle, found, way, target, room)
        self._levels.append(level)
        if len(self._levels) > _KEPT_OPEN + 1:  # the root's stays open
            _close(self._levels[-1 - _KEPT_OPEN])
        self._list(level, handle)
        level.todo.sort(reverse=True)

    def _descend(self, level: Level, name: str) -> None:
        relative = f"{level.relative}{name}"
        assert level.handle is not None
        try:
            handle = os.open(encode(name), _DIRECTORY, dir_fd=level.handle)
        except OSError as error:
            self._failed(relative, error, directory=True)
            return
        if identity(os.fstat(handle)) in self._elsewhere:
            os.close(handle)
            return
        self._enter(f"{relative}/", name, handle)

    def _leave(self) -> None:
        """Back to the directory above."""
        left = self._levels.pop()
        above = self._levels[-1] if self._levels else None
        if above is not None and above.handle is None:
            above.handle = self._opened_again(above, left)
            if above.handle is None and above.todo:
                above.todo.clear()
                self._skip(above.relative, "it was moved while it was listed", directory=True)
        _close(left)

    def _opened_again(self, level: Level, below: Level) -> int | None:
        """A directory that was closed: by `..`, and where that leads elsewhere by now, by its names
        from the root on. None where neither leads to the same one."""
        root = self._levels[0].handle
        ways = ((below.handle, [".."]), (root, level.relative.split("/")[:-1]))
        for start, way in ways:
            try:
                handle = None if start is None else _follow(start, way)
            except OSError:
                continue
            if handle is not None and identity(os.fstat(handle)) == level.identity:
                return handle
            if handle is not None:
                os.close(handle)
        return None

    def _list(self, level: Level, handle: int) -> None:
        try:
            with os.scandir(handle) as entries:
                for entry in entries:
                    self._names += 1
                    if self._names > MOST_NAMES:
                        self.full = True
                        break
                    self._meet(level, handle, entry)
        except OSError as error:
            self._failed(level.relative, error, directory=True)

    # Entries

    def _meet(self, level: Level, handle: int, entry: "os.DirEntry[str]") -> None:
        name = entry.name
        wanted = name.endswith(_SUFFIX) and name != INDEX_NAME
        try:
            if wanted and entry.is_file(follow_symlinks=False):
                if (name.isascii() and len(name) <= level.room) or self._can_be_named(level, name):
                    self._file(level, handle, name)
            elif entry.is_dir(follow_symlinks=False):
                if self._can_be_named(level, name):
                    level.todo.append(name)
                    if wanted:
                        self._skip(level.relative + name, "it is a directory")
            elif entry.is_symlink():
                if self._can_be_named(level, name):
                    self._link(level, name, wanted)
            elif wanted:
                self._skip(level.relative + name, _NOT_REGULAR)
        except OSError as error:
            self._failed(level.relative + name, error)

    def _can_be_named(self, level: Level, name: str) -> bool:
        """Whether a call could name it; what is in a directory that none can name is not listed."""
        try:
            os.fsencode(name).decode("utf-8")
        except UnicodeDecodeError:
            self._skip(level.relative + name, "its name is not UTF-8, and no call can name it")
            return False
        if len(encode(name)) > level.room:
            reason = f"its path is over {MAX_BYTES} bytes, and no call can name it"
            self._skip(level.relative + name, reason)
            return False
        return True

    def _file(self, level: Level, directory: int, name: str) -> None:
        if self._readable and not self._readable(self._place(level.relative + name), False):
            return
        handle = os.open(encode(name), _FILE, dir_fd=directory)
        try:
            self._read(level, name, handle)
        finally:
            os.close(handle)

    def _read(self, level: Level, name: str, handle: int, linked: Target | None = None) -> None:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            self._listener.skipped(level.relative + name, _NOT_REGULAR)
            return
        topic = topic_of(handle)
        if isinstance(topic, str):
            self._listener.skipped(level.relative + name, topic)
        else:
            size, modified = status.st_size, status.st_mtime_ns
            found = Found(level, name, topic, size, modified, identity(status), linked)
            self._listener.found(found)

    # Links

    def _link(self, level: Level, name: str, wanted: bool) -> None:
        """A link to a file is followed as long as it stays in its root. One to a directory is not:
        if it stays, what is there is listed under its own name."""
        relative = level.relative + name
        if self._readable and not self._readable(self._place(relative), False):
            return
        with walk(f"{self._real}/{relative}") as opened:
            if opened.real is not None and managed(opened.real, self._roots) != self._root.kind:
                self._listener.skipped(relative, _LEAVES)
            elif wanted:
                self._linked(level, name, opened)

    def _linked(self, level: Level, name: str, opened: Opened) -> None:
        relative = level.relative + name
        if opened.real is None:
            self._listener.skipped(relative, "it is a link that cannot be followed")
        elif opened.target is None or opened.status is None:
            self._listener.skipped(relative, "it is a link to nothing")
        elif stat.S_ISDIR(opened.status.st_mode):
            self._listener.skipped(relative, "it is a link to a directory")
        elif not stat.S_ISREG(opened.status.st_mode):
            self._listener.skipped(relative, _NOT_REGULAR)
        else:
            self._read_linked(level, name, opened, opened.target)

    def _read_linked(self, level: Level, name: str, opened: Opened, target: int) -> None:
        place = msgspec.structs.replace(
            opened.as_target(), literal=f"{self._path}/{level.relative}{name}"
        )
        if self._readable and not self._readable(place, False):
            return
        handle = platform.reopen(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            self._read(level, name, handle, place)
        finally:
            os.close(handle)

    # What is told

    def _place(self, relative: str) -> Target:
        """Something below the root by name, as it is configured and as it really is."""
        if not relative:
            return Target(self._path or "/", self._real or "/")
        return Target(f"{self._path}/{relative}", f"{self._real}/{relative}")

    def _failed(self, relative: str, error: OSError, *, directory: bool = False) -> None:
        if error.errno == errno.ENOENT:  # it has gone meanwhile
            return
        reason = _PLAIN_WORDS.get(error.errno or 0) or describe(error.errno)
        self._skip(relative, reason, directory=directory)

    def _skip(self, relative: str, reason: str, *, directory: bool = False) -> None:
        relative = relative.rstrip("/")
        if self._readable is None or self._readable(self._place(relative), directory):
            self._listener.skipped(relative, reason)


def topic_of(handle: int) -> Topic | str:
    """The topic in an open file, of which only the beginning is read, or why it is none. Raises
    OSError."""
    head = os.read(handle, _HEAD)
    topic = read_topic(head, whole=False)
    while topic is None:
        more = os.read(handle, _MORE)
        head += more
        topic = read_topic(head, whole=not more)
    return topic


def _close(level: Level) -> None:
    if level.handle is not None:
        os.close(level.handle)
        level.handle = None


def _follow(start: int, way: list[str]) -> int:
    """Open a directory by names, from another one on. Raises OSError."""
    handle = os.dup(start)
    for name in way:
        try:
            below = os.open(encode(name), _DIRECTORY, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle
