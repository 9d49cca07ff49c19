"""Open buffers in front of the disk: what an editor has open is read and changed there.

A document belongs to a file when its URI leads to that very file, by whatever links. Its text is
told as the bytes that saving it would write. Where the disk has changed since and the document has
nothing unsaved, the disk is what counts, and only the person at the editor can bring both together.

An edit is sent for one version of a document and then believed by its outcome alone (`settle`):
what the document's next versions show. Nothing is ever taken back: what came out wrong is said,
since somebody may have typed there.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import msgspec

from pinfold.backends.base import Reading, Written
from pinfold.backends.buffers import Buffers, Document
from pinfold.backends.local import CACHED_BYTES, LocalBackend, require_regular, too_large
from pinfold.backends.settle import Seconds, settle
from pinfold.paths.errors import ChangedUnderfoot, WouldBlock, reraise
from pinfold.paths.opened import CheckedPath, Opened, identity
from pinfold.paths.walk import glance
from pinfold.text.codec import Decoded, decode, new_file
from pinfold.text.intent import intend
from pinfold.text.rendering import Rendering, same_text
from pinfold_protocol.errors import ToolError, ToolErrorKind

_ANY_SIZE = 1 << 62
_FEW = 32
"""How many open documents may be looked for in place, without a thread of its own."""
_OLDER = "it was changed on disk, and the editor still shows what was there before"


class _Seen(msgspec.Struct, frozen=True):
    """What a file with an open document holds. `rendering` is None where the document does not
    count; the content says then what stands against changing the file."""

    content: Reading
    rendering: Rendering | None = None


class EditorBackend:
    """Documents that are open, and the disk for all other files (see Backend)."""

    def __init__(self, disk: LocalBackend, buffers: Buffers, seconds: Seconds) -> None:
        self._disk = disk
        self._buffers = buffers
        self._seconds = seconds

    def read(
        self,
        path: CheckedPath,
        max_bytes: int,
        *,
        cached: bool = False,
        encoding: str | None = None,
    ) -> Reading:
        """The document's text as it would be saved, else the disk's."""
        document = self._document(path.opened, cached=cached)
        if document is None:
            return self._disk.read(path, max_bytes, cached=cached)
        if cached and len(document.text) > CACHED_BYTES:
            raise WouldBlock
        content = self._see(path, document, max_bytes, encoding, cached=cached).content
        if len(content.data) > max_bytes:
            raise too_large(path.opened.literal, len(content.data), max_bytes)
        return content

    @contextmanager
    def chunks(self, path: CheckedPath) -> Iterator[Iterator[bytes]]:
        """What is on disk; refused where an editor has unsaved changes to so large a file."""
        document = self._document(path.opened)
        if document is not None and document.unsaved:
            problem = "it has unsaved changes, and is too large for that. Save it first"
            raise _refused(path, "backend", problem)
        with self._disk.chunks(path) as chunks:
            yield chunks

    def replace(
        self,
        path: CheckedPath,
        data: bytes,
        old: Reading | None,
        *,
        encoding: str | None = None,
    ) -> Written:
        """An edit of the document, else of the disk, unless the file is opened meanwhile."""
        document = self._document(path.opened)
        if document is None:
            if old is not None and old.uri is not None:  # it was closed meanwhile
                raise ChangedUnderfoot(path.opened.literal)
            return self._disk.replace(path, data, old, last_look=lambda: self._require_shut(path))
        seen = self._see(path, document, _ANY_SIZE, encoding)
        if old is None or not seen.content.is_still(old):
            raise ChangedUnderfoot(path.opened.literal)
        if seen.rendering is None:
            assert seen.content.refusal is not None
            raise seen.content.refusal
        self._require_only_name(path, document)
        return self._edit(path, document, seen.rendering, data)

    def _edit(
        self, path: CheckedPath, document: Document, rendering: Rendering, data: bytes
    ) -> Written:
        intent = intend(document.text, rendering.text(data))
        if not intent.splices:
            problem = "only its line endings would change, and the editor has one for all of it"
            _refuse(path, "backend", problem)
        with path.publishing():
            if not document.is_still(self._document(path.opened)):
                raise ChangedUnderfoot(path.opened.literal)
            with self._buffers.edit(document, intent.splices) as pending:
                outcome = settle(intent, pending, self._seconds())
                error = outcome.error(path.opened.literal)
                if error is not None:
                    pending.withdraw()
            if error is not None and outcome.untouched:
                raise error  # so that it is not taken as published
        if error is not None:
            raise error
        status = path.opened.status
        found = None if status is None else identity(status)
        kept = rendering.saved(outcome.text)
        return Written(found, "buffer", outcome.version, None if kept == data else kept)

    # What is open

    def _document(self, opened: Opened, *, cached: bool = False) -> Document | None:
        """The document behind a file, as it is now. Raises ToolError `backend` where several that
        differ are, or where what the editor shows is not known."""
        documents = self._buffers.documents()
        if opened.real is None or not documents:
            return None
        if cached and len(documents) > _FEW:
            raise WouldBlock
        found = [
            each for each in documents if _leads_to(each.path, opened, cached=cached) is not None
        ]
        if not found:
            return None
        if any(each.lost for each in found):
            message = "a change in the editor was not understood; what it shows is not known. "
            message += "Close it there, and open it again"
            raise ToolError("backend", f"{opened.literal}: {message}.", applied=False)
        if any(each.text != found[0].text for each in found):
            message = f"it is open in the editor as {_names(found)}, with different texts. "
            message += "Close all but one"
            raise ToolError("backend", f"{opened.literal}: {message}.", applied=False)
        return found[0]

    def _require_shut(self, path: CheckedPath) -> None:
        if self._document(path.opened) is not None:
            raise ChangedUnderfoot(path.opened.literal)

    def _require_only_name(self, path: CheckedPath, document: Document) -> None:
        """An edit is decided on by the name that the editor will save under, and made in the only
        document of its file."""
        same = [
            each
            for each in self._buffers.documents()
            if _leads_to(each.path, path.opened) is not None
        ]
        if len(same) > 1:
            problem = f"it is open in the editor more than once: {_names(same)}. Close all but one"
            _refuse(path, "backend", problem)
        if _leads_to(document.path, path.opened) == "identity":
            problem = f"the editor has it open under another name, {document.path}: change that"
            _refuse(path, "backend", problem)

    def _see(
        self,
        path: CheckedPath,
        document: Document,
        max_bytes: int,
        encoding: str | None,
        *,
        cached: bool = False,
    ) -> _Seen:
        opened = path.opened
        if opened.status is None:
            return self._shown(path, document, new_file("", encoding))
        require_regular(opened, opened.literal)
        disk = self._disk.read(path, max_bytes, cached=cached)
        file = decode(disk.data, encoding)
        if file.undecodable:
            message = f"it has bytes that are no valid {file.encoding}, which no editor can tell. "
            message += "Close it there"
            return _on_disk(disk, _refused(path, "undecodable", message))
        if same_text(file.text, document.text):
            self._buffers.same_as_disk(document, opened.status.st_ctime_ns)
        elif not document.unsaved and opened.status.st_ctime_ns >= document.since:
            note = "[This is what is on disk; the editor shows an older text.]"
            why = _refused(path, "stale", f"{_OLDER}. Reload it there first")
            return _on_disk(msgspec.structs.replace(disk, note=note), why)
        return self._shown(path, document, file)

    def _shown(self, path: CheckedPath, document: Document, file: Decoded) -> _Seen:
        rendering = Rendering.of(file, document.opened, document.text)
        try:
            data = rendering.saved(document.text)
        except ToolError as error:
            why = error.message.removesuffix(".")
            problem = f"the text in the editor cannot be saved in its encoding: {why}"
            _refuse(path, "undecodable", problem)
        content = Reading(data, "buffer", document.version, document.uri)
        return _Seen(content, rendering)


def _on_disk(disk: Reading, why: ToolError) -> _Seen:
    return _Seen(msgspec.structs.replace(disk, refusal=why))


def _leads_to(path: str, opened: Opened, *, cached: bool = False) -> str | None:
    """`path` or `identity`, where a document's path leads to the file that was opened. Raises
    ToolError where that cannot be said, since a buffer might be missed."""
    try:
        with glance(path, cached=cached) as found:
            found.require_means()
            if found.real is not None and found.real == opened.real:
                return "path"
            if found.status is None or opened.status is None:
                return None
            same = identity(found.status) == identity(opened.status) is not None
            return "identity" if same and stat.S_ISREG(found.status.st_mode) else None
    except ToolError:  # a path that is none leads nowhere
        return None
    except OSError as error:
        reraise(error, opened.literal)


def _names(documents: list[Document]) -> str:
    return " and ".join(each.path for each in documents)


def _refused(path: CheckedPath, kind: ToolErrorKind, problem: str) -> ToolError:
    message = f"{path.opened.literal}: {problem}. Nothing was changed."
    return ToolError(kind, message, applied=False)


def _refuse(path: CheckedPath, kind: ToolErrorKind, problem: str) -> NoReturn:
    raise _refused(path, kind, problem)
