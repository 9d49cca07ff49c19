"""The pygls language server: its registry of features and its workspace, with nothing of its
transport. Loaded after the first answer, and only for editors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.workspace import TextDocument, Workspace

from pinfold import __version__
from pinfold.doors.lsp.client import Client, path_of
from pinfold.doors.lsp.documents import Document, Documents
from pinfold.text.columns import Encoding
from pinfold.text.editable import EditableText
from pinfold_protocol import SERVER_NAME
from pinfold_protocol.errors import INTERNAL_ERROR, RpcError

Ask = Callable[[str, Any], Awaitable[Any]]
Notify = Callable[[str, Any], None]


class Buffer(TextDocument):
    """A document whose lines end as LSP says: at LF, CRLF and CR only. pygls's own also splits at
    U+2028 and others, and reads all of the text again for every change."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.edited = EditableText(self._source or "")

    @property
    def source(self) -> str:
        """All of the text."""
        return self.edited.text

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """A range, or the whole text, which editors send although they were told ranges."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            encoding = cast(Encoding, str(self.position_codec.encoding))
            self.edited.replace(
                (start.line, start.character), (end.line, end.character), change.text, encoding
            )
        else:
            self.edited = EditableText(change.text)


class Buffers(Workspace):
    """pygls's workspace, of our documents. It opens none that the editor has not opened."""

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        return Buffer(
            doc_uri,
            source=source or "",
            version=version,
            language_id=language_id,
            sync_kind=self._sync_kind,
            position_codec=self._position_codec,
        )


class MountedProtocol(LanguageServerProtocol):
    """What pygls sends goes through the connection's own envelopes; what comes is handed to it
    when it has been read."""

    connection: tuple[Ask, Notify]
    documents: Documents

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.connection[1](method, self._converter.unstructure(params))

    def send_request_async(
        self, method: str, params: Any = None, msg_id: Any = None
    ) -> "asyncio.Future[Any]":
        """Send a request; its result, in its own type. Raises RpcError."""
        return asyncio.ensure_future(self._asked(method, params))

    async def _asked(self, method: str, params: Any) -> Any:
        raw = await self.connection[0](method, self._converter.unstructure(params))
        expected = self.get_result_type(method)
        if expected is None:
            return raw
        answer = {"id": 0, "jsonrpc": "2.0", "result": raw}
        try:
            return self._converter.structure(answer, expected).result
        except Exception as error:
            message = f"the client's answer to {method} is none"
            raise RpcError(INTERNAL_ERROR, message) from error

    def _send_data(self, data: Any) -> None:
        raise RuntimeError("pygls writes nothing by itself")

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Opened, or opened once more: some editors do, and the newer text counts."""
        self.workspace.put_text_document(params.text_document)
        self._tell(params.text_document.uri)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """All changes of one message are one version. A document that is not open stays so."""
        uri = params.text_document.uri
        before = self.documents.get(uri)
        if before is None:
            return
        lost = before.lost
        for change in params.content_changes:
            lost = lost and isinstance(change, types.TextDocumentContentChangePartial)
            self.workspace.update_text_document(params.text_document, change)
        if not params.content_changes:
            self.workspace.get_text_document(uri).version = params.text_document.version
        self._tell(uri, lost=lost)

    @lsp_method(types.TEXT_DOCUMENT_DID_SAVE)
    def lsp_text_document__did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """Saved: what the editor shows is what it has written."""
        self.documents.save(params.text_document.uri)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Closed; one that is not open is none of our business."""
        self.workspace.remove_text_document(params.text_document.uri)
        self.documents.remove(params.text_document.uri)

    def open_unknown(self, uri: str) -> None:
        """A document is open, and its text is not known until the next whole one."""
        self.workspace.put_text_document(types.TextDocumentItem(uri, "", 0, ""))
        self._tell(uri, lost=True)

    def _tell(self, uri: str, *, lost: bool = False) -> None:
        buffer = self.workspace.get_text_document(uri)
        self.documents.put(
            Document(
                uri,
                path_of(uri),
                buffer.version,
                buffer.source,
                cast(Encoding, str(self.workspace.position_encoding)),
                buffer.language_id or "",
                lost,
            )
        )

    def begin(self, client: Client) -> None:
        """Instead of pygls's `initialize`, which has been answered."""
        encoding = types.PositionEncodingKind(client.encoding)
        self.client_capabilities = types.ClientCapabilities()
        self._workspace = Buffers(None, position_encoding=encoding.value)


def _strict_converter() -> Converter:
    """lsprotocol's, which would take null for the text "None", and any object for true."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    return converter


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _: Any) -> Any:
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # JSON has numbers only
        if type(value) is not kind:
            raise TypeError(f"must be {kind.__name__}")
        return value

    return hook


def make_server(client: Client, documents: Documents, ask: Ask, notify: Notify) -> LanguageServer:
    """A server that is ready: its features are still to be registered."""
    server = LanguageServer(
        SERVER_NAME,
        __version__,
        protocol_cls=MountedProtocol,
        converter_factory=_strict_converter,
    )
    protocol = cast(MountedProtocol, server.protocol)
    protocol.connection = (ask, notify)
    protocol.documents = documents
    protocol.begin(client)
    return server
