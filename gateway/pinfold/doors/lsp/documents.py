"""The open documents, for every thread: what an editor shows right now, saved or not."""

import os
import threading
import time
from collections.abc import Callable

import msgspec

from pinfold.doors.lsp.client import path_of
from pinfold.paths.literal import encode
from pinfold.paths.opened import identity
from pinfold.policy.facts import Identity
from pinfold.text.positions import Encoding


class Document(msgspec.Struct, frozen=True):
    """One open document at one version. `text` is the editor's, with its line endings; `path` is
    what its URI names, as text, None where that is no file of this machine; `encoding`: what the
    editor counts columns in. `lost`: a change came that could not be understood, so `text` is not
    what the editor shows; it ends with the next whole text."""

    uri: str
    path: str | None
    version: int | None
    text: str
    encoding: Encoding
    language: str = ""
    lost: bool = False


Listener = Callable[[Document | None, Document | None], None]
"""What was, and what is now: None before a document is opened, and after it is closed."""


class Documents:
    """Documents by URI, as it was spelled when they were opened: each spelling that is open is a
    document of its own, with its own text, until it is closed. Changes come on the loop's thread,
    in order; anyone may look and wait."""

    def __init__(self) -> None:
        self._open: dict[str, Document] = {}
        self._listeners: list[Listener] = []
        self.on_save: Callable[[Document], None] = lambda document: None
        self._changes = 0
        self._ended = False
        self.changed = threading.Condition()

    def listen(self, listener: Listener) -> None:
        """Be told of every change from now on, on the thread that makes it."""
        self._listeners.append(listener)

    def put(self, document: Document) -> None:
        """A document was opened, or is another text, or another version now."""
        with self.changed:
            before = self._open.get(document.uri)
            self._open[document.uri] = document
            self._changes += 1
            self.changed.notify_all()
        for listener in self._listeners:
            listener(before, document)

    def remove(self, uri: str) -> None:
        """A document was closed; one that is not open is none of our business."""
        with self.changed:
            before = self._find(uri)
            if before is not None:
                del self._open[before.uri]
            self._changes += 1
            self.changed.notify_all()
        if before is not None:
            for listener in self._listeners:
                listener(before, None)

    def save(self, uri: str) -> None:
        """The editor has saved a document; one that is not open is none of our business."""
        found = self.get(uri)
        if found is not None:
            self.on_save(found)

    def lose(self, uri: str) -> None:
        """A change of a document was missed."""
        found = self.get(uri)
        if found is not None:
            self.put(msgspec.structs.replace(found, lost=True))

    def end(self) -> None:
        """The connection ends: nobody waits any longer."""
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def all(self) -> list[Document]:
        """A copy, in the order in which they were opened."""
        with self.changed:
            return list(self._open.values())

    def get(self, uri: str) -> Document | None:
        """The document with this URI, or else the only one whose URI is another spelling of it."""
        with self.changed:
            return self._find(uri)

    def find_path(self, real: str | None, file: Identity | None = None) -> Document | None:
        """The document behind a file: the one whose URI names the real path, or leads to the same
        file by whatever name. May block. Links that cannot be followed lead nowhere."""
        return next(iter(self.behind(real, file)), None)

    def behind(self, real: str | None, file: Identity | None = None) -> list[Document]:
        """All documents behind a file, as `find_path` finds one, the best first."""
        documents = [each for each in self.all() if each.path is not None]
        found = [each for each in documents if each.path == real]
        for document in documents if file is not None else ():
            if document not in found and _identity_at(document.path or "") == file:
                found.append(document)
        return found

    def wait(self, wanted: Callable[[], bool], seconds: float) -> bool:
        """Look now and after every change of a document, until it is as wanted or the time is
        over; then, and when the connection ends, once more: whether it is. `wanted` may block,
        and nobody waits for it. Never on the loop's thread."""
        deadline = time.monotonic() + seconds
        while True:
            with self.changed:
                seen = self._changes
            if wanted():
                return True
            if not self._changed_since(seen, deadline):
                return wanted()

    def _changed_since(self, seen: int, deadline: float) -> bool:
        """Wait for a change: False where none came in time, and when the connection ends."""
        with self.changed:
            left = max(0, deadline - time.monotonic())
            self.changed.wait_for(lambda: self._ended or self._changes != seen, left)
            return self._changes != seen and not self._ended and time.monotonic() < deadline

    def _find(self, uri: str) -> Document | None:
        if uri in self._open:
            return self._open[uri]
        path = path_of(uri)
        found = [each for each in self._open.values() if each.path == path is not None]
        return found[0] if len(found) == 1 else None


def _identity_at(path: str) -> Identity | None:
    try:
        return identity(os.stat(encode(path)))
    except (OSError, ValueError):
        return None
