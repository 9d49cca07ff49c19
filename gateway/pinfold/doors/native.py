"""Our own methods behind the door: which may run in place, and which wait for whom.

A small read that the kernel can answer from its caches runs in place; everything else runs on a
pool of its own. Session messages take effect before any later message that names the session is
decided; changes to one path run in order of arrival; nothing else is ordered.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pinfold.doors import told
from pinfold.doors.codec import serialize
from pinfold.doors.order import Lane, Turn, heed, resolve
from pinfold.doors.questions import Questions, lsp_way, member
from pinfold.doors.rpc import Dialect, Request, Rpc
from pinfold.doors.stdio import log
from pinfold.doors.wire import CONGESTED, Wire
from pinfold_protocol.errors import RpcError, invalid_params

if TYPE_CHECKING:
    from pinfold.app import Gateway
    from pinfold.calls import Asking, Ticket
    from pinfold.doors.lsp.mount import Mount
    from pinfold.doors.mcp import Rounds
    from pinfold.flags import Flags
    from pinfold.policy.facts import AskKey
    from pinfold.session import Session
    from pinfold.upstreams import Client
    from pinfold_protocol.compaction import CompactParams
    from pinfold_protocol.decision import Asked
    from pinfold_protocol.memory import MemoryIndexParams
    from pinfold_protocol.session import (
        ConnectionOptions,
        EditorSession,
        FileDidChangeParams,
        MemoryDidChangeParams,
    )
    from pinfold_protocol.tools import ToolsCallParams

_WORKERS = 64
_SESSION_WORKERS = 64
_ABANDONED = 448
"""How many further threads may be stuck in work that nobody waits for any more."""
_MAX_PATH = 4096
_ANSWER_BYTES = 256 * 1024
_BEHIND_BYTES = 1 << 20
"""A host that leaves more than this unread is behind: each call then counts as an answer of
`_ANSWER_BYTES` to come, and all of them must fit below `CONGESTED`."""
SETTLE_SECONDS = 0.6
_REST_SECONDS = 1.0
"""After so long without a request, what is held for speed is given back."""
_CALL = "tools/call"
_OPTIONS = "initializationOptions.pinfold"
_MOST_QUESTIONS = 8
_MOST_SAID = 1000
"""How much that an upstream says by itself may wait for the loop; more is dropped."""
_PUBLISHING_SECONDS = 60.0
"""How long `session/close` and `shutdown` wait for a disk that does not answer."""


Progress = Callable[[dict[str, Any]], None]
"""Gets what an upstream tells of a call under way (MCP's members but the token), on any thread."""
_LEVELS = {"emergency": 1, "alert": 1, "critical": 1, "error": 1, "warning": 2, "notice": 3}
"""MCP's levels as LSP's kinds of message; what is less is 4, a log line."""


class _WorkDone:
    """LSP's way to tell of progress, for a token that the host chose."""

    def __init__(self, native: "Native", request: Request, token: int | str) -> None:
        self._native = native
        self._request = request
        self._token = token
        self._begun = False

    def __call__(self, params: dict[str, Any]) -> None:
        """Tell; on any thread."""
        self._native.on_loop(lambda: self._report(params))

    def _report(self, params: dict[str, Any]) -> None:
        if not self._native.is_running(self._request):
            return
        if not self._begun:
            self._begun = True
            self._say({"kind": "begin", "title": "the file server"})
        done, total, message = (params.get(name) for name in ("progress", "total", "message"))
        value: dict[str, Any] = {"kind": "report"}
        if isinstance(message, str):
            value["message"] = message
        if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
            value["percentage"] = max(0, min(100, int(100 * done / total)))
        self._say(value)

    def end(self) -> None:
        """On the loop, before the answer."""
        if self._begun and self._native.is_running(self._request):
            self._say({"kind": "end"})

    def _say(self, value: dict[str, Any]) -> None:
        self._native.rpc.notify("$/progress", {"token": self._token, "value": value})


class _Call:
    """A tool call under way: its work on the pool, and what was answered to its questions."""

    def __init__(
        self,
        request: Request,
        params: "ToolsCallParams",
        ticket: "Ticket",
        session: "Session",
        questions: "Questions | Rounds | None",
        work: "list[asyncio.Future[Any]] | None" = None,
        progress: "Progress | None" = None,
    ) -> None:
        self.progress = progress
        self.local = session.upstream is None
        self.request = request
        self.params = params
        self.ticket = ticket
        self.session = session
        self.questions = questions
        self.work = work
        self._answers: dict[AskKey, tuple[Asked, Any]] = {}

    def note(self, key: "AskKey", answer: "Asked", rules: Any) -> None:
        """An answer to what these rules asked."""
        self._answers[key] = answer, rules

    def answered(self, key: "AskKey") -> "Asked | None":
        """What was answered, while the rules that asked are in force."""
        answer, rules = self._answers.get(key, (None, None))
        return answer if self.session.effective.rules is rules else None


class Native:
    """The service: a Gateway, and when its work is done."""

    def __init__(
        self, wire: Wire, watch: Callable[[int], None], flags: "Callable[[], Flags]"
    ) -> None:
        self._wire = wire
        self._flags = flags
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(_WORKERS + _ABANDONED, thread_name_prefix="pinfold")
        # A slow directory must not keep sessions from being opened.
        self._session_pool = ThreadPoolExecutor(_SESSION_WORKERS, thread_name_prefix="session")
        self._upstream_pool: ThreadPoolExecutor | None = None
        self._said = 0
        self._said_lock = threading.Lock()
        self._session_messages: set[asyncio.Future[Any]] = set()
        self._lanes: dict[str, Lane] = {}
        self._turns: dict[str, Turn] = {}
        self._asking: dict[str, asyncio.Future[None]] = {}
        self.questions: Questions | None = None
        self.editor: Mount | None = None
        self._busy = self._quiet = False
        self._running = 0
        self._abandoned = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._gateway: Gateway | None = None
        self.memory_changed: Callable[[MemoryDidChangeParams], None] = self._tell_of_change
        self.upstream_client: Callable[[], Client] = self._as_client
        self.rpc: Rpc
        wire.on_drained = self._admit
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
            self._require_valid(options.session)
        self.set_options(options)
        return options.session

    def _from_flags(self, upstreams: dict[str, Any]) -> None:
        """The upstream that the command line gives. Raises RpcError (-32602)."""
        from pinfold_protocol.convert import structure
        from pinfold_protocol.session import ConnectionOptions

        self.set_options(structure({"upstreams": upstreams}, ConnectionOptions, "--upstream"))

    def _require_valid(self, session: "EditorSession") -> None:
        """Whatever can be said of it without a look at the disk. Raises RpcError (-32602)."""
        try:
            self.gateway.require_valid(session)
        except RpcError as error:
            data = error.data or {}
            raise invalid_params(f"{_OPTIONS}.session.{data['path']}", data["problem"]) from None

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
        if self._gateway is None:
            from pinfold.app import Gateway

            self._gateway = Gateway()
            self._gateway.on_memory_change = self.memory_changed
            self._gateway.on_file_change = self._tell_of_file
            self._gateway.on_trouble = log
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

    def _stir(self) -> None:
        """A request has come: rest again when no other one comes for a while."""
        self._quiet = False
        if not self._busy:
            self._busy = True
            self.gateway.wake()
            self._loop.call_later(_REST_SECONDS, self._rest)

    def _arrived(self) -> None:
        if self._gateway is not None:
            self._gateway.arrived()

    def _rest(self) -> None:
        self._busy = not self._quiet
        if self._busy:
            self._quiet = True
            self._loop.call_later(_REST_SECONDS, self._rest)
        else:
            self.gateway.rest()

    def in_session_pool(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run what opens a session, where a slow directory keeps nobody else waiting."""
        return self._loop.run_in_executor(self._session_pool, work)

    # Requests

    def knows(self, method: str) -> bool:
        """Whether the method is one of ours."""
        return method in _HANDLERS

    def begin(self, request: Request, params: dict[str, Any]) -> Any:
        """Begin a request: its result, or an awaitable of it. Raises RpcError."""
        from pinfold_protocol.convert import structure
        from pinfold_protocol.methods import METHODS

        self._stir()
        if self.editor is not None:
            self.editor.load()  # its session was asked for first
        given = {name: value for name, value in params.items() if name != "_meta"}
        typed = structure(given, METHODS[request.method].params)
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
        pending = list(self._session_messages)

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
            return self.on_pool(lambda: RootsResult(self.gateway.roots(session)))

        return self.in_order(params.session_id, start)

    def memory_index(self, request: Request, params: "MemoryIndexParams") -> Any:
        """`memory/index`."""

        def start() -> Any:
            session = self.gateway.sessions.get(params.session_id)
            return self.on_pool(lambda: self.gateway.index(session, params.kinds, params.limit))

        return self.in_order(params.session_id, start)

    def list_tools(self, request: Request, params: Any) -> Any:
        """`tools/list`."""

        def listed() -> Any:
            if params.session_id is None:
                return {"tools": self.gateway.offered()}
            session = self.gateway.sessions.get(params.session_id)
            tools = self.gateway.offered(session)
            if session.upstream is None:
                return {"tools": tools}
            from pinfold.relay import as_tool

            return {"tools": [_plain(as_tool(tool)) for tool in tools]}

        return self.in_order(params.session_id, listed)

    def explain(self, request: Request, params: Any) -> Any:
        """`policy/explain`."""

        def start() -> Any:
            session = self.gateway.sessions.get(params.session_id)
            return self.on_pool(lambda: self.gateway.explain(params, session))

        return self.in_order(params.session_id, start)

    def compact(self, request: Request, params: "CompactParams") -> Any:
        """`context/compact`."""

        def start() -> Any:
            named = params.session_id
            session = None if named is None else self.gateway.sessions.get(named)
            return self.on_pool(lambda: self.gateway.compact(params, session))

        return self.in_order(params.session_id, start)

    def reset(self, request: Request, params: Any) -> Any:
        """`context/reset`."""
        return self._session_message(request, lambda: self.gateway.reset(params.session_id))

    def call(
        self,
        request: Request,
        params: "ToolsCallParams",
        questions: "Questions | Rounds | None" = None,
        progress: Progress | None = None,
        local: bool = False,
    ) -> Any:
        """`tools/call`: in place if that cannot block, else on the pool. `questions`: how this
        call is asked about, where that is not the connection's way; `progress` likewise. `local`:
        a read that is the gateway's own, whatever the session is in front of."""
        from pinfold.calls import Ticket
        from pinfold.tools.registry import TOOLS

        self._stir()
        ticket = Ticket()
        request.cancel = ticket.cancel
        if not local and self.is_upstream(params.session_id):
            return self.in_order(
                params.session_id,
                lambda: self._relay(request, params, ticket, questions or self.questions, progress),
            )
        tool = TOOLS.get(params.name)
        request.changing = tool is not None and tool.action == "change"
        if request.changing:
            return self._change(request, params, ticket, questions or self.questions)
        return self.in_order(
            params.session_id,
            lambda: self._read(request, params, ticket, questions or self.questions),
        )

    def is_upstream(self, session_id: str) -> bool:
        """Whether a session is, or is about to be, in front of an upstream."""
        if lane := self._lanes.get(session_id):
            return lane.upstream
        session = self._known(session_id)
        return session is not None and session.upstream is not None

    def is_running(self, request: Request) -> bool:
        """Whether a request is not answered yet."""
        return self.rpc.running.get(request.id) is request

    def _relay(
        self,
        request: Request,
        params: "ToolsCallParams",
        ticket: "Ticket",
        questions: "Questions | Rounds | None",
        progress: Progress | None,
    ) -> Awaitable[Any]:
        """A call to an upstream: never in place, and on a pool of its own, since an upstream may
        take as long as it likes."""
        session = self.gateway.sessions.get(params.session_id)
        paths = self.gateway.changed_paths(session, params)
        request.changing = paths is not None
        done = None
        if progress is None and params.work_done_token is not None:
            progress = done = _WorkDone(self, request, params.work_done_token)

        def call(session: "Session", work: "list[asyncio.Future[Any]]") -> _Call:
            return _Call(request, params, ticket, session, questions, work, progress)

        answered = (
            self._answered(call(session, []))
            if paths is None
            else self._queued(paths, session, call)
        )
        return answered if done is None else _and_then(answered, done.end)

    def _read(
        self,
        request: Request,
        params: "ToolsCallParams",
        ticket: "Ticket",
        questions: "Questions | Rounds | None",
    ) -> Any:
        from pinfold.calls import Asking
        from pinfold.paths.errors import WouldBlock

        session = self.gateway.sessions.get(params.session_id)
        call = _Call(request, params, ticket, session, questions)
        call.local = True
        if not self._wire.congested:
            try:
                return _plain(self._perform(call, cached=True))
            except WouldBlock:
                pass
            except Asking as asking:
                return self._answered(call, asking)
        return self._answered(call)

    def _perform(self, call: "_Call", cached: bool = False) -> Any:
        from pinfold.policy.facts import no_approver

        possible = call.questions is not None and call.questions.possible
        answers = call.answered if possible else no_approver
        return self.gateway.call(
            call.params,
            call.ticket,
            session=call.session,
            cached=cached,
            answers=answers,
            on_progress=call.progress,
            local=call.local,
        )

    async def _work(self, call: "_Call") -> Any:
        """A call on the pool that is for it."""
        if call.local:
            return await self.on_pool(lambda: self._perform(call), call.work)
        return await self._on_upstream_pool(lambda: self._perform(call), call.work)

    async def _answered(self, call: "_Call", asking: "Asking | None" = None) -> Any:
        """A call, with what the client answers to its questions. A path that leads elsewhere each
        time it is looked at is asked about some times, and then no more."""
        from pinfold.calls import Asking

        for _ in range(_MOST_QUESTIONS):
            if asking is not None:
                call.request.asking = True
                rules = call.session.effective.rules
                try:
                    assert call.questions is not None
                    answer = await call.questions.answer(call.session, call.params, asking)
                finally:
                    call.request.asking = False
                if answer is not None:
                    call.note(asking.key, answer, rules)
            try:
                return await self._work(call)
            except Asking as error:
                asking = error
        call.questions = None
        return await self._work(call)

    def _change(
        self,
        request: Request,
        params: "ToolsCallParams",
        ticket: "Ticket",
        questions: "Questions | Rounds | None",
    ) -> Awaitable[Any]:
        """Changes to one directory, as it is written, run one by one in order of arrival: that
        orders the changes to one path, and a directory that somebody keeps locked costs one
        thread. Other spellings of a path exclude each other, but are not ordered."""
        found = self.in_order(
            params.session_id, lambda: self.gateway.sessions.get(params.session_id)
        )
        return self._queued(
            [self._changed_path(params)],
            found,
            lambda session, work: _Call(request, params, ticket, session, questions, work),
        )

    def _queued(
        self,
        paths: list[str],
        found: "Session | Awaitable[Session]",
        call: "Callable[[Session, list[asyncio.Future[Any]]], _Call]",
    ) -> Awaitable[Any]:
        """Run a change when all changes before it in the directories of its paths are over."""
        keys = dict.fromkeys(path.rpartition("/")[0] for path in paths)
        work: list[asyncio.Future[Any]] = []
        turn = Turn(self._loop, *(self._turns.get(key) for key in keys))
        self._turns.update(dict.fromkeys(keys, turn))

        async def run() -> Any:
            session = await found if isinstance(found, Awaitable) else found
            if turn.previous:
                await asyncio.wait(turn.previous)
            return await self._in_turn(call(session, work), paths, turn)

        def answered(_: Any) -> None:
            turn.leave(work[-1] if work else None)

        def over(_: Any) -> None:
            for key in keys:
                if self._turns.get(key) is turn:
                    del self._turns[key]

        task = asyncio.ensure_future(run())
        task.add_done_callback(answered)
        turn.over.add_done_callback(over)
        return task

    async def _in_turn(self, call: "_Call", paths: list[str], turn: Turn) -> Any:
        """A change that waits for an answer lets others in its directories pass, but for those of
        the same paths."""
        from pinfold.calls import Asking

        asking, earlier = None, {each for path in paths if (each := self._asking.get(path))}
        if not earlier:
            try:
                return await self._work(call)
            except Asking as error:
                asking = error
        over: asyncio.Future[None] = self._loop.create_future()
        self._asking.update(dict.fromkeys(paths, over))
        turn.leave(None)
        try:
            if earlier:
                await asyncio.wait(earlier)
            return await self._answered(call, asking)
        finally:
            for path in paths:
                if self._asking.get(path) is over:
                    del self._asking[path]
            over.set_result(None)

    def _changed_path(self, params: "ToolsCallParams") -> str:
        """As it is written, from the file system's root; empty where it will be refused."""
        from pinfold.policy.names import collapse

        path = params.arguments.get("file_path")
        if not isinstance(path, str) or len(path) > _MAX_PATH:
            return ""  # it will be refused
        if path.startswith("~"):
            return path
        base = self._project(params.session_id)
        return collapse(path if path.startswith("/") else f"{base}/{path}")

    def _project(self, session_id: str) -> str | None:
        if lane := self._lanes.get(session_id):
            return lane.project
        return self.gateway.sessions.get(session_id).project_root

    # Order

    def in_order(self, session_id: str | None, start: Callable[[], Any]) -> Any:
        """Start now, or when the session messages before it have taken effect: a future then."""
        lane = None if session_id is None else self._lanes.get(session_id)
        if lane is None:
            return start()
        place: asyncio.Future[Any] = self._loop.create_future()
        place.add_done_callback(heed)  # whoever asked may be gone by then
        lane.waiting.append((place, start))
        return place

    def _session_message(
        self,
        request: Request,
        work: Callable[[], Any],
        project: str | None = None,
        upstream: bool = False,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Run a session message: what names the session later waits until it has taken effect."""
        request.cancel = lambda: False  # it takes effect in any case
        request.changing = True
        session_id = request.session_id

        if project is not None and session_id in self._lanes:
            lane = self._lanes[session_id]  # what arrives from now on belongs to it
            lane.project, lane.upstream = project, upstream

        def start() -> Any:
            if session_id is not None:
                self._lanes[session_id] = self._lane(session_id, project, upstream)
            task = asyncio.ensure_future(run())
            task.add_done_callback(lambda _: self._leave(session_id))
            return task

        async def run() -> Any:
            if before is not None:
                await before()
            return _plain(await self._loop.run_in_executor(self._session_pool, work))

        future: asyncio.Future[Any] = self.in_order(session_id, start)
        self._session_messages.add(future)
        future.add_done_callback(self._session_messages.discard)
        return future

    def _lane(self, session_id: str, project: str | None, upstream: bool) -> Lane:
        """For a session that is about to be opened there, else for the one that there is."""
        known = self._known(session_id)
        if project is not None or known is None:
            return Lane(project, upstream=upstream)
        return Lane(known.project_root, upstream=known.upstream is not None)

    def _known(self, session_id: str) -> "Session | None":
        from pinfold_protocol.errors import RpcError

        try:
            return self.gateway.sessions.get(session_id)
        except RpcError:
            return None

    def _leave(self, session_id: str | None) -> None:
        """A session message has taken effect: start what waited for it, in order."""
        lane = None if session_id is None else self._lanes.pop(session_id, None)
        while lane is not None and lane.waiting and session_id not in self._lanes:
            place, start = lane.waiting.popleft()
            if place.cancelled():
                continue
            try:
                resolve(place, start())
            except Exception as error:  # noqa: BLE001 - handed on to whoever asked
                place.set_exception(error)
        if lane is not None and lane.waiting and session_id is not None:
            self._lanes[session_id].waiting.extend(lane.waiting)
            now = self._lanes[session_id]
            now.project, now.upstream = lane.project, lane.upstream

    # Room

    async def on_pool(
        self, work: Callable[[], Any], begun: "list[asyncio.Future[Any]] | None" = None
    ) -> Any:
        """Run on the pool; the result as plain JSON."""
        return _plain(await self.pooled(work, begun))

    async def pooled(
        self, work: Callable[[], Any], begun: "list[asyncio.Future[Any]] | None" = None
    ) -> Any:
        """Run on the pool, when there is room: nothing is begun while the host is far behind.

        `begun` gets the future of the work, which ends with its thread, not with the request.
        """
        from pinfold.calls import Cancelled

        await self._room()
        self._running += 1
        counted = True

        def no_longer_counts() -> None:
            nonlocal counted
            if counted:
                counted = False
                self._running -= 1
                self._loop.call_soon(self._admit)  # after the answer has been queued

        def done(running: "asyncio.Future[Any]") -> None:
            self._abandoned -= not counted
            no_longer_counts()
            heed(running)

        running = self._loop.run_in_executor(self._pool, work)
        running.add_done_callback(done)
        if begun is not None:
            begun.append(running)
        try:
            return await asyncio.shield(running)
        except Cancelled:
            raise asyncio.CancelledError from None
        except asyncio.CancelledError:  # its thread goes on, and may be stuck for ever
            if not running.done() and self._abandoned < _ABANDONED:
                self._abandoned += 1
                no_longer_counts()
            raise

    async def _on_upstream_pool(
        self, work: Callable[[], Any], begun: "list[asyncio.Future[Any]] | None" = None
    ) -> Any:
        """The same for work that another process does, and may never end: it takes no room from
        other work. A thread whose call was cancelled hears of that."""
        from pinfold.calls import Cancelled

        await self._room()
        if self._upstream_pool is None:
            self._upstream_pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="upstream")
        running = self._loop.run_in_executor(self._upstream_pool, work)
        running.add_done_callback(heed)
        if begun is not None:
            begun.append(running)
        try:
            return _plain(await asyncio.shield(running))
        except Cancelled:
            raise asyncio.CancelledError from None

    async def _room(self) -> None:
        """Wait until there is room for one more."""
        if self._waiting or not self._has_room():
            place: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(place)
            await place

    def _has_room(self) -> bool:
        expected = self._wire.queued + self._running * _ANSWER_BYTES
        behind = self._wire.queued > _BEHIND_BYTES
        return self._running < _WORKERS and (not behind or expected <= CONGESTED)

    def _admit(self) -> None:
        """Wake up the first that waits, if there is room; it counts as running when it does."""
        while self._waiting and self._has_room():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                break
        if self._waiting and self._has_room():
            self._loop.call_soon(self._admit)

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


async def _ended(requests: list[Request], seconds: float) -> None:
    works = [each.work for each in requests if each.work and not each.work.done()]
    if works:
        await asyncio.wait(works, timeout=seconds)


async def _and_then(result: Awaitable[Any], end: Callable[[], None]) -> Any:
    try:
        return await result
    finally:
        end()


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
