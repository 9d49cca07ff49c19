"""An editor's documents for the editor backend, and `workspace/applyEdit` to change one.

Edits are sent from the threads of calls; the editor's messages come on the loop's thread.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

from pinfold.backends.buffers import Document, Progress, Reply
from pinfold.doors.lsp import documents as shown
from pinfold.doors.lsp.client import Client
from pinfold.doors.questions import member
from pinfold.paths.errors import ChangedUnderfoot
from pinfold.text.codec import Splice
from pinfold.text.positions import Encoding, Positions
from pinfold_protocol.errors import RpcError, ToolError

_APPLY = "workspace/applyEdit"
_LABEL = "Edit by an agent"
# The clock that the kernel takes the times of files from, so that both can be compared: on Linux
# CLOCK_REALTIME_COARSE, which Python has no name for.
_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
_Baseline = tuple[str, int]


class EditorBuffers:
    """The open documents of one editor (see backends.buffers)."""

    def __init__(
        self, documents: shown.Documents, client: Client, ask: Callable[[str, Any], Awaitable[Any]]
    ) -> None:
        self._documents = documents
        self._client = client
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._baselines: dict[str, _Baseline] = {}
        self._pending: set[_Pending] = set()
        self._ended = False
        self._lock = threading.Lock()
        documents.listen(self._changed)
        documents.on_save = self._saved

    def documents(self) -> list[Document]:
        """Those that are open now and are files of this machine."""
        with self._lock:
            return [each for found in self._documents.all() if (each := self._known(found))]

    def same_as_disk(self, document: Document, since: int) -> None:
        """This text is what the disk has since then."""
        with self._lock:
            if document.uri in self._baselines:
                self._baselines[document.uri] = document.text, since

    @contextmanager
    def edit(self, document: Document, splices: tuple[Splice, ...]) -> Iterator["_Pending"]:
        """Send it, and watch (see backends.buffers)."""
        if not self._client.applies_edits:
            message = "The editor does not announce that it can apply edits. Nothing was changed; "
            message += "open the session with backend local."
            raise ToolError("backend", message, applied=False)
        pending = _Pending(document.uri)
        with self._watching(pending):
            if document not in self.documents():
                raise ChangedUnderfoot(document.path)
            params = self._params(document, splices)
            asked = asyncio.run_coroutine_threadsafe(self._asked(params), self._loop)
            pending.begin(asked)
            try:
                yield pending
            finally:
                pending.forget()

    def end(self) -> None:
        """Nothing more will come."""
        with self._lock:
            self._ended = True
            pending = list(self._pending)
        for each in pending:
            each.tell(Progress(over="lost"))

    @contextmanager
    def _watching(self, pending: "_Pending") -> Iterator[None]:
        with self._lock:
            if self._ended:
                message = "The editor is gone. Nothing was changed; start it again."
                raise ToolError("backend", message, applied=False)
            self._pending.add(pending)
        try:
            yield
        finally:
            with self._lock:
                self._pending.discard(pending)

    async def _asked(self, params: Any) -> Any:
        return await self._ask(_APPLY, params)

    def _params(self, document: Document, splices: tuple[Splice, ...]) -> dict[str, Any]:
        edits = text_edits(document.text, splices, self._client.encoding)
        if self._client.versioned_edits:
            name = {"uri": document.uri, "version": document.version}
            return {
                "label": _LABEL,
                "edit": {"documentChanges": [{"textDocument": name, "edits": edits}]},
            }
        return {"label": _LABEL, "edit": {"changes": {document.uri: edits}}}

    def _known(self, found: shown.Document) -> Document | None:
        if found.path is None:
            return None
        opened, since = self._baselines.get(found.uri, (found.text, _now()))
        return Document(found.uri, found.path, found.version, found.text, opened, since, found.lost)

    # On the loop's thread

    def _changed(self, before: shown.Document | None, now: shown.Document | None) -> None:
        either = now or before
        if either is None or either.path is None:  # no file of this machine
            return
        uri = either.uri
        with self._lock:
            if now is None:
                self._baselines.pop(uri, None)
            elif before is None:
                self._baselines[uri] = now.text, _now()
            known = None if now is None else self._known(now)
            watching = [each for each in self._pending if each.uri == uri]
        for each in watching:
            each.tell(Progress(over="closed") if known is None else Progress((known,)))

    def _saved(self, document: shown.Document) -> None:
        if document.path is not None:
            with self._lock:
                self._baselines[document.uri] = document.text, _now()


class _Pending:
    """One edit under way (see backends.buffers)."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._news: list[Progress] = []
        self._condition = threading.Condition()
        self._asked: Future[Any] | None = None

    def begin(self, asked: "Future[Any]") -> None:
        """The request was sent."""
        self._asked = asked
        asked.add_done_callback(self._replied)

    def forget(self) -> None:
        """Nobody looks any more. The request knows of this, and so this must not of it."""
        self._asked = None

    def tell(self, news: Progress) -> None:
        """Something happened."""
        with self._condition:
            self._news.append(news)
            self._condition.notify_all()

    def wait(self, seconds: float) -> Progress:
        """What has happened since the last look."""
        with self._condition:
            self._condition.wait_for(lambda: bool(self._news), seconds)
            return self._news.pop(0) if self._news else Progress()

    def withdraw(self) -> None:
        """The editor is told, unless it has replied."""
        if self._asked is not None:
            self._asked.cancel()

    def _replied(self, asked: "Future[Any]") -> None:
        try:
            self.tell(read_reply(asked.result()))
        except RpcError as error:
            self.tell(Progress(reply="refused", reason=error.message))
        except CancelledError:
            return


def read_reply(result: Any) -> Progress:
    """What an editor replied to `workspace/applyEdit`; anything but `applied: true` is a no."""
    reply: Reply = "applied" if member(result, "applied") is True else "refused"
    reason = member(result, "failureReason")
    return Progress(reply=reply, reason=reason if isinstance(reason, str) else "")


def text_edits(text: str, splices: tuple[Splice, ...], encoding: Encoding) -> list[dict[str, Any]]:
    """Splices of a text as LSP's text edits."""
    positions = Positions(text, encoding)

    def position(index: int) -> dict[str, int]:
        line, character = positions.at(index)
        return {"line": line, "character": character}

    return [
        {
            "range": {"start": position(each.start), "end": position(each.end)},
            "newText": each.insert,
        }
        for each in splices
    ]


def _now() -> int:
    return time.clock_gettime_ns(_CLOCK)
