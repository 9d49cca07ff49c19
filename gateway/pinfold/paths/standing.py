"""What a path led to last time, if it still does: a look costs less than finding out anew.

The roots are looked at for every call. What was found is held by a descriptor, so that its inode
is not given to anything else; the next look asks the kernel where the path leads now, and whether
what is held still has its name. Only where all of it is as it was is the old answer given again.
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
        self.seen = -1
        """The moment in which it held last."""

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
        self._moment = 0
        self._found: dict[str, _Found] = {}
        self._lock = allocate_lock()

    def again(self, path: str, *, cached: bool = False) -> Opened | None:
        """What an absolute path led to, if that still holds; None where it must be found out anew.

        With `cached`, raises WouldBlock where that would have to wait; and what was seen since the
        request came is not looked at again: it is for reads that are answered in place.
        """
        found = self._found.get(path)
        if found is None:
            return None
        moment = self._moment  # before it is looked at
        if not (cached and found.seen == moment):
            if not found.holds(cached):
                return None
            found.seen = moment
        return found.opened

    def arrived(self) -> None:
        """Something has come from the host: what it asks now is answered by what is seen from now
        on. Requests that came together share what one look finds."""
        self._moment += 1

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
