"""An asyncio client: spawn a gateway, open sessions, call tools.

async with await Client.spawn() as client:
    session = await client.open_session("dream", "/path/to/project")
    result = await session.call("read_file", {"file_path": "notes.md"})
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import msgspec

from pinfold_protocol import methods
from pinfold_protocol.compaction import (
    CompactParams,
    CompactResult,
    CompactSettings,
    Format,
    Reread,
    ResetResult,
    Trigger,
)
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.decision import Decision, Outcome, PermissionParams, RuleSpec
from pinfold_protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError
from pinfold_protocol.framing import Body, Framer, FramingError, frame
from pinfold_protocol.memory import MemoryIndexResult
from pinfold_protocol.retention import RetentionTag
from pinfold_protocol.session import MemoryOptions, Profile, SessionResult, TurnResult
from pinfold_protocol.tools import Tool, ToolResult, ToolsListResult

OnPermission = Callable[[PermissionParams], Awaitable[Outcome]]
DEFAULT_COMMAND = (sys.executable, "-m", "pinfold", "serve")
_MAX_REPLY = 1 << 30
_PATIENCE = 3.0
"""Seconds that a gateway has to answer `shutdown`, and then to end."""


class ConnectionLost(Exception):
    """The gateway ended, or its output could not be understood, before it answered."""


class Client:
    """One connection to one gateway. Not thread-safe: use it from the loop that made it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._trouble: Exception | None = None
        self.on_notification: Callable[[str, Any], None] = lambda method, params: None
        self.on_permission: OnPermission | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str] = DEFAULT_COMMAND,
        *,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        options: dict[str, Any] | None = None,
        on_permission: "OnPermission | None" = None,
    ) -> Self:
        """Start `command`, and `initialize` it; `options` is `initializationOptions.pinfold`.
        `on_permission` answers what base rules ask; without it, every question is a denial.

        Raises OSError if it cannot be started, RpcError if it refuses the options.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=env,
            cwd=cwd,
        )
        client = cls(process)
        client.on_permission = on_permission
        try:
            await client._initialize(options)
        except BaseException:
            client._signal("kill")
            await client._end()
            raise
        return client

    async def _initialize(self, options: dict[str, Any] | None) -> None:
        asks = {"experimental": {"pinfold": {"permissionRequests": True}}}
        capabilities = {} if self.on_permission is None else asks
        params: dict[str, Any] = {"processId": os.getpid(), "capabilities": capabilities}
        if options is not None:
            params["initializationOptions"] = {"pinfold": options}
        self.server: dict[str, Any] = await self.request(methods.INITIALIZE, params)
        await self.notify(methods.INITIALIZED, {})

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result as plain JSON.

        Raises RpcError for an error answer, ConnectionLost if none can come, ValueError for
        params that JSON cannot say (NaN). Cancelling the awaiting task sends `$/cancelRequest`.
        """
        self._next_id += 1
        request_id = self._next_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            await self._send({"id": request_id, "method": method, "params": params})
            return await future
        except asyncio.CancelledError:
            self._write({"method": methods.CANCEL_REQUEST, "params": {"id": request_id}})
            raise
        finally:
            self._waiting.pop(request_id, None)

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        await self._send({"method": method, "params": params})

    async def open_session(
        self,
        profile: Profile,
        project_root: str,
        *,
        session_id: str | None = None,
        scope: dict[str, Any] | None = None,
        memory: MemoryOptions | None = None,
        rules: Sequence[RuleSpec] | None = None,
        backend: str | None = None,
    ) -> "Session":
        """`session/open`; `scope` holds overrides in the names of the wire, `backend` names an
        upstream of this connection (None: the local disk)."""
        params: dict[str, Any] = {"profile": profile, "projectRoot": project_root}
        more = {
            "sessionId": session_id,
            "scope": scope,
            "memory": unstructure(memory) if memory else None,
            "rules": [unstructure(rule) for rule in rules] if rules is not None else None,
            "backend": backend,
        }
        params |= {name: value for name, value in more.items() if value is not None}
        opened = await self.request(methods.SESSION_OPEN, params)
        return Session(self, structure(opened, SessionResult))

    async def compact(
        self,
        history: Sequence[Any],
        style: Format,
        trigger: Trigger,
        settings: CompactSettings | None = None,
        *,
        tags: Mapping[str, RetentionTag] | None = None,
        session_id: str | None = None,
    ) -> CompactResult:
        """`context/compact`. Without a session there are no roots to judge paths by: only `tags`
        (by call id, or in the history itself) tell what is memory. Raises RpcError."""
        params = CompactParams(
            style, list(history), trigger, session_id, settings, dict(tags) if tags else None
        )
        result = await self.request(methods.CONTEXT_COMPACT, unstructure(params))
        return structure(result, CompactResult)

    async def close(self) -> int:
        """`shutdown`, `exit`, and the gateway's exit status. A dead gateway is no error; one that
        does not answer within a few seconds is ended."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.request(methods.SHUTDOWN)
                await self.notify(methods.EXIT)
        except (ConnectionLost, RpcError, TimeoutError):
            pass
        except asyncio.CancelledError:
            self._signal("terminate")
            raise
        return await self._end()

    async def _end(self) -> int:
        if self._process.stdin is not None:
            self._process.stdin.close()
        for insist in ("terminate", "kill"):
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._process.wait()
            except TimeoutError:
                self._signal(insist)
        status = await self._process.wait()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        return status

    def _signal(self, how: str) -> None:
        try:
            getattr(self._process, how)()
        except ProcessLookupError:  # it has ended by itself
            pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _send(self, message: dict[str, Any]) -> None:
        if self._reader.done():
            raise ConnectionLost("the gateway is gone") from self._trouble
        self._write(message)
        stdin = self._process.stdin
        assert stdin is not None
        try:
            await stdin.drain()
        except ConnectionError as error:
            raise ConnectionLost("the gateway is gone") from error

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message, allow_nan=False).encode()
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(frame(body) + body)

    async def _read(self) -> None:
        framer = Framer(_MAX_REPLY)
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while data := await stdout.read(1 << 20):
                framer.receive(data)
                while event := framer.next_event():
                    if isinstance(event, Body):
                        self._dispatch(json.loads(event.data))
        except (ValueError, KeyError, TypeError, AttributeError, FramingError) as error:
            self._trouble = error  # not a gateway: whoever waits is told
        finally:
            for future in self._waiting.values():
                if not future.done():
                    lost = ConnectionLost("the gateway ended before it answered")
                    lost.__cause__ = self._trouble
                    future.set_exception(lost)

    async def _answer(self, message: dict[str, Any]) -> None:
        """A request of the gateway. A callback that fails is an error, and so a denial."""
        answer: dict[str, Any]
        try:
            if message["method"] != methods.PERMISSION_REQUEST or self.on_permission is None:
                raise RpcError(METHOD_NOT_FOUND, "not known here")
            question = structure(message.get("params"), PermissionParams)
            answer = {"result": {"outcome": await self.on_permission(question)}}
        except RpcError as error:
            answer = {"error": {"code": error.code, "message": error.message}}
        except Exception as error:  # noqa: BLE001 - as above
            self._failed("on_permission failed", error)
            answer = {"error": {"code": INTERNAL_ERROR, "message": "on_permission failed"}}
        self._write({"id": message["id"], **answer})

    def _failed(self, what: str, error: Exception) -> None:
        context = {"message": what, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    def _notified(self, method: str, params: Any) -> None:
        try:
            self.on_notification(method, params)
        except Exception as error:  # noqa: BLE001 - the callback's trouble is not the gateway's
            self._failed(f"on_notification failed for {method}", error)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            task = asyncio.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        if "method" in message:
            self._notified(message["method"], message.get("params"))
            return
        future = self._waiting.get(message.get("id", 0) or 0)
        if future is None or future.done():
            return
        if error := message.get("error"):
            future.set_exception(RpcError(error["code"], error["message"], error.get("data")))
        else:
            future.set_result(message["result"])


class Session(msgspec.Struct, frozen=True):
    """An open session of a Client."""

    client: Client
    opened: SessionResult

    @property
    def session_id(self) -> str:
        """The id that calls name."""
        return self.opened.session_id

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str | None = None
    ) -> ToolResult:
        """`tools/call`. A failure that a model should read is a result with `is_error`."""
        params: dict[str, Any] = {
            "sessionId": self.session_id,
            "name": name,
            "arguments": arguments,
        }
        if call_id is not None:
            params["callId"] = call_id
        return structure(await self.client.request(methods.TOOLS_CALL, params), ToolResult)

    async def tools(self) -> list[Tool]:
        """`tools/list`: the tools that this session may call, to be offered to a model."""
        params = {"sessionId": self.session_id}
        result = await self.client.request(methods.TOOLS_LIST, params)
        return structure(result, ToolsListResult).tools

    async def index(self) -> MemoryIndexResult:
        """`memory/index`: the memory documents that this session's agent may be told of."""
        params = {"sessionId": self.session_id}
        return structure(await self.client.request(methods.MEMORY_INDEX, params), MemoryIndexResult)

    async def compact(
        self,
        history: Sequence[Any],
        style: Format,
        trigger: Trigger,
        settings: CompactSettings | None = None,
        *,
        tags: Mapping[str, RetentionTag] | None = None,
    ) -> CompactResult:
        """`context/compact`: the history with old tool results cleared, and memory kept. `tags`
        need not be given for calls that were made with a `call_id`."""
        return await self.client.compact(
            history, style, trigger, settings, tags=tags, session_id=self.session_id
        )

    @asynccontextmanager
    async def turn(
        self, profile: Profile | None = None, *, scope: dict[str, Any] | None = None
    ) -> AsyncIterator[TurnResult]:
        """`turn/begin`, and `turn/end` at the end: narrowed to a profile, or by single members."""
        params = {"sessionId": self.session_id, "profile": profile, "scope": scope}
        begun = structure(await self.client.request(methods.TURN_BEGIN, params), TurnResult)
        try:
            yield begun
        finally:
            params = {"sessionId": self.session_id, "turnId": begun.turn_id}
            await self.client.request(methods.TURN_END, params)

    async def explain(self, name: str, arguments: dict[str, Any]) -> Decision:
        """`policy/explain`, also for tools that the host runs itself."""
        params = {"sessionId": self.session_id, "name": name, "arguments": arguments}
        return structure(await self.client.request(methods.POLICY_EXPLAIN, params), Decision)

    async def reset(self) -> list[Reread]:
        """`context/reset`, after a compaction by other means: what to read again."""
        params = {"sessionId": self.session_id}
        result = await self.client.request(methods.CONTEXT_RESET, params)
        return structure(result, ResetResult).reread

    async def close(self) -> dict[str, int]:
        """`session/close`: the counts of calls and denials."""
        params = {"sessionId": self.session_id}
        counts: dict[str, int] = await self.client.request(methods.SESSION_CLOSE, params)
        return counts
