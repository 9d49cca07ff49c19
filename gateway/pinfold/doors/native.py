"""Our own methods behind the door, and the lifecycle of what is behind it.

Session messages take effect before any later message that names the session is decided (`order`);
what can block runs on pools (`workers`); tool calls have rules of their own (`calling`).
"""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pinfold.doors import heap, told
from pinfold.doors.codec import serialize
from pinfold.doors.order import Lanes
from pinfold.doors.questions import Questions, lsp_way, member
from pinfold.doors.rpc import Dialect, Request, Rpc
from pinfold.doors.stdio import log
from pinfold.doors.wire import Wire
from pinfold.doors.workers import Workers
from pinfold_protocol.errors import RpcError, invalid_params

if TYPE_CHECKING:
    from pinfold.app import Gateway
    from pinfold.doors.calling import Calling
    from pinfold.doors.lsp.mount import Mount
    from pinfold.doors.mcp import Rounds
    from pinfold.doors.progress import Progress
    from pinfold.flags import Flags
    from pinfold.upstreams import Client
    from pinfold_protocol.compaction import CompactParams
    from pinfold_protocol.memory import MemoryIndexParams
    from pinfold_protocol.session import (
        ConnectionOptions,
        EditorSession,
        FileDidChangeParams,
        MemoryDidChangeParams,
    )
    from pinfold_protocol.tools import ToolsCallParams

SETTLE_SECONDS = 0.6
_REST_SECONDS = 1.0
"""After so long without a request, what is held for speed is given back."""
_CALL = "tools/call"
_OPTIONS = "initializationOptions.pinfold"
_MOST_SAID = 1000
"""How much that an upstream says by itself may wait for the loop; more is dropped."""
_PUBLISHING_SECONDS = 60.0
"""How long `session/close` and `shutdown` wait for a disk that does not answer."""


_LEVELS = {"emergency": 1, "alert": 1, "critical": 1, "error": 1, "warning": 2, "notice": 3}
"""MCP's levels as LSP's kinds of message; what is less is 4, a log line."""


