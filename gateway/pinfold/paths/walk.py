"""Opening without following: a path to descriptors, by the kernel's own meaning of each name.

`walk` goes component by component, each relative to the last; `..` goes back to where the walk
really came from, a link is read from its own descriptor, at most 40 of them, and what is missing
stays a list of names. `glance` takes the whole way in one call, for reads.
"""

import errno
import os
import stat
from collections import deque

import attrs

from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import MAX_BYTES, decode, encode
from pinfold.paths.opened import Opened, identity
from pinfold.policy import names
from pinfold.policy.facts import Identity, Step, Way

MAX_LINKS = 40
_DELETED = b" (deleted)"


def glance(path: str, *, cached: bool = False) -> Opened:
    """Open what an absolute path leads to, in one call where the kernel can.

    With `cached`, raises WouldBlock where that would have to wait, for whatever reason.
    """
    try:
        handle = platform.open_resolved(encode(path), cached)
    except FileNotFoundError:
        return _glance_missing(path, cached)
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


def _glance_missing(path: str, cached: bool) -> Opened:
    """The nearest directory that exists, and the names that are missing from it."""
    above, _, name = path.rstrip("/").rpartition("/")
    if not name or name in (".", "..") or path.endswith("/"):
        return _walk_unless(cached, path)
    opened = glance(above or "/", cached=cached)
    try:
        if not opened.missing and opened.target is not None:
            opened.parent = opened.target
            opened.target = opened.status = None
            if _is_there(opened.parent, name):  # a dangling link, or it has just appeared
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


def _is_there(directory: int, name: str) -> bool:
    try:
        os.close(platform.open_entry(directory, encode(name)))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def walk(path: str) -> Opened:
    """Open an absolute path component by component. A failure is told in `problem`."""
    walker = _Walker(path)
    try:
        return walker.run()
    except BaseException:
        walker.opened.close()
        raise


@attrs.frozen
class _Stop:
    """Why a walk ends early."""

    number: int


class _Walker:
    def __init__(self, path: str) -> None:
        self.opened = Opened(names.collapse(path))
        self._todo = deque(_components(path))
        self._links = 0
        self._way: list[tuple[str, int, Identity | None]] = []
        self._enter_root()

    def _enter_root(self) -> None:
        root = platform.open_root()
        self.opened.descriptors.append(root)
        self._way = [("", root, identity(os.fstat(root)))]

    def run(self) -> Opened:
        try:
            while self._todo:
                if stop := self._step(self._todo.popleft()):
                    return self._fail(stop.number)
                if self.opened.target is not None or self.opened.missing:
                    break
            return self._finish()
        except OSError as error:
            return self._fail(error.errno or errno.EIO)

    def _step(self, name: str) -> _Stop | None:
        if name in (".", ""):
            return None
        if name == "..":
            del self._way[max(1, len(self._way) - 1) :]
            return None
        here = self._way[-1][1]
        raw = encode(name)
        try:
            handle = platform.open_entry(here, raw)
        except FileNotFoundError:
            return self._missing(name)
        self.opened.descriptors.append(handle)
        status = os.fstat(handle)
        if stat.S_ISLNK(status.st_mode):
            return self._follow(decode(platform.link_text(here, raw, handle)))
        if stat.S_ISDIR(status.st_mode):
            self._way.append((name, handle, identity(status)))
            return None
        if self._todo:
            return _Stop(errno.ENOTDIR)
        self.opened.target, self.opened.status, self.opened.name = handle, status, name
        return None

    def _missing(self, name: str) -> _Stop | None:
        rest = [name, *self._todo]
        if ".." in rest:
            return _Stop(errno.ENOENT)
        self.opened.directory_wanted = rest[-1] in (".", "")
        self.opened.missing = tuple(each for each in rest if each not in (".", ""))
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

    def _fail(self, number: int) -> Opened:
        self.opened.problem = number
        self.opened.real = self.opened.walked = self.opened.target = self.opened.status = None
        self.opened.missing = ()
        return self.opened

    def _finish(self) -> Opened:
        opened = self.opened
        if opened.target is None and not opened.missing:
            self._end_at_directory()
        else:
            opened.parent = self._way[-1][1]
        parent = opened.parent
        assert parent is not None
        leaf = opened.missing or (opened.name,)
        named = platform.name_of(parent)
        walked = tuple(step[0] for step in self._way[1:])
        kernel = names.split(decode(named))
        if not named.startswith(b"/") or (named.endswith(_DELETED) and kernel != walked):
            return self._fail(errno.ENOENT)
        opened.real = names.join((*kernel, *(each for each in leaf if each)))
        opened.ways = (self._steps(leaf),)
        if kernel != walked:
            opened.walked = names.join((*walked, *(each for each in leaf if each)))
            opened.ways += self._ways_of_name(decode(named), leaf)
        return opened

    def _end_at_directory(self) -> None:
        opened = self.opened
        name, handle, _ = self._way[-1]
        opened.target, opened.status, opened.name = handle, os.fstat(handle), name
        if len(self._way) > 1:
            self._way.pop()
        opened.parent = self._way[-1][1]

    def _steps(self, leaf: tuple[str, ...]) -> Way:
        steps = [Step(name, found) for name, _, found in self._way]
        status = self.opened.status
        last = None if status is None else identity(status)
        return (*steps, *(Step(each, last) for each in leaf if each))

    def _ways_of_name(self, named: str, leaf: tuple[str, ...]) -> tuple[Way, ...]:
        """The kernel calls the directory something else: its way there counts too."""
        with walk(named) as again:
            status = self.opened.status
            last = None if status is None else identity(status)
            tail = tuple(Step(each, last) for each in leaf if each)
            return tuple((*way, *tail) for way in again.ways)


def _components(path: str) -> list[str]:
    """The names of a path; a trailing slash counts as `.`, since it asks for a directory."""
    parts = [part for part in path.split("/") if part]
    return [*parts, "."] if path.endswith("/") and parts else parts
