"""One request of ours to an upstream: who waits for it, and what becomes of it when nobody does."""

import threading
from collections.abc import Callable
from typing import Any, Literal

from pinfold_protocol.errors import ToolError

Params = dict[str, Any]
GRACE_SECONDS = 2.0
"""How long the answer to a change that was cancelled after it was sent is waited for."""


class GaveUp(Exception):
    """Whoever waited was cancelled before the upstream was told anything, or only reads."""


class Waiting:
    """One request of ours. `cancel` may come from any thread, before or after it was sent."""

    def __init__(
        self, *, changing: bool = False, on_progress: Callable[[Params], None] | None = None
    ) -> None:
        self.changing = changing
        self.on_progress = on_progress
        self.state: Literal["new", "queued", "sent", "over"] = "new"
        self.cancelled = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self.withdraw: Callable[[], None] = lambda: None

    def queued(self) -> bool:
        """It may be sent from now on. False if it was cancelled."""
        with self._changed:
            if self.cancelled:
                return False
            self.state = "queued"
            return True

    def sending(self) -> bool:
        """It is handed over now. False if nobody wants it any more."""
        with self._changed:
            if self.state != "queued" or self.cancelled:
                return False
            self.state = "sent"
            return True

    def settle(self, result: Any = None, error: BaseException | None = None) -> None:
        """The answer; a second one has no effect."""
        with self._changed:
            if self.state != "over":
                self.state, self.result, self.error = "over", result, error
                self._changed.notify_all()

    def cancel(self) -> None:
        """Nobody wants it any more: the upstream is told, if it knows of it."""
        with self._changed:
            if self.cancelled or self.state == "over":
                return
            self.cancelled = True
            sent = self.state == "sent"
            self._changed.notify_all()
        if sent:
            self.withdraw()

    def wait(self, seconds: float | None = None) -> Any:
        """The result. Raises what it failed with; GaveUp when it was cancelled and has no effect;
        and for a change that was cancelled after it was sent, ToolError."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.state == "over" or self.cancelled, seconds)
            if not done:
                raise TimeoutError
            if self.state == "sent" and self.changing:
                self._changed.wait_for(lambda: self.state == "over", GRACE_SECONDS)
            if self.state == "over":
                if self.error is not None:
                    raise self.error
                return self.result
            if self.state == "sent" and self.changing:
                self.state = "over"
                raise ToolError(
                    "backend",
                    "It was cancelled after the file server had been told to do it, and the file "
                    "server has not answered: whether it was done is not known. Read the file "
                    "before you go on.",
                )
            self.state = "over"
            raise GaveUp
