"""The language service at the door: which feature is asked for, on what, and when."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pygls.lsp.server import LanguageServer

from pinfold.doors.lsp.client import Client
from pinfold.doors.lsp.documents import Documents
from pinfold.doors.order import heed
from pinfold.doors.rpc import Request
from pinfold_protocol.session import EditorSession, SessionOpenParams

if TYPE_CHECKING:
    from pinfold.doors.native import Native


class Service:
    """Everything runs on the loop's thread; what may block is sent to the pool."""

    def __init__(
        self, native: "Native", server: LanguageServer, client: Client, documents: Documents
    ) -> None:
        self._native = native
        self._server = server
        self._client = client
        self._documents = documents
        self._request: Request | None = None
        self._session_id = ""

    def open(self, wanted: EditorSession | None) -> None:
        """Open the editor's own session. What names it later waits until it is open."""
        session = wanted or EditorSession()
        root = session.project_root or self._client.folder or os.getcwd()
        self._session_id = session.session_id
        params = SessionOpenParams(
            session.profile,
            root,
            session.session_id,
            session.scope,
            session.memory,
            rules=session.rules,
        )
        request = Request(0, "session/open")
        request.session_id = session.session_id
        opening = self._native.open_session(request, params)
        opening.add_done_callback(self._opened)

    def _opened(self, opening: "asyncio.Future[object]") -> None:
        heed(opening)

    @contextmanager
    def serving(self, request: Request) -> Iterator[None]:
        """While a feature is begun."""
        self._request = request
        try:
            yield
        finally:
            self._request = None

    def end(self) -> None:
        """The connection ends."""
