"""The interface: bytes in, bytes out, of a CheckedPath and nothing else."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from pinfold.paths.opened import CheckedPath
from pinfold.policy.facts import Identity


class Backend(Protocol):
    """Where bytes come from and go to. Every method may block, and raises ToolError,
    ChangedUnderfoot or Cancelled; then nothing was changed."""

    def read(self, path: CheckedPath, max_bytes: int, *, cached: bool = False) -> bytes:
        """The whole content of a regular file of at most `max_bytes`.

        With `cached`, raises WouldBlock where that would have to wait.
        """

    def chunks(self, path: CheckedPath) -> AbstractContextManager[Iterator[bytes]]:
        """The content of a regular file of any size, piece by piece."""

    def replace(self, path: CheckedPath, data: bytes) -> Identity | None:
        """Make `data` the whole content, creating the file and its parents where missing. Returns
        the identity that the file has now."""
