"""The topics of a root for completion, where an editor asks again with every key: kept for a
moment. Only proposals may be made of it: what has to be whole, as the links that follow a move, is
looked up anew."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pinfold_protocol.decision import RootKind
from pinfold_protocol.memory import MemoryDocument

if TYPE_CHECKING:
    from pinfold.policy.facts import Effective

KEPT_SECONDS = 2.0
"""For so long a topic that another program made is not proposed."""


class Listings:
    """The last listing. Thread-safe; two threads may both look."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: tuple[Effective, RootKind, float, Sequence[MemoryDocument]] | None = None
        self._forgotten = 0
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Something has changed below a root."""
        with self._lock:
            self._kept = None
            self._forgotten += 1

    def find(
        self, effective: "Effective", kind: RootKind, look: Callable[[], Sequence[MemoryDocument]]
    ) -> Sequence[MemoryDocument]:
        """What `look` gives, or gave a moment ago under the same scope."""
        with self._lock:
            kept, forgotten = self._kept, self._forgotten
        if kept and kept[0] is effective and kept[1] == kind and self._clock() < kept[2]:
            return kept[3]
        found = look()
        with self._lock:
            if forgotten == self._forgotten:
                self._kept = effective, kind, self._clock() + KEPT_SECONDS, found
        return found
