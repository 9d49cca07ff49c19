"""The language server behind our own wire: every request is answered once, in our error codes.

pygls reads nothing, writes nothing and has no thread here. A message is structured once, when its
method is known.
"""

from collections.abc import Awaitable, Generator
from inspect import isgenerator, isgeneratorfunction
from typing import TYPE_CHECKING, Any, cast

from pinfold.doors.lsp.buffers import EditorBuffers
from pinfold.doors.lsp.client import Client
from pinfold.doors.lsp.documents import Documents
from pinfold.doors.questions import member
from pinfold.doors.rpc import Request, Rpc
from pinfold.doors.stdio import log, log_exception
from pinfold_protocol.errors import METHOD_NOT_FOUND, RpcError, invalid_params, short

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from pinfold.doors.lsp.server import MountedProtocol
    from pinfold.doors.lsp.service import Service
    from pinfold.doors.native import Native
    from pinfold_protocol.session import EditorSession

_LIFECYCLE = ("initialize", "shutdown", "exit")


class Mount:
    """What Rpc hands on when a method is none of ours. Everything runs on the loop's thread."""

    def __init__(
        self, native: "Native", rpc: Rpc, client: Client, session: "EditorSession | None"
    ) -> None:
        self.client = client
        self.documents = Documents()
        self.buffers = EditorBuffers(self.documents, client, rpc.ask)
        self._native = native
        self._rpc = rpc
        self._session = session
        self._server: LanguageServer | None = None
        self._service: Service | None = None

    def load(self) -> None:
        """Import pygls and make the server: with the editor reading the answer to `initialize`,
        and before anything that came after it."""
        if self._server is None:
            from pinfold.doors.lsp.server import make_server
            from pinfold.doors.lsp.service import Service

            server = make_server(self.client, self.documents, self._rpc.ask, self._rpc.notify)
            self._native.gateway.attach_editor(self.buffers)
            self._service = Service(self._native, server, self.client, self.documents)
            self._service.open(self._session)
            self._server = server

    @property
    def server(self) -> "LanguageServer":
        """The server, made."""
        self.load()
        assert self._server is not None
        return self._server

    def begin(self, request: Request, params: Any) -> Any:
        """Begin a request: its result, or an awaitable of it. Raises RpcError."""
        handler = self._handler(request.method)
        if handler is None:
            method = short(request.method)
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})
        typed = self._structured(request.method, params)
        assert self._service is not None
        with self._service.serving(request):
            result = _run(handler, typed)
        if isinstance(result, Awaitable):
            return self._plain_later(result)
        return self._plain(result)

    def notification(self, method: str, params: Any) -> None:
        """A notification takes effect at once. One that is wrong is told in the log."""
        handlers = [] if method in _LIFECYCLE else self._listeners(method)
        if not handlers:
            return
        try:
            typed = self._structured(method, params)
        except RpcError:
            log(f"{method} was not understood")
            self._not_understood(method, params)
            return
        try:
            for handler in handlers:
                _run(handler, typed)
        except Exception as error:  # noqa: BLE001 - the guard at the door: nobody waits for it
            log_exception(error, method)
            self._not_understood(method, params)

    def lost(self) -> None:
        """Nothing more will come from the editor: nobody waits for it any longer."""
        self.buffers.end()
        self.documents.end()
        if self._service is not None:
            self._service.lost()

    def end(self) -> None:
        """The connection ends."""
        self.documents.end()
        if self._service is not None:
            self._service.end()

    def _not_understood(self, method: str, params: Any) -> None:
        """What an editor shows in a document is not known any more, once a change is missed; nor
        is it in one that was opened in words that are none."""
        uri = member(params, "textDocument", "uri")
        if not isinstance(uri, str):
            return
        if method == "textDocument/didChange":
            self.documents.lose(uri)
        elif method == "textDocument/didOpen":
            cast("MountedProtocol", self.server.protocol).open_unknown(uri)

    def _handler(self, method: str) -> Any:
        registry = self.server.protocol.fm
        return registry.builtin_features.get(method) or registry.features.get(method)

    def _listeners(self, method: str) -> list[Any]:
        """Who hears a notification: what keeps the documents, then the feature that wants to know
        of it too. pygls's own, which are generators, call that themselves."""
        registry = self.server.protocol.fm
        kept, wanted = registry.builtin_features.get(method), registry.features.get(method)
        if kept is not None and isgeneratorfunction(kept):
            return [kept]
        return [each for each in (kept, wanted) if each is not None]

    def _structured(self, method: str, params: Any) -> Any:
        """The params in their own type. Raises RpcError (-32602)."""
        from lsprotocol.types import METHOD_TO_TYPES

        found = METHOD_TO_TYPES.get(method)
        expected: Any = None if found is None else found[2]
        if expected is None:
            return params
        try:
            return self.server.protocol._converter.structure(params, expected)
        except Exception as error:  # noqa: BLE001 - its hooks raise what comes to them
            from pinfold.doors.lsp.problems import describe

            path, problem = describe(error)
            raise invalid_params(path, short(problem)) from None

    def _plain(self, result: Any) -> Any:
        return self.server.protocol._converter.unstructure(result)

    async def _plain_later(self, result: Awaitable[Any]) -> Any:
        return self._plain(await result)


def _run(handler: Any, typed: Any) -> Any:
    """A feature's result, or an awaitable of it. pygls's own are generators, which give the
    handlers that are to be called in between. Raises RpcError."""
    result = handler(typed)
    return _drive(result, None) if isgenerator(result) else result


def _drive(steps: Generator[Any, Any, Any], value: Any) -> Any:
    try:
        handler, args, more = steps.send(value)
    except StopIteration as end:
        return end.value
    except Exception as error:
        raise _translated(error) from error
    result = handler(*args or (), **more or {})
    if isinstance(result, Awaitable):
        return _drive_later(steps, result)
    return _drive(steps, result)


async def _drive_later(steps: Generator[Any, Any, Any], result: Awaitable[Any]) -> Any:
    last = _drive(steps, await result)
    return await last if isinstance(last, Awaitable) else last


def _translated(error: Exception) -> Exception:
    """What pygls refuses, in our words: only a command that there is not."""
    from pygls.exceptions import JsonRpcInvalidParams

    if isinstance(error, JsonRpcInvalidParams):
        return invalid_params("command", "is no command of ours, or its arguments are wrong")
    return error
