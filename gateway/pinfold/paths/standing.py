"""What a path led to last time, if it still does: a look costs less than finding out anew.

The roots are looked at for every call. What was found is held by a descriptor, so that its inode
is not given to anything else; the next look asks the kernel where the path leads now, and whether
what is held still has its name. Only where all of it is as it was is the old answer given again.

Every call asks for itself, and after it has opened its own path. So there is a moment at which a
root was where the call found it and the call's file had the name that was opened: the file had it
before, and has it still (`Opened.stands`, or the check of a tag). An answer that calls share, also
for the shortest time, has no such moment: a root may leave a directory, and then a file come there.
"""

import os
from _thread import allocate_lock  # a hook starts for every call, and threading costs much

from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import encode
from pinfold.paths.opened import Opened

MOST = 16
"""Paths that are held; each costs a descriptor."""


class _Held:
    """A descriptor that is closed when nobody has it any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class _Found:
    """What a path led to: something that exists, or names that are missing from it. It is held, and
    `seat` says what is mounted there and which file it is. `opened` has no descriptors of its own,
    and is given to all who ask: what it says is what is found to hold."""

    def __init__(self, path: str, opened: Opened, descriptor: int, seat: tuple[int, ...]) -> None:
        assert opened.real is not None
        missing = opened.missing
        self.plain = encode(path) if opened.real == path else None
        """The whole path, if nothing on its way was a link."""
        above, real = (_without(each, len(missing)) for each in (path, opened.real))
        self._held = _Held(os.dup(descriptor))
        self._path, self._real = encode(above), encode(real)
        self._seat = seat
        self._missing = encode(missing[0]) if missing else None
        self.opened = Opened(opened.literal, opened.real, missing=missing, held=self._held)
        if missing:
            self.opened.parent = self._held.descriptor
        else:
            self.opened.target = self._held.descriptor
            self.opened.status = os.fstat(self._held.descriptor)
        self._local = False

    def holds(self, cached: bool) -> bool:
        """Whether the path leads there now, under the same name, and what was missing still is.
        Raises WouldBlock."""
        if cached and not self._local:  # what has the same seat is in the same mount, which is held
            platform.require_local(self._held.descriptor)
            self._local = True
        if self._path != self._real:
            if not self._is_led_to(cached):
                return False
        elif platform.seat_at(self._path, cached) != self._seat:
            return False
        missing = self._missing
        return missing is None or not platform.is_there(self._held.descriptor, missing)

    def _is_led_to(self, cached: bool) -> bool:
        """By links on the way."""
        try:
            handle = platform.open_resolved(self._path, cached)
        except WouldBlock:
            raise
        except OSError:
            return False
        try:
            seat = platform.seat_of(handle, cached)
        finally:
            os.close(handle)
        return seat == self._seat and platform.name_of(self._held.descriptor) == self._real


class Standing:
    """Remembers the last few paths that were looked at, while it is awake. Thread-safe."""

    def __init__(self) -> None:
        self._awake = False
        self._found: dict[str, _Found] = {}
        self._lock = allocate_lock()

    def again(self, path: str, *, cached: bool = False) -> Opened | None:
        """What an absolute path led to, if that still holds; None where it must be found out anew.

        With `cached`, raises WouldBlock where that would have to wait.
        """
        found = self._found.get(path)
        return found.opened if found is not None and found.holds(cached) else None

    def is_plain(self, path: str) -> bool:
        """Whether an absolute path that is remembered has no link on its way, now as then, be it
        there or not: it is its own real path, which is all that most reads need to know. For reads
        that are answered in place; raises WouldBlock."""
        found = self._found.get(path)
        return found is not None and found.plain is not None and platform.is_plain(found.plain)

    def wake(self) -> None:
        """From now on, remember."""
        self._awake = True

    def rest(self) -> None:
        """Remember nothing any more: a volume that is not used can be taken away."""
        with self._lock:
            self._awake = False
            self._found.clear()

    def keep(self, path: str, opened: Opened) -> None:
        """Remember what `walk.glance` found."""
        descriptor = opened.parent if opened.missing else opened.target
        if not self._awake:
            return
        if descriptor is None or opened.real is None or opened.literal != path:
            return
        if tuple(path.split("/")[len(path.split("/")) - len(opened.missing) :]) != opened.missing:
            return  # a link leads to where nothing is, and the link may go
        try:
            seat = platform.seat_of(descriptor, cached=False)
            if seat is None:
                return
            found = _Found(path, opened, descriptor, seat)
        except OSError:
            return
        with self._lock:
            if not self._awake:
                return
            self._found.pop(path, None)
            self._found[path] = found
            if len(self._found) > MOST:
                del self._found[next(iter(self._found))]


def _without(path: str, count: int) -> str:
    """A path without its last names."""
    return "/".join(path.split("/")[: -count or None]) or "/"
