"""The interface: bytes in, bytes out, of a CheckedPath and nothing else."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from pinfold.paths.opened import CheckedPath
from pinfold.policy.facts import Identity
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import Source


class Reading(msgspec.Struct, frozen=True):
    """What a file holds, and where that was read: `version` and `uri` are those of an editor's
    open document, None for the disk. `note`: what a reader should know of it; `refusal`: what
    stands against changing it."""

    data: bytes
    source: Source = "disk"
    version: int | None = None
    uri: str | None = None
    note: str = ""
    refusal: ToolError | None = None

    def is_still(self, other: "Reading") -> bool:
        """Whether another one has the same content, of the same place, whatever stands against
        changing it."""
        return msgspec.structs.replace(self, refusal=None) == msgspec.structs.replace(
            other, refusal=None
        )


class Written(msgspec.Struct, frozen=True):
    """Where a change went: the identity that the file has on disk now, and for an open document
    its version with the change, and the bytes as it has them where those are other ones, as in an
    editor that ends every last line."""

    identity: Identity | None
    source: Source = "disk"
    version: int | None = None
    data: bytes | None = None


class Backend(Protocol):
    """Where bytes come from and go to. Every method may block, and raises ToolError,
    ChangedUnderfoot or Cancelled; then nothing was changed, unless the error says otherwise.

    `encoding`: what a caller says the file's encoding is, None where nothing is said; for those
    that have a text and must make bytes of it.
    """

    def read(
        self,
        path: CheckedPath,
        max_bytes: int,
        *,
        cached: bool = False,
        encoding: str | None = None,
    ) -> Reading:
        """The whole content of a regular file of at most `max_bytes`.

        With `cached`, raises WouldBlock where that would have to wait.
        """

    def chunks(self, path: CheckedPath) -> AbstractContextManager[Iterator[bytes]]:
        """What is on disk of a regular file of any size, piece by piece."""

    def replace(
        self,
        path: CheckedPath,
        data: bytes,
        old: Reading | None,
        *,
        encoding: str | None = None,
    ) -> Written:
        """Make `data` the whole content, creating the file and its parents where missing. `old` is
        what was read of it for this change, None where nothing was there."""
