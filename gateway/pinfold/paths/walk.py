"""Opening without following: a path to descriptors, by the kernel's own meaning of each name.

`walk` goes component by component, each relative to the last; `..` goes back to where the walk
really came from, a link is read from its own descriptor, at most 40 of them, and what is missing
stays a list of names. `glance` takes the whole way in one call, for reads.
"""

import errno
import os
import stat
from collections import deque

import msgspec

from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import MAX_BYTES, decode, encode
from pinfold.paths.opened import Opened, identity
from pinfold.policy import names
from pinfold.policy.facts import Identity, Step, Way

MAX_LINKS = 40
_KEPT_OPEN = 4
"""How many directories of a walk stay open behind it."""
_MOST_MISSING = 8
"""How many missing names `glance` looks for one by one before it walks."""
_DELETED = b" (deleted)"


def glance(path: str, *, cached: bool = False, depth: int = 0) -> Opened:
    """Open what an absolute path leads to, in one call where the kernel can.

    With `cached`, raises WouldBlock where that would have to wait, for whatever reason.
    """
    try:
        handle = platform.open_resolved(encode(path), cached)
    except FileNotFoundError:
        return _glance_missing(path, cached, depth)
    except OSError:
        return walk(path)  # which finds out why
    opened = Opened(names.collapse(path), target=handle, descriptors=[handle])
    try:
        if cached:
            platform.require_local(handle)
        name = platform.name_of(handle)
        if name.startswith(b"/") and not name.endswith(_DELETED):
            opened.status = os.fstat(handle)
            opened.real = decode(name)
            return opened
    except BaseException:
        opened.close()
        raise
    opened.close()
    return _walk_unless(cached, path)


def _glance_missing(path: str, cached: bool, depth: int) -> Opened:
    """The nearest directory that exists, and the names that are missing from it."""
    above, _, name = path.rstrip("/").rpartition("/")
    if not name or name in (".", "..") or path.endswith("/") or depth == _MOST_MISSING:
        return _walk_unless(cached, path)
    opened = glance(above or "/", cached=cached, depth=depth + 1)
    try:
        if not opened.missing and opened.target is not None:
            opened.parent = opened.target
            opened.target = opened.status = None
            if platform.is_there(
                opened.parent, encode(name)
            ):  # a dangling link, or it has just appeared
                opened.close()
                return _walk_unless(cached, path)
    except BaseException:
        opened.close()
        raise
    opened.literal = names.collapse(path)
    if opened.real is not None:
        opened.real = names.join((*names.split(opened.real), name))
        opened.missing = (*opened.missing, name)
    return opened


def _walk_unless(cached: bool, path: str) -> Opened:
    if cached:
        raise WouldBlock
    return walk(path)


def walk(path: str) -> Opened:
    """Open an absolute path component by component. A failure is told in `problem`."""
    walker = _Walker(path)
    try:
        return walker.run()
    except BaseException:
        walker.opened.close()
        raise


class _Stop(msgspec.Struct, frozen=True):
    """Why a walk ends early."""

    number: int


class _Place(msgspec.Struct):
    """A directory on the way; its handle is given back when it is far enough behind."""

    name: str
    handle: int | None
    identity: Identity | None


