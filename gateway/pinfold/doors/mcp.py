"""MCP behind the same door: its lifecycles, and its words for what we do.

Three revisions by the handshake, and the stateless one, in which each request says its revision.
The session is the connection: it is opened by the first request that needs it, so that a probe
leaves nothing behind. The fields of results that no model of ours knows are handed on.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pinfold.doors import elicitation, told
from pinfold.doors import mcp_memory as memory
from pinfold.doors.order import fail, heed, resolve
from pinfold.doors.questions import Questions, question_id
from pinfold.doors.rpc import Request, Rpc
from pinfold.flags import checked_prefix
from pinfold_protocol.errors import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    RpcError,
    ToolError,
    invalid_params,
    short,
)

if TYPE_CHECKING:
    from pinfold.calls import Asking
    from pinfold.config import Settings
    from pinfold.doors.native import Native
    from pinfold.doors.progress import Progress
    from pinfold.flags import Flags
    from pinfold.session import Session
    from pinfold.upstreams import Client
    from pinfold_protocol.decision import Asked
    from pinfold_protocol.session import MemoryDidChangeParams
    from pinfold_protocol.tools import ToolsCallParams

STATELESS = ("2026-07-28",)
_META = "io.modelcontextprotocol/"
_SESSION = "connection"
_ROOTS_SECONDS = 2.0
_END_SECONDS = 5.0
_PROGRESS_SECONDS = 1.0
_NOBODY = Questions(lambda: 0, None)
_ASKED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
"""What an upstream may ask the client, and the capability that the client needs for that."""
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_MANAGED = {"priority": 1, "audience": ["assistant"]}
_CACHEABLE = (
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
)


class InputRequired(Exception):
    """A stateless request cannot go on without an answer: it is asked in the result."""

    def __init__(self, asking: "Asking", message: dict[str, Any]) -> None:
        super().__init__(message)
        self.asking = asking
        self.message = message


class Rounds:
    """Questions of one stateless request: the answers came along with it, or it ends with them."""

    def __init__(self, params: dict[str, Any], *, possible: bool) -> None:
        responses = params.get("inputResponses")
        self._responses = responses if isinstance(responses, dict) else {}
        self.possible = possible

    async def answer(
        self, session: "Session", params: "ToolsCallParams", asking: "Asking"
    ) -> "Asked":
        """Raises InputRequired where the answer did not come along."""
        response = self._responses.get(question_id(asking.key))
        if response is None:
            raise InputRequired(asking, elicitation.form(session, params.name, asking))
        outcome = elicitation.outcome(response)
        if outcome == "allow-session":
            session.allow(asking.key, session.effective.rules)
        return outcome


class Mcp:
    """One MCP connection: a dialect for Rpc, over the same service."""

    def __init__(self, native: "Native", rpc: Rpc, flags: "Flags") -> None:
        self._native = native
        self._rpc = rpc
        self._flags = flags
        self._loop = asyncio.get_running_loop()
        self._version: str | None = None
        self._refused: tuple[int, str, Any] | None = None
        self._capabilities: Any = {}
        self._settings: Settings | None = None
        self._opening: asyncio.Task[None] | None = None
        self._is_open = False
        self._waiting: deque[tuple[Request, asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._subscriptions = memory.Subscriptions()
        native.memory_changed = self._memory_changed_in_thread
        native.upstream_client = self._as_client

    # The lifecycle

    def begin(self, request: Request, params: dict[str, Any]) -> Any:
        """A request, in the revision that it says or that was agreed on."""
        stateless = self._stateless(params)
        if request.method == "initialize" and not stateless:
            return self._initialized(params)
        known = stateless or self._version is not None
        if not known and request.method not in ("ping", "server/discover"):
            if self._refused is not None:
                raise RpcError(*self._refused)
            key = f"{_META}protocolVersion"
            raise invalid_params(f"_meta.{key}", "is missing; or send initialize first")
        handler = _HANDLERS.get(request.method)
        if handler is not None:
            result = handler(self, request, params)
        elif self._native.knows(request.method):
            return self._ours(request, params)
        else:
            method = short(request.method)
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}", {"method": method})
        return self._completed(request.method, result) if stateless else result

    def _stateless(self, params: dict[str, Any]) -> bool:
        meta = params.get("_meta")
        version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
        if version is None:
            return False
        if version not in STATELESS:
            data = {"supported": list(STATELESS), "requested": version}
            raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        return True

    def _completed(self, method: str, result: Any) -> Any:
        if isinstance(result, Awaitable):
            return self._completed_later(method, result)
        identity = {f"{_META}serverInfo": told.identity()}
        more: dict[str, Any] = {"_meta": {**(result.get("_meta") or {}), **identity}}
        more["resultType"] = result.get("resultType", "complete")
        if method in _CACHEABLE:
            more |= {"ttlMs": 0, "cacheScope": "private"}
        return {**result, **more}

    async def _completed_later(self, method: str, result: Awaitable[Any]) -> Any:
        return self._completed(method, await result)

    def _initialized(self, params: dict[str, Any]) -> dict[str, Any]:
        """What is wrong is said again to whatever comes after it."""
        self._refused = None
        try:
            return self._initialize(params)
        except RpcError as error:
            self._refused = (error.code, error.message, error.data)
            raise

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._version is not None:
            raise RpcError(-32600, "Invalid request: already initialized")
        instructions = self._instructions()
        self._version = told.agreed(params.get("protocolVersion"))
        self._capabilities = params.get("capabilities")
        self._native.questions = Questions(
            lambda: self._native.gateway.limits.ask_seconds,
            elicitation.way(self._rpc.ask, self._capabilities)
            if self._version >= "2025-06-18"
            else None,
        )
        self._loop.call_soon(lambda: self._native.gateway)
        return told.mcp_initialized(self._version, instructions, upstream=self._has_upstream)

    @property
    def _has_upstream(self) -> bool:
        """Whether the session of this connection is in front of an upstream, as far as the flags
        and the user's file say. Without a file the flags tell, and nothing is read."""
        if self._settings is None and self._flags.suffice:
            return self._flags.upstream is not None
        return self.settings.backend not in (None, "local")

    def _discover(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "supportedVersions": list(STATELESS),
            "capabilities": told.mcp_capabilities(stateless=True),
            "instructions": self._instructions(),
        }

    def _instructions(self) -> str:
        """For the model: what these tools are, and what holds in this session. Without a
        configuration, the flags tell; so the first answer waits for nothing."""
        if self._settings is None and self._flags.suffice:
            profile = self._flags.profile or "main"
            protected = profile in told.PROTECTING
            prefix = checked_prefix(self._flags.tool_prefix or "", "--tool-prefix")
        else:
            from pinfold.session import effective_scope

            settings = self.settings
            profile, prefix = settings.profile, settings.tool_prefix
            protected = effective_scope(settings.profile, settings.scope).protect_pinned
        return told.instructions(profile, prefix, protected=protected)

    def notification(self, method: str, params: Any) -> None:
        """`notifications/…`; those that are not known are no business of ours."""
        if method == "notifications/initialized":
            self._loop.call_soon(self._open_early)
        elif method == "notifications/cancelled" and isinstance(params, dict):
            wanted = params.get("requestId")
            if type(wanted) in (int, str) and wanted in self._rpc.running:
                self._rpc.forget(self._rpc.running[wanted])

    def withdrawal(self, question_id: str) -> tuple[str, Any]:
        """The notification that takes a question back."""
        return "notifications/cancelled", {"requestId": question_id}

    def ended(self) -> None:
        """The normal end: what was asked is answered, as far as that takes no longer."""

        async def end() -> None:
            running = [each for each in self._rpc.running.values() if not each.asking]
            works = [each.work for each in running if each.work is not None]
            if works:
                await asyncio.wait(works, timeout=_END_SECONDS)
            self._rpc.stop(0)

        self._ending = asyncio.ensure_future(end())

    # The session of the connection

    @property
    def settings(self) -> "Settings":
        """Read when they are first needed. Raises RpcError (-32602)."""
        if self._settings is None:
            from pinfold.config import in_file, load

            settings = load(self._flags)
            try:
                self._native.set_options(settings.connection)
            except RpcError as error:
                raise error if settings.path is None else in_file(settings.path, error) from None
            self._settings = settings
        return self._settings

    def _open_early(self) -> None:
        """While the host looks around; what fails is told to whoever needs it."""
        if self._opening is None:
            self._begin_to_open()

    def _begin_to_open(self) -> None:
        self._opening = asyncio.ensure_future(self._open())
        self._opening.add_done_callback(self._opened)

    async def _open(self) -> None:
        import msgspec

        settings, gateway = self.settings, self._native.gateway
        project = gateway.project_root(await self._project(settings))

        def open_session() -> None:
            if any(each.session_id == _SESSION for each in gateway.sessions.all()):
                return  # the host has opened it by itself
            params = msgspec.structs.replace(settings.opening(project), session_id=_SESSION)
            gateway.open_session(params)

        await self._native.workers.for_session(open_session)

    def _opened(self, task: "asyncio.Task[None]") -> None:
        """Start what waited, in order and at once: nothing may overtake it."""
        error = None if task.cancelled() else task.exception()
        self._is_open = error is None
        if error is not None:
            self._opening = None  # the next one tries again
        while self._waiting:
            request, place, start = self._waiting.popleft()
            if place.done() or self._rpc.running.get(request.id) is not request:
                continue  # cancelled
            try:
                if error is not None:
                    raise error
                resolve(place, start())
            except Exception as problem:  # noqa: BLE001 - handed on to whoever asked
                fail(place, problem)

    def _with_session(self, request: Request, start: Callable[[], Any]) -> Any:
        """What needs the session: at once where it is open, else in its turn."""
        if self._is_open:
            return start()
        place: asyncio.Future[Any] = self._loop.create_future()
        place.add_done_callback(heed)
        self._waiting.append((request, place, start))
        if self._opening is None:
            self._begin_to_open()
        return place

    async def _project(self, settings: "Settings") -> str:
        """What the flags say, else the client's first root, else the working directory."""
        return settings.project or await self._first_root() or os.getcwd()

    async def _first_root(self) -> str | None:
        roots = self._capabilities.get("roots") if isinstance(self._capabilities, dict) else None
        if self._version is None or roots is None:
            return None
        try:
            async with asyncio.timeout(_ROOTS_SECONDS):
                listed = await self._rpc.ask("roots/list", {})
        except (TimeoutError, RpcError):
            return None
        found = listed.get("roots") if isinstance(listed, dict) else None
        first = found[0] if isinstance(found, list) and found else None
        uri = first.get("uri") if isinstance(first, dict) else None
        return _path_of(uri) if isinstance(uri, str) else None

    def _ours(self, request: Request, params: dict[str, Any]) -> Any:
        """A method of our own. Without a session id it is about the connection's session."""
        from pinfold_protocol.methods import METHODS

        members = METHODS[request.method].params.__struct_fields__
        names = "session_id" in members and request.method != "session/open"
        if not names or params.get("sessionId") not in (None, _SESSION):
            return self._native.begin(request, params)
        return self._with_session(
            request, lambda: self._native.begin(request, {**params, "sessionId": _SESSION})
        )

    # Tools

    def _list_tools(self, request: Request, params: dict[str, Any]) -> Any:
        """An upstream's own tools as it lists them, so that needs the session."""
        prefix, gateway = self.settings.tool_prefix, self._native.gateway

        def listed(session: "Session | None" = None) -> dict[str, Any]:
            tools = gateway.offered(session)
            return {"tools": [{**tool, "name": prefix + tool["name"]} for tool in tools]}

        if not self._has_upstream:
            return listed()
        return self._with_session(request, lambda: listed(gateway.sessions.get(_SESSION)))

    def _call_tool(self, request: Request, params: dict[str, Any]) -> Any:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise invalid_params("name", "must be a string")
        if not isinstance(arguments, dict | None):
            raise invalid_params("arguments", "must be an object")
        prefix = self.settings.tool_prefix
        if prefix and name.startswith(prefix):
            name = name.removeprefix(prefix)
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        own = params.get("sessionId")

        def start(session_id: str) -> Any:
            from pinfold_protocol.tools import ToolsCallParams

            typed = ToolsCallParams(
                session_id, name, arguments or {}, call_id=_call_id(params, meta)
            )
            request.session_id = session_id
            return self._native.call(
                request,
                typed,
                questions=self._questions(params, meta),
                progress=self._progress(request, meta.get("progressToken")),
            )

        if not isinstance(own, str | None):
            raise invalid_params("sessionId", "must be a string")
        result = (
            self._with_session(request, lambda: start(_SESSION))
            if own in (None, _SESSION)
            else start(own)
        )
        if not isinstance(result, Awaitable):
            return _as_mcp(result)
        # An upstream tells of its progress itself.
        if own is None or own == _SESSION:
            theirs = self._has_upstream
        else:
            theirs = self._native.is_upstream(own)
        return self._called(request, result, None if theirs else meta.get("progressToken"))

    def _progress(self, request: Request, token: Any) -> "Progress | None":
        """Hands on what an upstream tells, under the client's own token."""
        if type(token) not in (int, str):
            return None

        def tell(params: dict[str, Any]) -> None:
            if self._native.is_running(request):
                self._rpc.notify("notifications/progress", {**params, "progressToken": token})

        return lambda params: self._native.on_loop(lambda: tell(params))

    # What an upstream says by itself

    def _as_client(self) -> "Client":
        """What this client can do for an upstream."""
        from pinfold.upstreams import Client

        def tell(method: str, params: dict[str, Any], *, always: bool = False) -> None:
            self._native.on_loop(lambda: self._tell(method, params), always=always)

        return Client(
            capabilities=self._for_upstream,
            on_tools=lambda name: tell("notifications/tools/list_changed", {}, always=True),
            on_log=lambda name, params: tell("notifications/message", params),
            ask=self._ask_for_upstream,
        )

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        """The stateless revision knows no notifications outside of a request."""
        if self._version is not None:
            self._rpc.notify(method, params)

    def _for_upstream(self) -> dict[str, Any]:
        """Of what the client can do, what an upstream may ask for. Not its roots: a file server
        that is told of roots may forget the directories that its user gave it."""
        known = self._capabilities if isinstance(self._capabilities, dict) else {}
        return {name: known[name] for name in _ASKED.values() if isinstance(known.get(name), dict)}

    def _ask_for_upstream(
        self,
        method: str,
        params: dict[str, Any],
        answer: Callable[[Any], None],
        fail: Callable[[RpcError], None],
    ) -> Callable[[], None]:
        """A question of an upstream's to the client; on the upstream's thread."""
        if _ASKED.get(method) not in self._for_upstream() or self._version is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {short(method)}")
        tasks: list[asyncio.Task[None]] = []

        async def put() -> None:
            try:
                answer(await self._rpc.ask(method, params))
            except RpcError as error:
                fail(error)

        def begin() -> None:
            tasks.append(asyncio.ensure_future(put()))

        def withdraw() -> None:
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])

        self._loop.call_soon_threadsafe(begin)
        return withdraw

    def _set_level(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        """`logging/setLevel`: for the upstream, which is all that logs here."""
        level = params.get("level")
        if level not in _LEVELS:
            raise invalid_params("level", f"must be one of {', '.join(_LEVELS)}")
        if self._has_upstream:
            self._native.gateway.upstreams.set_level(level)
        return {}

    def _questions(
        self, params: dict[str, Any], meta: dict[str, Any]
    ) -> "Questions | Rounds | None":
        if f"{_META}protocolVersion" not in meta:
            return None
        capabilities = meta.get(f"{_META}clientCapabilities")
        return Rounds(params, possible=elicitation.offered(capabilities))

    async def _called(self, request: Request, result: Awaitable[Any], token: Any) -> Any:
        beat = None
        if type(token) in (int, str):
            beat = asyncio.ensure_future(self._report_progress(token))
        try:
            return _as_mcp(await result)
        except InputRequired as needed:
            asked = {"method": "elicitation/create", "params": needed.message}
            return {
                "resultType": "input_required",
                "inputRequests": {question_id(needed.asking.key): asked},
            }
        finally:
            if beat is not None:
                beat.cancel()

    async def _report_progress(self, token: int | str) -> None:
        """While a call takes long: clients count silence as a failure."""
        progress = 0
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            progress += 1
            message = "waiting for an answer, a lock or the disk"
            params = {"progressToken": token, "progress": progress, "message": message}
            self._rpc.notify("notifications/progress", params)

    # Memory

    def _list_resources(self, request: Request, params: dict[str, Any]) -> Any:
        """All of them on one page, under the limits of `memory/index`."""

        def listed() -> Any:
            session = self._native.gateway.sessions.get(_SESSION)
            return self._native.workers.run(lambda: self._resources(session))

        return self._with_session(request, lambda: self._native.lanes.in_order(_SESSION, listed))

    def _resources(self, session: "Session") -> dict[str, Any]:
        from pinfold.library import index

        documents = index(self._native.gateway, session).documents
        return {"resources": [memory.as_resource(each) for each in documents]}

    def _read_resource(self, request: Request, params: dict[str, Any]) -> Any:
        from pinfold_protocol.tools import ToolsCallParams

        uri, path = memory.uri_param(params)
        stateless = self._stateless(params)
        request.session_id = _SESSION
        typed = ToolsCallParams(_SESSION, "read_memory", memory.reading(path))

        def start() -> Any:
            result = self._native.call(request, typed, questions=_NOBODY, local=True)
            if not isinstance(result, Awaitable):
                return memory.as_contents(uri, result, stateless=stateless)
            return later(result)

        async def later(result: Awaitable[Any]) -> Any:
            return memory.as_contents(uri, await result, stateless=stateless)

        return self._with_session(request, start)

    def _list_templates(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        return {"resourceTemplates": []}

    def _subscribe(self, request: Request, params: dict[str, Any]) -> Any:
        uri, path = memory.uri_param(params)
        stateless = self._stateless(params)

        def subscribed() -> dict[str, Any]:
            from pinfold.library import document

            try:
                real = document(gateway, gateway.sessions.get(_SESSION), path)
            except ToolError as error:
                raise memory.failure(uri, error.kind, error.message, stateless=stateless) from None
            return self._subscriptions.add(uri, real)

        gateway = self._native.gateway
        start = lambda: self._native.workers.run(subscribed)  # noqa: E731
        return self._with_session(request, lambda: self._native.lanes.in_order(_SESSION, start))

    def _unsubscribe(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        return self._subscriptions.remove(memory.uri_param(params)[0])

    def _list_prompts(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        return {"prompts": memory.prompts()}

    def _get_prompt(self, request: Request, params: dict[str, Any]) -> Any:
        """It says where memory is, so that needs the session."""

        def told() -> dict[str, Any]:
            roots = self._native.gateway.sessions.get(_SESSION).roots
            return memory.prompt(params.get("name"), roots)

        return self._with_session(request, told)

    # Small things

    def _nothing(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _memory_changed_in_thread(self, params: "MemoryDidChangeParams") -> None:
        self._loop.call_soon_threadsafe(self._memory_changed, params)

    def _memory_changed(self, params: "MemoryDidChangeParams") -> None:
        if params.kind != "changed":
            self._rpc.notify("notifications/resources/list_changed", {})
        if uri := self._subscriptions.uri(params.path):
            self._rpc.notify("notifications/resources/updated", {"uri": uri})


def _path_of(uri: str) -> str | None:
    """A root that is no directory of this machine counts as none."""
    from pinfold.paths.uri import from_uri

    try:
        return from_uri(uri, "roots")
    except RpcError:
        return None


def _call_id(params: dict[str, Any], meta: dict[str, Any]) -> str | None:
    """The id of the model's call, from hosts that hand it on."""
    found = params.get("callId") or meta.get("pinfold/callId") or meta.get("claudecode/toolUseId")
    return found if isinstance(found, str) else None


def _as_mcp(result: dict[str, Any]) -> dict[str, Any]:
    """A read of managed memory also carries MCP's own hint to keep it."""
    if "pinfold/retention" not in result["_meta"]:
        return result
    content = [
        {**item, "annotations": {**_MANAGED, **(item.get("annotations") or {})}}
        for item in result["content"]
    ]
    return {**result, "content": content}


_Handler = Callable[[Mcp, Request, dict[str, Any]], Any]


def _one_page(handler: _Handler) -> _Handler:
    """Each list is told at once, so no cursor was ever given. Some clients send an empty one."""

    def listed(mcp: Mcp, request: Request, params: dict[str, Any]) -> Any:
        if params.get("cursor") not in (None, ""):
            raise invalid_params("cursor", "is none that was given; leave it out")
        return handler(mcp, request, params)

    return listed


_HANDLERS: dict[str, _Handler] = {
    "ping": Mcp._nothing,
    "server/discover": Mcp._discover,
    "logging/setLevel": Mcp._set_level,
    "tools/list": _one_page(Mcp._list_tools),
    "tools/call": Mcp._call_tool,
    "resources/list": _one_page(Mcp._list_resources),
    "resources/read": Mcp._read_resource,
    "resources/templates/list": _one_page(Mcp._list_templates),
    "resources/subscribe": Mcp._subscribe,
    "resources/unsubscribe": Mcp._unsubscribe,
    "prompts/list": _one_page(Mcp._list_prompts),
    "prompts/get": Mcp._get_prompt,
}
