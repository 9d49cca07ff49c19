"""Frames in, frames out: one reader without thread hops, and the one writer.

Reading pauses on request; what was read stays in the framer. Writing never blocks the loop: what
the host does not take yet is queued.
"""

import asyncio
import fcntl
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

from pinfold_protocol.framing import AnyFramer, Body, FramingError, Oversized

_CHUNK = 1 << 20
_LITTLE = 32 * 1024
"""Read at first: most messages are small, and a large buffer is asked of the kernel each time."""
_TURN = 64
"""Messages handled before the loop gets to do something else."""
_BATCH = 16
_SMALL = 16 * 1024
"""Messages up to this size share a buffer while they wait."""
_TOGETHER = 32 * 1024
"""Answers to messages that came together go out together, up to so many bytes."""
_F_SETPIPE_SZ = 1031
CONGESTED = 8 << 20
"""Bytes queued for the host above which no new work should be begun."""
_FULL = 4 * CONGESTED
"""And above which nothing is read any more, since even an error is an answer."""


class Wire:
    """The framed stream on two descriptors. Everything runs on the loop's thread."""

    def __init__(self, reading: int, writing: int, max_body: int) -> None:
        self._reading = reading
        self._writing = writing
        self.framer = AnyFramer(max_body)
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes | bytearray] = deque()
        self._written = 0  # of the first in the queue
        self.queued = 0
        self._paused: set[str] = set()
        self._ended = False
        self._expected = _LITTLE
        self._pumping = False
        self._blocked = False  # the host must take something first
        self._watching = False
        self._pollable = True
        self._wide = sys.platform != "linux"
        self._wanted = threading.Event()
        self.on_received: Callable[[], None] = lambda: None
        self.on_body: Callable[[bytes], None] = lambda body: None
        self.on_oversized: Callable[[Oversized], None] = lambda event: None
        self.on_broken: Callable[[str], None] = lambda why: None
        self.on_end: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_drained: Callable[[], None] = lambda: None

    # Reading

    def start(self, received: bytes = b"", unsent: bytes = b"") -> None:
        """Begin to read, after what was read already, and to write what is not sent yet."""
        if unsent:
            self._queue.append(unsent)
            self.queued = len(unsent)
            self._loop.call_soon(self._write)
        if received:
            self._loop.call_soon(self._received, received)
        try:
            self._loop.add_reader(self._reading, self._readable)
            os.set_blocking(self._reading, False)
            self._watching = True
        except PermissionError:  # a regular file cannot be polled
            self._pollable = False
            self._wanted.set()
            threading.Thread(target=self._read_in_thread, daemon=True).start()
        try:
            os.set_blocking(self._writing, False)
        except OSError:
            pass

    def pause(self, reason: str) -> None:
        """Stop reading until this reason, and every other, is gone."""
        self._paused.add(reason)
        if self._watching:
            self._loop.remove_reader(self._reading)
            self._watching = False

    def resume(self, reason: str) -> None:
        """A reason to pause is gone; go on with what has been read already."""
        if reason in self._paused:
            self._paused.remove(reason)
            if not self._paused:
                self._loop.call_soon(self._pump)

    def _readable(self) -> None:
        try:
            data = os.read(self._reading, self._expected)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._expected = _CHUNK if len(data) == self._expected else _LITTLE
        self._received(data)

    def _read_in_thread(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                data = os.read(self._reading, _CHUNK)
            except OSError:
                data = b""
            self._loop.call_soon_threadsafe(self._received, data)
            if not data:
                return

    def _received(self, data: bytes) -> None:
        if data:
            self.on_received()
            self.framer.receive(data)
        else:
            self._ended = True
        self._pump()

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            for _ in range(_TURN):
                if self._paused:
                    return
                event = self.framer.next_event()
                if event is None:
                    self._want_more()
                    return
                if isinstance(event, Body):
                    self.on_body(event.data)
                else:
                    self.on_oversized(event)
            self._loop.call_soon(self._pump)
        except FramingError as error:
            self.pause("broken")
            self.on_broken(str(error))
        finally:
            self._pumping = False
            if self._queue and not self._blocked:
                self._write()

    def _want_more(self) -> None:
        if self._ended:
            self.pause("ended")
            self.on_end()
        elif not self._pollable:
            self._wanted.set()
        elif not self._watching:
            self._loop.add_reader(self._reading, self._readable)
            self._watching = True

    # Writing

    @property
    def congested(self) -> bool:
        """Whether the host is far behind with reading."""
        return self.queued > CONGESTED

    def _widen(self) -> None:
        """Let a pipe take more at once: each time that it is full, two processes take turns."""
        self._wide = True
        try:
            fcntl.fcntl(self._writing, _F_SETPIPE_SZ, _CHUNK)
        except OSError:  # no pipe, or more than this user may have
            pass

    def send(self, body: bytes) -> None:
        """Queue one message, and write what can be written now."""
        if len(body) > _SMALL and not self._wide:
            self._widen()
        header, body, end = self.framer.encode(body)
        begun = 1 if self._written else 0
        last = self._queue[-1] if len(self._queue) > begun else None
        if len(body) > _SMALL:
            self._queue.extend(piece for piece in (header, body, end) if piece)
        elif isinstance(last, bytearray) and len(last) < _CHUNK:
            last += header + body + end
        else:
            self._queue.append(bytearray(header + body + end))
        self.queued += len(header) + len(body) + len(end)
        if not self._blocked and (not self._pumping or self.queued > _TOGETHER):
            self._write()
        if self.queued > _FULL:
            self.pause("full")

    def _write(self) -> None:
        try:
            while self._queue:
                self._wrote(self._write_some())
        except (BlockingIOError, InterruptedError):
            if not self._blocked:
                self._blocked = True
                self._loop.add_writer(self._writing, self._write)
        except OSError:
            self._queue.clear()
            self.queued = 0
            self._unblock()
            self.on_lost()
            return
        if not self._queue:
            self._unblock()
        if self.queued <= _FULL // 2:
            self.resume("full")
        self.on_drained()

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = False
            self._loop.remove_writer(self._writing)

    def _write_some(self) -> int:
        if len(self._queue) == 1 and not self._written:  # as nearly always
            return os.write(self._writing, self._queue[0])
        batch = [memoryview(self._queue[i]) for i in range(min(len(self._queue), _BATCH))]
        batch[0] = batch[0][self._written :]
        return os.writev(self._writing, batch)

    def _wrote(self, count: int) -> None:
        self.queued -= count
        self._written += count
        while self._queue and self._written >= len(self._queue[0]):
            self._written -= len(self._queue.popleft())

    def restore(self) -> None:
        """Leave the descriptors as other holders of them expect: blocking."""
        for descriptor in (self._reading, self._writing):
            try:
                os.set_blocking(descriptor, True)
            except OSError:
                pass

    async def flush(self, seconds: float) -> None:
        """Wait until everything is written, but not longer than that."""
        deadline = self._loop.time() + seconds
        while self._queue and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
