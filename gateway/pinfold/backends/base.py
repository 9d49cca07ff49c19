"""The interface: bytes in, bytes out, of a CheckedPath and nothing else."""

from typing import Protocol

import attrs

from pinfold.paths.opened import CheckedPath


@attrs.frozen
class Stored:
    """A file's bytes as they were read."""

    data: bytes


class Backend(Protocol):
    """Where bytes come from and go to. Every method may block, and raises ToolError,
    ChangedUnderfoot or Cancelled; then nothing was changed."""

    def read(self, path: CheckedPath, max_bytes: int, *, cached: bool = False) -> bytes:
        """The whole content of a regular file of at most `max_bytes`.

        With `cached`, raises WouldBlock where that would have to wait.
        """

    def replace(self, path: CheckedPath, data: bytes) -> None:
        """Make `data` the whole content, creating the file and its parents where missing."""
