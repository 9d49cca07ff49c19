"""What can block runs here: pools of threads, and how much may be under way at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pinfold.doors.order import heed
from pinfold.doors.wire import CONGESTED, Wire

_WORKERS = 64
_SESSION_WORKERS = 64
_ABANDONED = 448
"""How many further threads may be stuck in work that nobody waits for any more."""
_ANSWER_BYTES = 256 * 1024
_BEHIND_BYTES = 1 << 20
"""A host that leaves more than this unread is behind: each call then counts as an answer of
`_ANSWER_BYTES` to come, and all of them must fit below `CONGESTED`."""

Begun = list[asyncio.Future[Any]]
"""Has the future of a work while its thread is at it, which may be longer than the request is."""


class Workers:
    """The threads of one connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(_WORKERS + _ABANDONED, thread_name_prefix="pinfold")
        # A slow directory must not keep sessions from being opened.
        self._session_pool = ThreadPoolExecutor(_SESSION_WORKERS, thread_name_prefix="session")
        self._upstream_pool: ThreadPoolExecutor | None = None
        self._running = 0
        self._abandoned = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        wire.on_drained = self._admit

    def for_session(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run what a session message does, where a slow directory keeps nobody else waiting."""
        return self._loop.run_in_executor(self._session_pool, work)

    async def run(self, work: Callable[[], Any], begun: Begun | None = None) -> Any:
        """Run on the pool, when there is room: nothing is begun while the host is far behind."""
        from pinfold.calls import Cancelled

        await self._room()
        self._running += 1
        counted = True

        def no_longer_counts() -> None:
            nonlocal counted
            if counted:
                counted = False
                self._running -= 1
                self._loop.call_soon(self._admit)  # after the answer has been queued

        def done(_: Any) -> None:
            self._abandoned -= not counted
            no_longer_counts()

        running = self._start(self._pool, work, begun)
        running.add_done_callback(done)
        try:
            return await asyncio.shield(running)
        except Cancelled:
            raise asyncio.CancelledError from None
        except asyncio.CancelledError:  # its thread goes on, and may be stuck for ever
            if not running.done() and self._abandoned < _ABANDONED:
                self._abandoned += 1
                no_longer_counts()
            raise
        finally:
            del running  # an error that it has leads to this frame

    async def run_upstream(self, work: Callable[[], Any], begun: Begun | None = None) -> Any:
        """The same for work that another process does, and may never end: it takes no room from
        other work. A thread whose call was cancelled hears of that."""
        from pinfold.calls import Cancelled

        await self._room()
        if self._upstream_pool is None:
            self._upstream_pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="upstream")
        running = self._start(self._upstream_pool, work, begun)
        try:
            return await asyncio.shield(running)
        except Cancelled:
            raise asyncio.CancelledError from None
        finally:
            del running

    def _start(
        self, pool: ThreadPoolExecutor, work: Callable[[], Any], begun: Begun | None
    ) -> "asyncio.Future[Any]":
        running = self._loop.run_in_executor(pool, work)
        running.add_done_callback(heed)
        if begun is not None:
            begun.append(running)
            running.add_done_callback(begun.remove)
        return running

    async def _room(self) -> None:
        """Wait until there is room for one more."""
        if self._waiting or not self._has_room():
            place: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(place)
            await place

    def _has_room(self) -> bool:
        expected = self._wire.queued + self._running * _ANSWER_BYTES
        behind = self._wire.queued > _BEHIND_BYTES
        return self._running < _WORKERS and (not behind or expected <= CONGESTED)

    def _admit(self) -> None:
        """Wake up the first that waits, if there is room; it counts as running when it does."""
        while self._waiting and self._has_room():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                break
        if self._waiting and self._has_room():
            self._loop.call_soon(self._admit)