class Native:
    """The service: a Gateway, and when its work is done."""

    def __init__(
        self, wire: Wire, watch: Callable[[int], None], flags: "Callable[[], Flags]"
    ) -> None:
        self._wire = wire
        self._flags = flags
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self.workers = Workers(wire)
        self.lanes = Lanes(self._place_of)
        self._said = 0
        self._said_lock = threading.Lock()
        self.questions: Questions | None = None
        self.editor: Mount | None = None
        self._busy = self._quiet = False
        self._gateway: Gateway | None = None
        self._calling: Calling | None = None
        self._read_params: Callable[[str, Any], Any]
        self.memory_changed: Callable[[MemoryDidChangeParams], None] = self._tell_of_change
        self.upstream_client: Callable[[], Client] = self._as_client
        self.rpc: Rpc
        wire.on_received = self._arrived

    # The lifecycle

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """LSP's members are read leniently, `initializationOptions.pinfold` strictly."""
        options = params.get("initializationOptions")
        given = options.get("pinfold") if isinstance(options, dict) else None
        editor = is_editor(params)
        session = None if given is None else self._read_options(given, editor)
        self.questions = Questions(
            lambda: self.gateway.limits.ask_seconds,
            lsp_way(self.rpc.ask, params.get("capabilities")),
        )
        process = params.get("processId")
        if type(process) is int and process > 0:
            self._watch(process)
        self._loop.call_soon(lambda: self.gateway)  # imported while the host reads the answer
        return told.initialized(self._mount(params, session) if editor else {})

    def _read_options(self, raw: Any, editor: bool) -> "EditorSession | None":
        from pinfold_protocol.convert import structure
        from pinfold_protocol.session import ConnectionOptions

        options = structure(raw, ConnectionOptions, _OPTIONS)
        if options.session is not None and not editor:
            problem = "is for editors, and this client announces no capabilities.textDocument"
            raise invalid_params(f"{_OPTIONS}.session", problem)
        if options.session is not None:
            with _below(f"{_OPTIONS}.session"):
                self.gateway.require_valid(options.session)
        with _below(_OPTIONS):
            self.set_options(options)
        return options.session

    def _from_flags(self, upstreams: dict[str, Any]) -> None:
        """The upstream that the command line gives. Raises RpcError (-32602)."""
        from pinfold_protocol.convert import structure
        from pinfold_protocol.session import ConnectionOptions

        self.set_options(structure({"upstreams": upstreams}, ConnectionOptions, "--upstream"))

    def _mount(self, params: dict[str, Any], session: "EditorSession | None") -> dict[str, Any]:
        """Mount the language server: its capabilities. It is loaded after they have been told."""
        from pinfold.doors.lsp.client import read_client, server_capabilities
        from pinfold.doors.lsp.mount import Mount

        client = read_client(params)
        self.editor = Mount(self, self.rpc, client, session)
        self.rpc.elsewhere = self.editor
        self._loop.call_soon(self.editor.load)
        return server_capabilities(client)

    def set_options(self, options: "ConnectionOptions") -> None:
        """Defaults for the sessions of this connection. Raises RpcError (-32602)."""
        self.gateway.set_options(options)
        if options.upstreams:
            self.gateway.upstreams.client = self.upstream_client()
        self._wire.framer.max_body = self.gateway.limits.max_message_bytes

    @property
    def gateway(self) -> "Gateway":
        """Made when it is first needed, so that `initialize` is answered early; on the loop's
        thread, in `begin`."""
        return self._gateway or self._make_gateway()

    def _make_gateway(self) -> "Gateway":
        from pinfold.app import Gateway
        from pinfold.doors.calling import Calling
        from pinfold_protocol.methods import read_params

        self._gateway = Gateway()
        self._calling = Calling(self._gateway, self._wire, self.lanes, self.workers)
        self._read_params = read_params
        self._gateway.on_memory_change = self.memory_changed
        self._gateway.on_file_change = self._tell_of_file
        self._gateway.on_trouble = log
        self._arrived()
        if upstreams := self._flags().upstreams:
            self._from_flags(upstreams)
        return self._gateway

    def watch_memory(self, changed: Callable[[], None]) -> None:
        """Be told on the loop's thread, after the client, when a call changes memory."""
        before = self.gateway.on_memory_change

        def tell(params: "MemoryDidChangeParams") -> None:
            before(params)
            self._loop.call_soon_threadsafe(changed)

        self.gateway.on_memory_change = tell

    def _tell_of_change(self, params: "MemoryDidChangeParams") -> None:
        """On the thread of the change; goes out before its answer."""
        from pinfold_protocol.methods import MEMORY_DID_CHANGE

        self._tell(MEMORY_DID_CHANGE, params)

    def _tell_of_file(self, params: "FileDidChangeParams") -> None:
        """As `_tell_of_change`."""
        from pinfold_protocol.methods import FILE_DID_CHANGE

        self._tell(FILE_DID_CHANGE, params)

    def _tell(self, method: str, params: Any) -> None:
        body = serialize({"jsonrpc": "2.0", "method": method, "params": _plain(params)})
        self._loop.call_soon_threadsafe(self._wire.send, body)

    # What an upstream says by itself

    def _as_client(self) -> "Client":
        """A host of our own protocol: told of other tools, and what an upstream logs. It cannot be
        asked anything."""
        from pinfold.upstreams import Client

        return Client(
            on_tools=lambda name: self.on_loop(lambda: self._tools_changed(name), always=True),
            on_log=lambda name, params: self.on_loop(lambda: self._logged(name, params)),
        )

    def on_loop(self, work: Callable[[], None], *, always: bool = False) -> None:
        """From any thread. What can be missed is dropped while the host, or the loop, is far
        behind: an upstream may say more than anybody wants to hear."""
        with self._said_lock:
            if self._said >= _MOST_SAID and not always:
                return
            self._said += 1

        def run() -> None:
            with self._said_lock:
                self._said -= 1
            if always or not self._wire.congested:
                work()

        self._loop.call_soon_threadsafe(run)

    def _tools_changed(self, name: str) -> None:
        from pinfold_protocol.methods import TOOLS_DID_CHANGE

        self.rpc.notify(TOOLS_DID_CHANGE, {"backend": name})

    def _logged(self, name: str, params: dict[str, Any]) -> None:
        level, data = params.get("level"), params.get("data")
        text = data if isinstance(data, str) else serialize(data).decode("utf-8", "replace")
        kind = _LEVELS.get(level, 4) if isinstance(level, str) else 4
        self.rpc.notify("window/logMessage", {"type": kind, "message": f"{name}: {text}"})

    def speaks(self, method: str, params: Any) -> Dialect | None:
        """MCP says its revision in its first request, or asks what or whether there is."""
        revision = isinstance(params, dict) and "protocolVersion" in params
        meta = params.get("_meta") if isinstance(params, dict) else None
        stateless = isinstance(meta, dict) and any(
            name.startswith("io.modelcontextprotocol/") for name in meta
        )
        looking = method in ("server/discover", "ping")
        if not (stateless or looking or (method == "initialize" and revision)):
            return None
        from pinfold.doors.mcp import Mcp

        return Mcp(self, self.rpc, self._flags())

    def _arrived(self) -> None:
        """Something has come: rest again when nothing else comes for a while."""
        self._quiet = False
        gateway = self._gateway
        if gateway is None:
            return
        if not self._busy:
            self._busy = True
            gateway.wake()
            self._loop.call_later(_REST_SECONDS, self._rest)

    def _rest(self) -> None:
        self._busy = not self._quiet
        if self._busy:
            self._quiet = True
            self._loop.call_later(_REST_SECONDS, self._rest)
        else:
            self.gateway.rest()
            gc.collect()  # what is still held in rings, of libraries or of ours
            heap.give_back()

    # Requests

    def knows(self, method: str) -> bool:
        """Whether the method is one of ours."""
        return method in _HANDLERS

    def begin(self, request: Request, params: dict[str, Any]) -> Any:
        """Begin a request: its result, or an awaitable of it. Raises RpcError."""
        if self._gateway is None:
            self._make_gateway()
        if self.editor is not None:
            self.editor.load()  # its session was asked for first
        if "_meta" in params:
            params = {name: value for name, value in params.items() if name != "_meta"}
        typed = self._read_params(request.method, params)
        request.session_id = getattr(typed, "session_id", None)
        return _HANDLERS[request.method](self, request, typed)

    def open_session(self, request: Request, params: Any) -> Any:
        """`session/open`."""
        return self._session_message(
            request,
            lambda: self.gateway.open_session(params),
            project=self.gateway.project_root(params.project_root),
            upstream=params.backend not in (None, "local"),
        )

    def configure_session(self, request: Request, params: Any) -> Any:
        """`session/configure`."""
        return self._session_message(request, lambda: self.gateway.configure_session(params))

    def close_session(self, request: Request, params: Any) -> Any:
        """`session/close`: running changes finish, everything else of the session is cancelled."""
        mine = [
            each
            for each in self.rpc.running.values()
            if each is not request and each.session_id == params.session_id
        ]
        return self._session_message(
            request,
            lambda: self.gateway.close_session(params.session_id),
            before=lambda: self._settle(mine),
        )

    def list_sessions(self, request: Request, params: Any) -> Awaitable[Any]:
        """`session/list`, after all session messages before it."""
        pending = self.lanes.pending()

        async def listed() -> Any:
            from pinfold_protocol.session import SessionListResult

            if pending:
                await asyncio.wait(pending)
            return _plain(SessionListResult(self.gateway.summaries()))

        return listed()

    def begin_turn(self, request: Request, params: Any) -> Any:
        """`turn/begin`."""
        return self._session_message(request, lambda: self.gateway.begin_turn(params))

    def end_turn(self, request: Request, params: Any) -> Any:
        """`turn/end`."""
        return self._session_message(request, lambda: self.gateway.end_turn(params))

    def memory_roots(self, request: Request, params: Any) -> Any:
        """`memory/roots`."""

        def start() -> Any:
            from pinfold_protocol.session import RootsResult

            session = self.gateway.sessions.get(params.session_id)
            return self._on_pool(lambda: RootsResult(self.gateway.roots(session)))

        return self.lanes.in_order(params.session_id, start)

    def memory_index(self, request: Request, params: "MemoryIndexParams") -> Any:
        """`memory/index`."""

        def start() -> Any:
            session = self.gateway.sessions.get(params.session_id)
            from pinfold.library import index

            return self._on_pool(lambda: index(self.gateway, session, params.kinds, params.limit))

        return self.lanes.in_order(params.session_id, start)

    def list_tools(self, request: Request, params: Any) -> Any:
        """`tools/list`."""

        def listed() -> Any:
            if params.session_id is None:
                return {"tools": self.gateway.offered()}
            session = self.gateway.sessions.get(params.session_id)
            tools = self.gateway.offered(session)
            if session.upstream is None:
                return {"tools": tools}
            from pinfold.upstream_tools import as_tool

            return {"tools": [_plain(as_tool(tool)) for tool in tools]}

        return self.lanes.in_order(params.session_id, listed)

    def explain(self, request: Request, params: Any) -> Any:
        """`policy/explain`."""

        def start() -> Any:
            session = self.gateway.sessions.get(params.session_id)
            from pinfold.explaining import explain

            return self._on_pool(lambda: explain(self.gateway, params, session))

        return self.lanes.in_order(params.session_id, start)

    def compact(self, request: Request, params: "CompactParams") -> Any:
        """`context/compact`."""

        def start() -> Any:
            named = params.session_id
            session = None if named is None else self.gateway.sessions.get(named)
            from pinfold.compacting import compact

            return self._on_pool(lambda: compact(self.gateway, params, session))

        return self.lanes.in_order(params.session_id, start)

    def reset(self, request: Request, params: Any) -> Any:
        """`context/reset`."""
        from pinfold.compacting import reset

        return self._session_message(request, lambda: reset(self.gateway, params.session_id))

    def call(
        self,
        request: Request,
        params: "ToolsCallParams",
        questions: "Questions | Rounds | None" = None,
        progress: "Progress | None" = None,
        local: bool = False,
    ) -> Any:
        """`tools/call`. `questions`: how this call is asked about, where that is not the
        connection's way; `progress` likewise. `local`: a read that is the gateway's own, whatever
        the session is in front of."""
        assert self._calling is not None
        questions = questions or self.questions
        if progress is not None or params.work_done_token is None:
            return self._calling.call(request, params, questions, progress, local=local)
        from pinfold.doors.progress import WorkDone

        done = WorkDone(self, request, params.work_done_token)
        result = self._calling.call(request, params, questions, done, local=local)
        return done.until(result) if isinstance(result, Awaitable) else result

    async def _on_pool(self, work: Callable[[], Any]) -> Any:
        return _plain(await self.workers.run(work))

    def _session_message(
        self,
        request: Request,
        work: Callable[[], Any],
        project: str | None = None,
        upstream: bool = False,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Run a session message, after `before`, in any case."""
        request.cancel = lambda: False
        request.changing = True

        async def run() -> Any:
            if before is not None:
                await before()
            return _plain(await self.workers.for_session(work))

        return self.lanes.message(request.session_id, run, project, upstream=upstream)

    def is_upstream(self, session_id: str) -> bool:
        """Whether a session is, or is about to be, in front of an upstream."""
        lane = self.lanes.get(session_id)
        place = (lane.project, lane.upstream) if lane else self._place_of(session_id)
        return place is not None and place[1]

    def _place_of(self, session_id: str) -> tuple[str, bool] | None:
        try:
            session = self.gateway.sessions.get(session_id)
        except RpcError:
            return None
        return session.project_root, session.upstream is not None

    def is_running(self, request: Request) -> bool:
        """Whether a request is not answered yet."""
        return self.rpc.running.get(request.id) is request

    # The end

    def close(self) -> None:
        """What is to be recorded is written, as far as that takes no longer than a second."""
        if self.editor is not None:
            self.editor.end()
        if self._gateway is not None:
            self._gateway.close()

    async def settle(self) -> None:
        """Let running changes finish, end everything else. The client says nothing more now, which
        edits of its documents could be seen by."""
        if self.editor is not None:
            self.editor.lost()
        requests = [r for r in self.rpc.running.values() if r.method != "shutdown"]
        await self._settle(requests)
        for each in requests:  # session messages on a disk that does not answer
            self.rpc.give_up(each)

    async def _settle(self, requests: list[Request]) -> None:
        """Changes get a little time; what is being published then is waited for."""
        for each in requests:
            if each.asking or not each.changing:
                self.rpc.cancel(each)
        await _ended(requests, SETTLE_SECONDS)
        for each in requests:
            self.rpc.cancel(each)
        await _ended([each for each in requests if each.method == _CALL], _PUBLISHING_SECONDS)


@contextmanager
def _below(place: str) -> Iterator[None]:
    """What is wrong with a member is told by its whole path, from the params on."""
    try:
        yield
    except RpcError as error:
        data = error.data or {}
        raise invalid_params(f"{place}.{data['path']}", data["problem"]) from None


async def _ended(requests: list[Request], seconds: float) -> None:
    works = [each.work for each in requests if each.work and not each.work.done()]
    if works:
        await asyncio.wait(works, timeout=seconds)


def is_editor(params: dict[str, Any]) -> bool:
    """Whether a client announces that it has text documents."""
    text = member(params, "capabilities", "textDocument")
    return isinstance(text, dict) and bool(text)


def _plain(value: Any) -> Any:
    from pinfold_protocol.convert import unstructure

    return unstructure(value)


_HANDLERS: dict[str, Callable[[Native, Request, Any], Any]] = {
    "session/open": Native.open_session,
    "session/configure": Native.configure_session,
    "session/close": Native.close_session,
    "session/list": Native.list_sessions,
    "turn/begin": Native.begin_turn,
    "turn/end": Native.end_turn,
    "memory/roots": Native.memory_roots,
    "memory/index": Native.memory_index,
    "tools/list": Native.list_tools,
    _CALL: Native.call,
    "policy/explain": Native.explain,
    "context/compact": Native.compact,
    "context/reset": Native.reset,
}
