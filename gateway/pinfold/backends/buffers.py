"""What the editor backend asks of an editor: which documents are open, and to change one.

`doors/lsp` speaks to real editors; `tests/editors_in_dicts.py` has some that live in a dict.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

import msgspec

from pinfold.text.codec import Splice

Reply = Literal["applied", "refused"]


class Document(msgspec.Struct, frozen=True):
    """An open document at one version. `path` is what its URI names, as text.

    `opened` is its text when it was opened or saved last, or was seen to be that of the disk, and
    `since` when that was (nanoseconds, by the clock that the times of files are taken from).
    `lost`: `text` is not what the editor shows, since a change was not understood.
    """

    uri: str
    path: str
    version: int | None
    text: str
    opened: str
    since: int
    lost: bool = False

    def is_still(self, other: "Document | None") -> bool:
        """Whether another one is what the editor shows here, whatever it showed before."""
        if other is None:
            return False
        before = {"opened": self.opened, "since": self.since}
        return msgspec.structs.replace(other, **before) == self

    @property
    def unsaved(self) -> bool:
        """Whether it has changes that the disk never had, as far as can be known."""
        return self.text != self.opened


class Progress(msgspec.Struct, frozen=True):
    """What has happened since an edit was sent, or since the last look: later versions of the
    document, in order; what the editor has replied so far, in whose own words (`reason`); and
    whether nothing more will come, since the document or the connection is closed."""

    versions: tuple[Document, ...] = ()
    reply: Reply | None = None
    reason: str = ""
    over: Literal["closed", "lost"] | None = None


class Pending(Protocol):
    """An edit that was sent to an editor."""

    def wait(self, seconds: float) -> Progress:
        """What has happened; returns early as soon as anything has."""

    def withdraw(self) -> None:
        """The editor need not do it any more, if it has not yet."""


class Buffers(Protocol):
    """One editor's open documents. Thread-safe."""

    def documents(self) -> Sequence[Document]:
        """Those that are open now and are files of this machine."""

    def same_as_disk(self, document: Document, since: int) -> None:
        """This version of a document was seen to have the text that the disk has since then."""

    def edit(
        self, document: Document, splices: tuple[Splice, ...]
    ) -> AbstractContextManager[Pending]:
        """Send an edit of exactly this version, and watch until the context ends. Raises
        ChangedUnderfoot where it is not the version any more, and ToolError `backend` where the
        editor cannot be asked; then nothing was sent."""
