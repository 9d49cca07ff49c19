"""The recorder: calls hand entries over and go on; a thread of its own writes them.

No disk can hold a call up: what cannot be written waits in bounded memory, what has no room there
is counted, and a line says how many are missing as soon as one can be written.
"""

import threading
from collections import deque
from collections.abc import Callable

from pinfold.audit.entry import Entry
from pinfold.audit.line import line_of, lost_line
from pinfold.audit.log import Log

ROOM = 4096
"""How many entries may wait."""
_BATCH = 256
_RETRY = 2.0
"""Seconds until a file that could not be written is tried again."""
_GATHER = 0.05
"""Seconds to gather entries for: a thread that woke up for each would slow the calls down."""
CLOSE_SECONDS = 1.0


class Recorder:
    """One file's recorder. `record` may be called from any thread, and never waits or raises.

    `report` gets what a person should know, each thing once: kinds of trouble, never contents.
    """

    def __init__(
        self,
        log: Log,
        report: Callable[[str], None],
        *,
        room: int = ROOM,
        retry: float = _RETRY,
    ) -> None:
        self._retry = retry
        self._log = log
        self._report = report
        self._room = room
        self._reported: set[str] = set()
        self._changed = threading.Condition()
        self._waiting: deque[Entry] = deque()
        self._lost = 0
        self._idle = True
        self._closing = False
        self._hurried = 0
        self._thread: threading.Thread | None = None

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._log.path

    def record(self, entry: Entry) -> None:
        """Hand an entry over; it counts as lost where there is no room for it."""
        with self._changed:
            if self._closing or len(self._waiting) >= self._room:
                self._lost += 1
                return
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="record", daemon=True)
                self._thread.start()
            if self._idle:
                self._idle = False
                self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until all is written, at most so long. Whether it is."""
        with self._changed:
            self._hurried += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._idle, seconds)
            finally:
                self._hurried -= 1

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """The end: what waits is written, tried once more where there was trouble. Whether all
        of it is there; after `seconds` nobody waits any longer."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            whole = self._changed.wait_for(lambda: self._idle, seconds)
            missing = len(self._waiting) + self._lost
            thread = self._thread
        if whole and thread is not None:
            thread.join(seconds)
        if missing:
            self._tell("lines of it are lost at the end")
        return whole and not missing

    # On the thread

    def _run(self) -> None:
        try:
            while self._work():
                pass
        finally:
            self._log.close()

    def _work(self) -> bool:
        """Wait for entries and write them. False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._lost or self._closing)
            self._changed.wait_for(lambda: self._hurried or self._closing, _GATHER)
            last = self._closing
            batch, lost = list(self._waiting), self._lost
            self._waiting.clear()
            self._lost = 0
        whole = self._write(batch) and self._write_lost(lost)
        with self._changed:
            self._waiting.extendleft(reversed(batch))
            self._lost += 0 if whole else lost
            self._idle = last or not (self._waiting or self._lost)
            self._changed.notify_all()
            if not whole:
                self._changed.wait_for(lambda: self._closing, self._retry)
        return not last

    def _write(self, batch: list[Entry]) -> bool:
        """Write the entries, and take them out of the list. False where some are left."""
        while batch:
            lines = [line_of(entry) for entry in batch[:_BATCH]]
            done = self._append(lines)
            if not done:
                return False
            del batch[:done]
        return True

    def _write_lost(self, count: int) -> bool:
        return not count or bool(self._append([lost_line(count)]))

    def _append(self, lines: list[bytes]) -> int:
        """How many of the lines are written: none where there is trouble."""
        try:
            return self._log.append(lines)
        except OSError as error:
            why = error.strerror or type(error).__name__
            self._tell(f"it cannot be written ({why}); calls go on, and lines may be lost")
            return 0
        finally:
            if self._log.vanished:
                self._log.vanished = False
                self._tell("somebody removed it; it begins anew")

    def _tell(self, what: str) -> None:
        if what not in self._reported:
            self._reported.add(what)
            self._report(f"the record: {what}")
