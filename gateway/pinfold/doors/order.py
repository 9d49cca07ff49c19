"""Order among overlapping requests: what waits for whom. Everything runs on the loop's thread."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from pinfold_protocol.errors import RpcError, kept


class Lane:
    """The messages that name one session, in order, while a session message is under way.

    `project` is the project root that the session has, or is about to have; `upstream` whether it
    is, or will be, in front of one.
    """

    def __init__(self, project: str | None, *, upstream: bool = False) -> None:
        self.project = project
        self.upstream = upstream
        self.waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()


class Lanes:
    """The lanes of all sessions that have a session message under way. `place_of` tells the project
    root of an open session, and whether it is in front of an upstream; None for any other."""

    def __init__(self, place_of: "Callable[[str], tuple[str, bool] | None]") -> None:
        self._place_of = place_of
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[str, Lane] = {}
        self._messages: set[asyncio.Future[Any]] = set()

    def get(self, session_id: str) -> Lane | None:
        """The lane of a session; None where nothing needs to wait."""
        return self._lanes.get(session_id)

    def in_order(self, session_id: str | None, start: Callable[[], Any]) -> Any:
        """Start now, or when the session messages before it have taken effect: a future then."""
        lane = None if session_id is None else self._lanes.get(session_id)
        if lane is None:
            return start()
        place: asyncio.Future[Any] = self._loop.create_future()
        place.add_done_callback(heed)  # whoever asked may be gone by then
        lane.waiting.append((place, start))
        return place

    def message(
        self,
        session_id: str | None,
        work: Callable[[], Coroutine[Any, Any, Any]],
        project: str | None = None,
        *,
        upstream: bool = False,
    ) -> "asyncio.Future[Any]":
        """Run a session message: what names the session later waits until it has taken effect.
        `project` and `upstream`: of the session that it opens."""
        if project is not None and session_id in self._lanes:
            lane = self._lanes[session_id]  # what arrives from now on belongs to it
            lane.project, lane.upstream = project, upstream

        def start() -> Any:
            if session_id is not None:
                self._lanes[session_id] = self._lane(session_id, project, upstream)
            task = asyncio.ensure_future(work())
            task.add_done_callback(lambda _: self._leave(session_id))
            return task

        future: asyncio.Future[Any] = self.in_order(session_id, start)
        self._messages.add(future)
        future.add_done_callback(self._messages.discard)
        return future

    def pending(self) -> "list[asyncio.Future[Any]]":
        """The session messages that have not taken effect yet."""
        return list(self._messages)

    def _lane(self, session_id: str, project: str | None, upstream: bool) -> Lane:
        """For a session that is about to be opened there, else for the one that there is."""
        known = self._place_of(session_id)
        if project is not None or known is None:
            return Lane(project, upstream=upstream)
        return Lane(known[0], upstream=known[1])

    def _leave(self, session_id: str | None) -> None:
        """A session message has taken effect: start what waited for it, in order."""
        lane = None if session_id is None else self._lanes.pop(session_id, None)
        while lane is not None and lane.waiting and session_id not in self._lanes:
            place, start = lane.waiting.popleft()
            if place.cancelled():
                continue
            try:
                resolve(place, start())
            except Exception as error:  # noqa: BLE001 - handed on to whoever asked
                fail(place, error)
        if lane is not None and lane.waiting and session_id is not None:
            self._lanes[session_id].waiting.extend(lane.waiting)
            now = self._lanes[session_id]
            now.project, now.upstream = lane.project, lane.upstream


class Turn:
    """A place in the queues of changes to some directories. It is over when the work is, and when
    all turns before it are."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *previous: "Turn | None") -> None:
        self.previous = [each.over for each in previous if each is not None]
        self.over: asyncio.Future[None] = loop.create_future()

    def leave(self, work: "asyncio.Future[Any] | None") -> None:
        """The call was answered; its work may go on in a thread, or may never have begun."""
        for pending in (work, *self.previous):
            if pending is not None and not pending.done():
                pending.add_done_callback(lambda _: self.leave(work))
                return
        if not self.over.done():
            self.over.set_result(None)


def heed(future: "asyncio.Future[Any]") -> None:
    """Look at how a future ended: one that nobody looks at is logged by the loop."""
    if not future.cancelled():
        future.exception()


def fail(place: "asyncio.Future[Any]", error: Exception) -> None:
    """Hand an error on; the traceback only of one that will be logged, since it leads back to here,
    where the place is."""
    place.set_exception(kept(error) if isinstance(error, RpcError) else error)


def resolve(place: "asyncio.Future[Any]", started: Any) -> None:
    """Let a future end as what was started does."""
    if not isinstance(started, Awaitable):
        place.set_result(started)
        return
    task = asyncio.ensure_future(started)

    def hand_on(_: Any) -> None:
        heed(task)
        if place.done():
            return
        if task.cancelled():
            place.cancel()
        elif error := task.exception():
            place.set_exception(error)
        else:
            place.set_result(task.result())

    task.add_done_callback(hand_on)
    place.add_done_callback(lambda _: task.cancel() if place.cancelled() else None)
