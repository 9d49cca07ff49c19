"""Order among overlapping requests: what waits for whom. Everything runs on the loop's thread."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any


class Lane:
    """The messages that name one session, in order, while a session message is under way.

    `project` is the project root that the session has, or is about to have; `upstream` whether it
    is, or will be, in front of one.
    """

    def __init__(self, project: str | None, *, upstream: bool = False) -> None:
        self.project = project
        self.upstream = upstream
        self.waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()


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