class _Walker:
    def __init__(self, path: str) -> None:
        self.opened = Opened(names.collapse(path))
        self._given = _components(path)
        self._left = len(self._given)
        self._todo = deque(self._given)
        self._links = 0
        self._way: list[_Place] = []

    def run(self) -> Opened:
        try:
            self._enter_root()
            while self._todo:
                name = self._todo.popleft()
                # What is left of the path itself stands behind what links have put before it.
                self._left = min(self._left, len(self._todo))
                if stop := self._step(name):
                    return self._fail(stop.number)
                if self.opened.target is not None or self.opened.missing:
                    break
            return self._finish()
        except OSError as error:
            return self._fail(error.errno or errno.EIO)

    # Descriptors: only the last few directories stay open, so that depth costs none

    def _hold(self, handle: int) -> int:
        self.opened.descriptors.append(handle)
        return handle

    def _release(self, handle: int | None) -> None:
        if handle is not None:
            self.opened.descriptors.remove(handle)
            os.close(handle)

    def _here(self) -> int:
        handle = self._way[-1].handle
        assert handle is not None
        return handle

    def _enter_root(self) -> None:
        for place in self._way:
            self._release(place.handle)
        root = self._hold(platform.open_root())
        self._way = []
        self._enter("", root, identity(os.fstat(root)))

    def _enter(self, name: str, handle: int, found: Identity | None) -> None:
        self._way.append(_Place(name, handle, found))
        if found is not None:
            self.opened.passed.add(found)
        if len(self._way) > _KEPT_OPEN:
            behind = self._way[-1 - _KEPT_OPEN]
            self._release(behind.handle)
            behind.handle = None

    def _leave(self) -> None:
        """`..`: back to where the walk came from; the root's is the root."""
        if len(self._way) == 1:
            return
        left, place = self._way.pop(), self._way[-1]
        if place.handle is None:
            assert left.handle is not None
            place.handle = self._hold(platform.open_entry(left.handle, b".."))
            place.identity = identity(os.fstat(place.handle))
        self._release(left.handle)

    # Steps

    def _step(self, name: str) -> _Stop | None:
        if name == ".":
            return None
        if name == "..":
            self._leave()
            return None
        here, raw = self._here(), encode(name)
        try:
            handle = self._hold(platform.open_entry(here, raw))
        except FileNotFoundError:
            return self._missing(name)
        status = os.fstat(handle)
        if stat.S_ISLNK(status.st_mode):
            text = platform.link_text(here, raw, handle)
            if platform.is_path(here, raw, status.st_dev, text):
                self._release(handle)
                return self._follow(decode(text))
        if stat.S_ISDIR(status.st_mode):
            self._enter(name, handle, identity(status))
            return None
        if self._todo:
            return _Stop(errno.ENOTDIR)
        self.opened.target, self.opened.status, self.opened.name = handle, status, name
        return None

    def _missing(self, name: str) -> _Stop | None:
        rest = [name, *self._todo]
        if ".." in rest:
            return _Stop(errno.ENOENT)
        self.opened.directory_wanted = rest[-1] == "."
        self.opened.missing = tuple(each for each in rest if each != ".")
        return None

    def _follow(self, text: str) -> _Stop | None:
        self._links += 1
        if self._links > MAX_LINKS or len(encode(text)) > MAX_BYTES:
            return _Stop(errno.ELOOP)
        if not text:
            return _Stop(errno.ENOENT)
        if text.startswith("/"):
            self._enter_root()
        self._todo.extendleft(reversed(_components(text)))
        return None

    # The end

    def _fail(self, number: int) -> Opened:
        """Nothing was reached: nothing stays open."""
        self.opened.close()
        way = self._given[: len(self._given) - self._left]
        return Opened(self.opened.literal, problem=number, stopped=names.join(way))

    def _finish(self) -> Opened:
        opened = self.opened
        if opened.target is None and not opened.missing:
            self._end_at_directory()
        else:
            opened.parent = self._here()
        assert opened.parent is not None
        leaf = tuple(each for each in (opened.missing or (opened.name,)) if each)
        named = platform.name_of(opened.parent)
        walked = tuple(place.name for place in self._way[1:])
        kernel = names.split(decode(named))
        if not named.startswith(b"/") or (named.endswith(_DELETED) and kernel != walked):
            return self._fail(errno.ENOENT)
        tail = self._tail(leaf)
        opened.real = names.join((*kernel, *leaf))
        opened.ways = ((*(Step(place.name, place.identity) for place in self._way), *tail),)
        if kernel != walked:
            opened.walked = names.join((*walked, *leaf))
            with walk(decode(named)) as again:  # the kernel's name is a way there too
                again.require_means()
                opened.ways += tuple((*way, *tail) for way in again.ways)
        for place in self._way:
            if place.handle != opened.parent:
                self._release(place.handle)
        return opened

    def _end_at_directory(self) -> None:
        opened = self.opened
        place = self._way[-1]
        opened.target, opened.name = place.handle, place.name
        assert opened.target is not None
        opened.status = os.fstat(opened.target)
        if len(self._way) == 1:
            opened.parent = opened.target
            return
        above = self._way[-2]
        if above.handle is None:
            above.handle = self._hold(platform.open_entry(opened.target, b".."))
        opened.parent = above.handle
        self._way.pop()

    def _tail(self, leaf: tuple[str, ...]) -> Way:
        status = self.opened.status
        last = None if status is None else identity(status)
        return tuple(Step(each, last) for each in leaf)


def _components(path: str) -> list[str]:
    """The names of a path; a trailing slash counts as `.`, since it asks for a directory."""
    parts = [part for part in path.split("/") if part]
    return [*parts, "."] if path.endswith("/") and parts else parts
