"""Diagnostics that are pushed: for each document at most one run at a time, of its newest text, and
one more if it changed meanwhile. Editors that pull get none, or they would show them twice."""

import asyncio
from collections.abc import Awaitable, Callable

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from pinfold.doors.lsp.client import Client
from pinfold.doors.lsp.documents import Document, Documents
from pinfold.doors.order import heed
from pinfold.doors.stdio import log_exception
from pinfold_protocol.errors import RpcError

Diagnose = Callable[[str], Awaitable[list[types.Diagnostic]]]


class Publisher:
    """Everything runs on the loop's thread."""

    def __init__(
        self, server: LanguageServer, client: Client, documents: Documents, diagnose: Diagnose
    ) -> None:
        self._server = server
        self._client = client
        self._documents = documents
        self._diagnose = diagnose
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._shown: set[str] = set()
        self._ended = False
        self._refreshing: asyncio.Future[object] | None = None
        self._refresh_again = False
        documents.listen(self._document_changed)

    def _document_changed(self, before: Document | None, now: Document | None) -> None:
        if now is not None:
            self._run(now.uri)
        elif before is not None and before.uri in self._shown:
            self._publish(before.uri, None, [])

    def disk_changed(self) -> None:
        """Something was saved, or changed by another program: what is said of places and links may
        be another thing now."""
        for document in self._documents.all():
            self._run(document.uri)

    def memory_changed(self) -> None:
        """A call of this connection changed a file below a root."""
        self.disk_changed()
        if self._client.pulls and self._client.refreshes:
            self._refresh()

    def _refresh(self) -> None:
        """Let the editor pull once more; one request at a time, however much is changed."""
        if self._refreshing is not None or self._ended:
            self._refresh_again = True
            return
        self._refresh_again = False
        asked = self._server.protocol.send_request_async(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        self._refreshing = asked
        asked.add_done_callback(self._refreshed)

    def _refreshed(self, asked: "asyncio.Future[object]") -> None:
        heed(asked)
        self._refreshing = None
        if self._refresh_again:
            self._refresh()

    def end(self) -> None:
        """The connection ends."""
        self._ended = True
        for task in self._running.values():
            task.cancel()

    def _run(self, uri: str) -> None:
        if self._client.pulls or self._ended:
            return
        if uri in self._running:
            self._again.add(uri)
            return
        task = self._running[uri] = asyncio.ensure_future(self._diagnosed(uri))
        task.add_done_callback(lambda _: self._done(uri))

    async def _diagnosed(self, uri: str) -> None:
        document = self._documents.get(uri)
        try:
            found = await self._diagnose(uri)
        except RpcError:  # there is no session to look with
            return
        except Exception as error:  # noqa: BLE001 - the guard at the door: nobody waits for it
            log_exception(error, "diagnostics")
            return
        fresh = document is not None and self._documents.get(uri) is document
        if document is not None and fresh and (found or uri in self._shown):
            self._publish(uri, document.version, found)

    def _done(self, uri: str) -> None:
        del self._running[uri]
        if uri in self._again:
            self._again.discard(uri)
            if self._documents.get(uri) is not None:
                self._run(uri)

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        if found:
            self._shown.add(uri)
        else:
            self._shown.discard(uri)
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, found, version)
        )
