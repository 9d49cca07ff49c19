"""Our own methods behind the door: which may run in place, which wait for whom, and the process.

A small read that the kernel can answer from its caches runs in place; everything else runs on a
pool of its own. Session messages take effect before any later message that names the session is
decided; changes to one path run in order of arrival; nothing else is ordered.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pinfold import __version__
from pinfold.doors.rpc import Request, Rpc
from pinfold.doors.stdio import claim, log
from pinfold.doors.wire import Wire
from pinfold_protocol import PROTOCOL_VERSION, SERVER_NAME

if TYPE_CHECKING:
    from pinfold.app import Gateway, Ticket
    from pinfold_protocol.tools import ToolsCallParams

_WORKERS = 64
_MAX_WAITING = 4096
_SETTLE_SECONDS = 0.6
_FLUSH_SECONDS = 0.3
_DEFAULT_MAX_MESSAGE = 64 << 20


class Native:
    """The service: a Gateway, and when its work is done."""

    def __init__(self, wire: Wire, watch: Callable[[int], None]) -> None:
        self._wire = wire
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="pinfold")
        self._barriers: dict[str, asyncio.Future[None]] = {}
        self._turns: dict[str, asyncio.Future[None]] = {}
        self._room = asyncio.Event()
        self._room.set()
        self._waiting = 0
        self._gateway: Gateway | None = None
        self.rpc: Rpc
        wire.on_drained = self._room.set

    # The lifecycle

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """LSP's members are read leniently, `initializationOptions.pinfold` strictly."""
        options = params.get("initializationOptions")
        ours = options.get("pinfold") if isinstance(options, dict) else None
        if ours is not None:
            self._set_options(ours)
        process = params.get("processId")
        if type(process) is int and process > 0:
            self._watch(process)
        return {"serverInfo": {"name": SERVER_NAME, "version": __version__}, **_capabilities()}

    def _set_options(self, raw: Any) -> None:
        from pinfold_protocol.convert import structure
        from pinfold_protocol.session import ConnectionOptions

        where = "initializationOptions.pinfold"
        options = structure(raw, ConnectionOptions, where)
        self.gateway.set_options(options)
        self._wire.framer.max_body = self.gateway.limits.max_message_bytes

    @property
    def gateway(self) -> "Gateway":
        """Made when it is first needed, so that `initialize` is answered early."""
        if self._gateway is None:
            from pinfold.app import Gateway

            self._gateway = Gateway()
        return self._gateway

    # Requests

    def knows(self, method: str) -> bool:
        """Whether the method is one of ours."""
        from pinfold_protocol.methods import METHODS

        return method in METHODS

    def begin(self, request: Request, params: dict[str, Any]) -> Any:
        """Begin a request: its result, or an awaitable of it. Raises RpcError."""
        from pinfold_protocol.convert import structure
        from pinfold_protocol.methods import METHODS

        given = {name: value for name, value in params.items() if name != "_meta"}
        typed = structure(given, METHODS[request.method].params)
        request.session_id = getattr(typed, "session_id", None)
        return _HANDLERS[request.method](self, request, typed)

    def open_session(self, request: Request, params: Any) -> Awaitable[Any]:
        """`session/open`."""
        return self._as_barrier(request, lambda: self.gateway.open_session(params))

    def configure_session(self, request: Request, params: Any) -> Awaitable[Any]:
        """`session/configure`."""
        return self._as_barrier(request, lambda: self.gateway.configure_session(params))

    def close_session(self, request: Request, params: Any) -> Awaitable[Any]:
        """`session/close`: running changes finish, everything else of the session is cancelled."""
        mine = [each for each in self.rpc.running.values() if each is not request]
        mine = [each for each in mine if each.session_id == params.session_id]

        async def settled() -> None:
            await self._settle(mine)

        def close() -> Any:
            return self.gateway.close_session(params.session_id)

        return self._as_barrier(request, close, before=settled)

    def list_sessions(self, request: Request, params: Any) -> Awaitable[Any]:
        """`session/list`, after all session messages before it."""
        pending = list(self._barriers.values())

        async def listed() -> Any:
            from pinfold_protocol.session import SessionListResult

            await _all(pending)
            return _plain(SessionListResult(self.gateway.summaries()))

        return listed()

    def memory_roots(self, request: Request, params: Any) -> Awaitable[Any]:
        """`memory/roots`."""

        def report() -> Any:
            from pinfold.memory.roots import report
            from pinfold_protocol.session import RootsResult

            session = self.gateway.sessions.get(params.session_id)
            return RootsResult(report(session.roots, session.scope))

        return self._after_barrier(params.session_id, report)

    def list_tools(self, request: Request, params: Any) -> Any:
        """`tools/list`."""
        from pinfold.tools.registry import offered
        from pinfold_protocol.tools import ToolsListResult

        if params.session_id is not None and self._free(params.session_id):
            self.gateway.sessions.get(params.session_id)
        return _plain(ToolsListResult(offered()))

    def explain(self, request: Request, params: Any) -> Awaitable[Any]:
        """`policy/explain`."""
        return self._after_barrier(params.session_id, lambda: self.gateway.explain(params))

    def call(self, request: Request, params: "ToolsCallParams") -> Any:
        """`tools/call`: in place if that cannot block, else on the pool."""
        from pinfold.app import Ticket
        from pinfold.paths.errors import WouldBlock
        from pinfold.tools.registry import TOOLS

        ticket = Ticket()
        tool = TOOLS.get(params.name)
        request.changing = tool is not None and tool.action == "change"
        request.cancel = ticket.cancel
        if self._free(params.session_id) and not request.changing and not self._wire.congested:
            try:
                return _plain(self.gateway.call(params, ticket, cached=True))
            except WouldBlock:
                pass
        return self._call_later(request, params, ticket)

    async def _call_later(
        self, request: Request, params: "ToolsCallParams", ticket: "Ticket"
    ) -> Any:
        from pinfold.app import Cancelled

        await self._barrier(params.session_id)

        def work() -> Any:
            return self.gateway.call(params, ticket)

        try:
            if not request.changing:
                return _plain(await self._run(work))
            async with self._in_turn(self._turn_key(params)):
                return _plain(await self._run(work))
        except Cancelled:
            raise asyncio.CancelledError from None

    def _turn_key(self, params: "ToolsCallParams") -> str:
        """Changes queue up by the path as written; other spellings of it exclude each other, but
        are not ordered."""
        from pinfold.policy.names import collapse

        path = params.arguments.get("file_path")
        if not isinstance(path, str) or path.startswith("~"):
            return str(path)
        base = self.gateway.sessions.get(params.session_id).project_root
        return collapse(path if path.startswith("/") else f"{base}/{path}")

    # Order

    def _free(self, session_id: str) -> bool:
        return session_id not in self._barriers

    async def _barrier(self, session_id: str) -> None:
        while barrier := self._barriers.get(session_id):
            await asyncio.wait((barrier,))

    async def _after_barrier(self, session_id: str, work: Callable[[], Any]) -> Any:
        await self._barrier(session_id)
        return _plain(await self._run(work))

    def _as_barrier(
        self,
        request: Request,
        work: Callable[[], Any],
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Awaitable[Any]:
        """Run a session message; what names the session later waits until it has taken effect."""
        request.cancel = lambda: False  # it takes effect in any case
        request.changing = True
        session_id = request.session_id
        if session_id is None:
            return self._unnamed(work)
        previous = self._barriers.get(session_id)
        mine: asyncio.Future[None] = self._loop.create_future()
        self._barriers[session_id] = mine

        async def run() -> Any:
            try:
                if previous is not None:
                    await asyncio.wait((previous,))
                if before is not None:
                    await before()
                return _plain(await self._loop.run_in_executor(self._pool, work))
            finally:
                mine.set_result(None)
                if self._barriers.get(session_id) is mine:
                    del self._barriers[session_id]

        return run()

    async def _unnamed(self, work: Callable[[], Any]) -> Any:
        return _plain(await self._loop.run_in_executor(self._pool, work))

    @asynccontextmanager
    async def _in_turn(self, key: str) -> AsyncIterator[None]:
        previous = self._turns.get(key)
        mine: asyncio.Future[None] = self._loop.create_future()
        self._turns[key] = mine
        try:
            if previous is not None:
                await asyncio.wait((previous,))
            yield
        finally:
            mine.set_result(None)
            if self._turns.get(key) is mine:
                del self._turns[key]

    async def _run(self, work: Callable[[], Any]) -> Any:
        """Run on the pool, but begin nothing while the host is far behind with reading."""
        self._waiting += 1
        if self._waiting > _MAX_WAITING:
            self._wire.pause()
        try:
            while self._wire.congested:
                self._room.clear()
                await self._room.wait()
            return await self._loop.run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1
            if self._waiting <= _MAX_WAITING:
                self._wire.resume()

    # The end

    async def settle(self) -> None:
        """Let running changes finish, end everything else; within a second."""
        await self._settle([r for r in self.rpc.running.values() if r.method != "shutdown"])

    async def _settle(self, requests: list[Request]) -> None:
        changes = [each.task for each in requests if each.changing and each.task is not None]
        for each in requests:
            if not each.changing:
                self.rpc.cancel(each)
        if changes:
            await asyncio.wait(changes, timeout=_SETTLE_SECONDS)
        for each in requests:
            self.rpc.cancel(each)


async def _all(futures: list[asyncio.Future[None]]) -> None:
    if futures:
        await asyncio.wait(futures)


def _plain(value: Any) -> Any:
    from pinfold_protocol.convert import unstructure

    return unstructure(value)


def _capabilities() -> dict[str, Any]:
    from pinfold_protocol.methods import METHODS
    from pinfold_protocol.session import PROFILES

    ours = {
        "protocolVersion": PROTOCOL_VERSION,
        "methods": [*METHODS],
        "tools": ["read_file", "read_memory", "write_file", "edit"],
        "profiles": [*PROFILES],
    }
    return {"capabilities": {"experimental": {"pinfold": ours}}}


_HANDLERS: dict[str, Callable[[Native, Request, Any], Any]] = {
    "session/open": Native.open_session,
    "session/configure": Native.configure_session,
    "session/close": Native.close_session,
    "session/list": Native.list_sessions,
    "memory/roots": Native.memory_roots,
    "tools/list": Native.list_tools,
    "tools/call": Native.call,
    "policy/explain": Native.explain,
}


class Process:
    """The gateway as a process: its streams, its signals, the process that it watches."""

    def __init__(self, reading: int, writing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire = Wire(reading, writing, _DEFAULT_MAX_MESSAGE)
        self._native = Native(self._wire, self._watch_process)
        self._rpc = Rpc(self._wire, self._native, self.stop)
        self._native.rpc = self._rpc
        self._wire.on_lost = lambda: self.stop(1)
        self._status: asyncio.Future[int] = self._loop.create_future()
        self._stopping = False

    async def run(self) -> int:
        """Serve until the end; the exit status."""
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            self._loop.add_signal_handler(number, self.stop, status)
        self._wire.start()
        status = await self._status
        await self._native.settle()
        await self._wire.flush(_FLUSH_SECONDS)
        return status

    def stop(self, status: int) -> None:
        """Begin to end; the first call decides the status."""
        if not self._stopping:
            self._stopping = True
            self._wire.stop_reading()
            self._status.set_result(status)

    def _watch_process(self, process: int) -> None:
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            log("the process named in initialize is gone")
            self._loop.call_soon(self.stop, 1)
        except (OSError, AttributeError):  # an old kernel, or another system
            self._poll_process(process)
        else:
            self._loop.add_reader(descriptor, self.stop, 1)

    def _poll_process(self, process: int) -> None:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            self.stop(1)
            return
        except OSError:
            pass
        self._loop.call_later(1.0, self._poll_process, process)


def serve() -> int:
    """Serve on stdio until the host is done; the exit status.

    Threads may be stuck in a dead file system: whoever calls this leaves with `os._exit`.
    """
    reading, writing = claim()

    async def main() -> int:
        return await Process(reading, writing).run()

    loop = asyncio.new_event_loop()
    return loop.run_until_complete(main())
