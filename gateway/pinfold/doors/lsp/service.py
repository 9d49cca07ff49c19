"""The language service at the door: which feature is asked for, on what, and when."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from pinfold.doors.lsp import features
from pinfold.doors.lsp.client import COMMANDS, EXPLAIN, Client, path_of
from pinfold.doors.lsp.context import Context, Opener
from pinfold.doors.lsp.diagnostics import Publisher
from pinfold.doors.lsp.documents import Documents
from pinfold.doors.lsp.listings import Listings
from pinfold.doors.lsp.mover import Mover
from pinfold.doors.lsp.moving import failed
from pinfold.doors.rpc import Request
from pinfold.explaining import who_may
from pinfold.paths.literal import working_directory
from pinfold.text.visible import visible
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import invalid_params
from pinfold_protocol.session import EditorSession, Profile, SessionOpenParams

if TYPE_CHECKING:
    from pinfold.doors.native import Native

_T = TypeVar("_T")
_AT_ONCE = 2
"""How many looks at documents run at a time: each is work for the processor, and tool calls of the
same connection want some of it."""


class CommandArgument(msgspec.Struct, frozen=True):
    """What every command takes: a document, and whether the outcome is to be shown to the user."""

    uri: str
    show: bool = False


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
        self._listings = Listings()
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._publisher = Publisher(server, client, documents, self._diagnosed)
        self._mover = Mover(server, client, self._native, self.on_document)
        self._register()

    # The session

    def open(self, wanted: EditorSession | None) -> None:
        """Open the editor's own session. What names it later waits until it is open."""
        session = wanted or EditorSession()
        root = session.project_root or self._client.folder or working_directory()
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
        self._native.open_session(request, params).add_done_callback(self._opened)
        self._native.watch_memory(self._memory_changed)

    def _memory_changed(self) -> None:
        self._listings.forget()
        self._publisher.memory_changed()

    def _disk_changed(self) -> None:
        self._listings.forget()
        self._publisher.disk_changed()

    def _opened(self, opening: "asyncio.Future[object]") -> None:
        error = None if opening.cancelled() else opening.exception()
        if error is not None:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            message = f"pinfold: no session for this editor could be opened: {reason}"
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Error, message)
            )

    @contextmanager
    def serving(self, request: Request) -> Iterator[None]:
        """While a feature is begun."""
        self._request = request
        try:
            yield
        finally:
            self._request = None

    def lost(self) -> None:
        """Nothing more will come from the editor."""
        self._mover.lost()

    def end(self) -> None:
        """The connection ends."""
        self._publisher.end()

    async def on_document(self, uri: str, work: Callable[[Context | None], _T]) -> _T:
        """Do work on the pool, on a document as it is now; it gets None where that is no memory
        document. Raises RpcError where there is no session."""

        def start() -> Any:
            session = self._native.gateway.sessions.get(self._session_id)
            opener = Opener(
                self._native.gateway, session, self._client, self._documents, self._listings
            )

            def run() -> _T:
                with opener.open(uri) as context:
                    return work(context)

            return self._native.workers.run(run)

        async with self._free:
            result: _T = await self._native.lanes.in_order(self._session_id, start)
        return result

    async def _asked(self, uri: str, work: Callable[[Context], _T]) -> _T | None:
        """A feature that has nothing to say of what is no memory document."""
        if not _may_be_memory(uri):
            return None
        return await self.on_document(uri, lambda found: None if found is None else work(found))

    async def _diagnosed(self, uri: str) -> list[types.Diagnostic]:
        return await self._asked(uri, features.diagnostics) or []

    # Features

    def _register(self) -> None:
        handlers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            types.TEXT_DOCUMENT_HOVER: self._hover,
            types.TEXT_DOCUMENT_DOCUMENT_LINK: self._document_links,
            types.TEXT_DOCUMENT_COMPLETION: self._completion,
            types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: self._symbols,
            types.TEXT_DOCUMENT_CODE_LENS: self._code_lenses,
            types.TEXT_DOCUMENT_CODE_ACTION: self._code_actions,
            types.TEXT_DOCUMENT_DIAGNOSTIC: self._pulled,
            types.TEXT_DOCUMENT_PREPARE_RENAME: self._prepare_rename,
            types.TEXT_DOCUMENT_RENAME: self._rename,
            types.WORKSPACE_WILL_RENAME_FILES: self._will_rename,
        }
        heard: dict[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_DID_SAVE: lambda _: self._disk_changed(),
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES: lambda _: self._disk_changed(),
        }
        for method, handler in (*handlers.items(), *heard.items()):
            self._server.feature(method)(_plain_function(handler))
        for name in COMMANDS:
            self._server.command(name)(self._command(name))

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        return await self._asked(uri, lambda found: features.hover(found, params.position))

    async def _document_links(self, params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        return await self._asked(params.text_document.uri, features.document_links) or []

    async def _completion(self, params: types.CompletionParams) -> types.CompletionList | None:
        uri = params.text_document.uri
        return await self._asked(uri, lambda found: features.completion(found, params.position))

    async def _symbols(self, params: types.DocumentSymbolParams) -> Any:
        return await self._asked(params.text_document.uri, features.symbols) or []

    async def _code_lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        return await self._asked(params.text_document.uri, features.code_lenses) or []

    async def _code_actions(self, params: types.CodeActionParams) -> list[Any]:
        uri = params.text_document.uri
        return await self._asked(uri, lambda found: features.code_actions(found, params)) or []

    async def _pulled(
        self, params: types.DocumentDiagnosticParams
    ) -> types.RelatedFullDocumentDiagnosticReport:
        found = await self._diagnosed(params.text_document.uri)
        return types.RelatedFullDocumentDiagnosticReport(found)

    async def _prepare_rename(
        self, params: types.PrepareRenameParams
    ) -> types.PrepareRenamePlaceholder | None:
        uri = params.text_document.uri
        return await self._asked(uri, lambda found: features.renamed(found, params.position))

    async def _rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        return await self._mover.rename(params)

    async def _will_rename(self, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        return await self._mover.will_rename(params)

    # Commands

    def _command(self, name: str) -> Callable[..., Awaitable[Any]]:
        def run(*arguments: Any) -> Awaitable[Any]:
            if len(arguments) != 1:
                raise invalid_params("arguments", "must be one object")
            argument = structure(arguments[0], CommandArgument, "arguments[0]")
            if name == EXPLAIN:
                return self._explain(argument)
            assert self._request is not None
            self._request.changing = True
            return self._mover.pin(argument.uri, name, self._request)

        return run

    async def _explain(self, argument: CommandArgument) -> dict[str, Any]:
        """For each profile, whether it may change a document, and why not."""

        def work(context: Context | None) -> tuple[str, dict[Profile, Decision]]:
            if context is None:
                raise failed("This is no memory document: it is below no memory root.")
            path = context.where.path
            return path, who_may(context.gateway, context.session, "write_file", path)

        path, told = await self.on_document(argument.uri, work)
        if argument.show:
            lines = [f"{name}: {_in_words(each)}" for name, each in told.items()]
            message = "\n".join(map(visible, (path, *lines)))
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Info, message)
            )
        return {"path": path, "profiles": {name: unstructure(each) for name, each in told.items()}}


def _in_words(decision: Decision) -> str:
    return "may change it" if decision.decision == "allow" else f"may not. {decision.reason}"


def _may_be_memory(uri: str) -> bool:
    path = path_of(uri)
    return path is not None and path.endswith(".md")


def _plain_function(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """pygls puts attributes on what is registered, which a bound method does not take."""
    return lambda params: handler(params)  # noqa: PLW0108
