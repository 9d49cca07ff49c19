"""What becomes of calls, handed over to the record; nothing where none is kept."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pinfold.audit.entry import Entry, Trace
from pinfold.calls import Asking, Cancelled
from pinfold.paths.errors import WouldBlock
from pinfold_protocol.errors import RpcError, ToolError

if TYPE_CHECKING:
    from pinfold.audit.log import Log
    from pinfold.audit.recorder import Recorder


class Records:
    """The record of one connection. `recorder`: None where none is kept; `path`: where it is, also
    where somebody else keeps it."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.path: str | None = None

    def begin(self, log: "Log", report: Callable[[str], None] | None) -> None:
        """From now on calls are recorded there; without `report`, by others alone."""
        from pinfold.audit.recorder import Recorder

        self.path = log.path
        self.recorder = None if report is None else Recorder(log, report)

    def recording(self, session_id: str, name: str, trace: Trace | None = None) -> "_Recording":
        """To be entered around a call: what becomes of it is recorded."""
        return _Recording(self, session_id, name, trace or Trace())

    def add(self, session_id: str, name: str, traces: Iterable[Trace], outcome: str) -> None:
        """A line for each path that a call named."""
        for trace in traces:
            trace.outcome = outcome
            if self.recorder is not None:
                self.recorder.record(Entry(session_id, name, trace))

    def place(self) -> str | None:
        """Where the record really is now: no session may write there."""
        if self.path is None:
            return None
        directory, base = os.path.split(self.path)
        return os.path.join(os.path.realpath(directory), base)

    def close(self, seconds: float) -> None:
        """What is to be recorded is written, as far as that takes no longer."""
        if self.recorder is not None:
            self.recorder.close(seconds)


class _Recording:
    """Records what becomes of a call, exactly once; nothing where it has not begun."""

    def __init__(self, records: Records, session_id: str, name: str, trace: Trace) -> None:
        self._records = records
        self._session_id = session_id
        self._name = name
        self._trace = trace

    def __enter__(self) -> Trace:
        return self._trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: object
    ) -> None:
        if isinstance(error, WouldBlock | Asking | RpcError):
            return
        outcome = self._trace.outcome
        if error is not None:
            failed = f"failed:{error.kind if isinstance(error, ToolError) else 'internal'}"
            outcome = "cancelled" if isinstance(error, Cancelled) else failed
        self._records.add(self._session_id, self._name, [self._trace], outcome)
