"""The gateway as a process: its streams, its signals, the process that it watches, its end."""

import asyncio
import gc
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pinfold.doors import heap
from pinfold.doors.native import SETTLE_SECONDS, Native
from pinfold.doors.rpc import Rpc
from pinfold.doors.stdio import log, log_exception
from pinfold.doors.wire import Wire

if TYPE_CHECKING:
    from pinfold.doors.greeting import Greeting
    from pinfold.flags import Flags

_FLUSH_SECONDS = 0.3
_DEFAULT_MAX_MESSAGE = 64 << 20
_DESCRIPTORS = 16_384
_LEVELS = 1500
"""A message of 1,000 levels is read, and its answer written, by code that calls itself for each."""


class Process:
    """The gateway as a process: its streams, its signals, the process that it watches."""

    def __init__(
        self, reading: int, writing: int, flags: "Callable[[], Flags]", greeting: "Greeting"
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire = Wire(reading, writing, _DEFAULT_MAX_MESSAGE)
        self._native = Native(self._wire, self._watch_process, flags)
        self._rpc = Rpc(self._wire, self._native, self.stop)
        self._native.rpc = self._rpc
        self._rpc.greeted = greeting.answered
        self._greeting = greeting
        self._wire.on_lost = lambda: self.stop(1)
        self._status: asyncio.Future[int] = self._loop.create_future()
        self._stopping = False
        self._signalled = 0

    async def run(self) -> int:
        """Serve until the end; the exit status."""
        self._heed({signal.SIGTERM: 143, signal.SIGINT: 130})
        self._wire.start(self._greeting.received, self._greeting.unsent)
        status = await self._status
        try:
            await asyncio.wait_for(self._native.settle(), SETTLE_SECONDS + 0.1)
        except TimeoutError:  # a file system that does not answer: what is whole stays whole
            pass
        await self._wire.flush(_FLUSH_SECONDS)
        self._native.close()
        self._wire.restore()
        return self._signalled or status

    def _heed(self, statuses: dict[signal.Signals, int]) -> None:
        """Not by the loop's own means: before it takes a handler it wants to know whether that is
        a coroutine, for which it loads much. The pipe wakes it, also right before it waits."""
        reading, writing = os.pipe()
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)
        self._loop.add_reader(reading, os.read, reading, 64)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number, status in statuses.items():
            signal.signal(number, partial(self._heard, status))

    def _heard(self, status: int, *_: object) -> None:
        """Between any two steps of the loop's own: nothing is done here but to ask it."""
        self._loop.call_soon_threadsafe(self._signal, status)

    def _signal(self, status: int) -> None:
        self._signalled = self._signalled or status
        self.stop(status)

    def stop(self, status: int) -> None:
        """Begin to end; the first call decides the status, unless a signal comes."""
        if not self._stopping:
            self._stopping = True
            self._wire.pause("stopped")
            self._status.set_result(status)

    def _watch_process(self, process: int) -> None:
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            log("the process named in initialize is gone")
            self._loop.call_soon(self.stop, 1)
        except OverflowError:
            log("the process named in initialize cannot be one")
        except (OSError, AttributeError):  # an old kernel, or another system
            self._poll_process(process)
        else:
            self._loop.add_reader(descriptor, self.stop, 1)

    def _poll_process(self, process: int) -> None:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            self.stop(1)
            return
        except OSError:
            pass
        self._loop.call_later(1.0, self._poll_process, process)


def _allow_descriptors() -> None:
    """A call may hold a dozen descriptors, and many calls run at once."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass


def _keep_quiet() -> None:
    """Nothing but our own bounded log may write to stderr, which nobody may be reading."""
    warnings.simplefilter("ignore")
    logging.lastResort = None
    logging.raiseExceptions = False


def _log_loop_trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        log_exception(error, "in the loop")
    else:
        log("trouble in the loop")


def serve(flags: "Callable[[], Flags]", reading: int, writing: int, greeting: "Greeting") -> int:
    """Serve on two descriptors until the host is done; the exit status. `flags`: what the command
    line says of the one session of an MCP connection.

    Threads may be stuck in a dead file system: whoever calls this leaves with `os._exit`.
    """

    async def main() -> int:
        return await Process(reading, writing, flags, greeting).run()

    _allow_descriptors()
    _keep_quiet()
    heap.keep()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _LEVELS))
    # Large messages make millions of objects that die with their answer; what is loaded stays.
    gc.set_threshold(100_000, 50, 50)
    gc.freeze()
    gc.enable()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_log_loop_trouble)
    return loop.run_until_complete(main())
