"""JSON-RPC: envelopes, ids, the lifecycle, cancellation. Every request is answered, exactly once.

Knows no method but those of the lifecycle; a service does the rest.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pinfold.doors import twice
from pinfold.doors.codec import parse, serialize
from pinfold.doors.stdio import log_exception
from pinfold.doors.wire import Wire
from pinfold_protocol import errors
from pinfold_protocol.errors import RpcError, invalid_params, short
from pinfold_protocol.framing import Oversized

RequestId = int | str
_INVALID = object()
_MAX_HELD = 192 << 20
_MAX_RUNNING = 20_000
"""Bytes and number of requests under way above which further ones are refused."""


class Request:
    """A request under way. `answered`: the host has its answer. `asking`: it waits for an answer
    of the client. `cancel` is what else must happen when it is cancelled: it returns False if it
    is too late, and then the request is answered as if nobody had asked."""

    def __init__(self, request_id: RequestId, method: str, size: int = 0) -> None:
        self.id = request_id
        self.size = size
        self.method = method
        self.session_id: str | None = None
        self.changing = False
        self.asking = False
        self.answered = False
        self.cancel: Callable[[], bool] = lambda: True
        self.work: asyncio.Future[Any] | None = None


class Dialect(Protocol):
    """Another lifecycle than LSP's over the same envelopes."""

    def begin(self, request: Request, params: dict[str, Any]) -> Any:
        """The result, or an awaitable of it. Raises RpcError."""

    def notification(self, method: str, params: Any) -> None:
        """A notification of the client."""

    def withdrawal(self, question_id: str) -> tuple[str, Any]:
        """The notification that takes a question back."""

    def ended(self) -> None:
        """The input has ended; nothing more will come."""


class Service(Protocol):
    """What is behind the door."""

    def speaks(self, method: str, params: Any) -> Dialect | None:
        """The dialect that a first request tells; None for LSP's and ours."""

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        """The result of `initialize`. Raises RpcError."""

    def knows(self, method: str) -> bool:
        """Whether a request of this name can be begun."""

    def begin(self, request: Request, params: Any) -> Any:
        """The result, or an awaitable of it. Raises RpcError."""

    async def settle(self) -> None:
        """Let running changes finish, end everything else."""


class Elsewhere(Protocol):
    """What is mounted behind the door for methods that are none of ours."""

    def begin(self, request: Request, params: Any) -> Any:
        """The result, or an awaitable of it. Raises RpcError, -32601 for a method that it does not
        know either."""

    def notification(self, method: str, params: Any) -> None:
        """A notification of the client; it has taken effect when this returns."""


class Rpc:
    """One connection."""

    def __init__(self, wire: Wire, service: Service, stop: Callable[[int], None]) -> None:
        self._wire = wire
        self._service = service
        self._stop = stop
        self.running: dict[RequestId, Request] = {}
        self.initialized = False
        self.shut_down = False
        self.heard = False
        self.greeted = False
        """Whether the first request has been answered already, before all this was loaded."""
        self.dialect: Dialect | None = None
        self.elsewhere: Elsewhere | None = None
        self._held = 0
        self._size = 0
        self._read = b""
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._questions = 0
        wire.on_body = self._body
        wire.on_oversized = self._oversized
        wire.on_broken = self._broken
        wire.on_end = self._end

    # What arrives

    def _body(self, body: bytes) -> None:
        self.heard = True
        self._size = len(body)
        self._read = body
        try:
            message = parse(body)
        except ValueError as error:
            self._fail(None, RpcError(errors.PARSE_ERROR, f"Parse error: {error}"))
            return
        try:
            self._message(message)
        except RpcError as error:
            readable = message.get("id") if isinstance(message, dict) else None
            free = _is_id(readable) and readable not in self.running
            self._fail(readable if free else None, error)
        finally:
            self._read = b""

    def _oversized(self, event: Oversized) -> None:
        self.heard = True
        limit = self._wire.framer.max_body
        message = f"Message too large: {event.length} bytes, the limit is {limit}"
        from pinfold_protocol.oversized import id_of_oversized

        request_id = id_of_oversized(event)
        if request_id in self.running:
            request_id = None
        self._fail(request_id, RpcError(errors.MESSAGE_TOO_LARGE, message))

    def _broken(self, why: str) -> None:
        self._fail(None, RpcError(errors.PARSE_ERROR, f"The stream cannot be read further: {why}"))
        self._stop(1)

    def _end(self) -> None:
        if self._wire.framer.mid_message and not self.shut_down:
            error = RpcError(errors.PARSE_ERROR, "The input ended inside of a message")
            self._fail(None, error)
            self._stop(1)
        elif self.dialect is not None:
            self.dialect.ended()
        else:
            self._stop(0 if self.shut_down or not self.heard else 1)

    def _message(self, message: Any) -> None:
        if isinstance(message, list):
            raise _not_a_request("batches are not supported")
        if not isinstance(message, dict):
            raise _not_a_request("not an object")
        if message.get("jsonrpc") != "2.0":
            raise _not_a_request('jsonrpc must be "2.0"')
        method = message.get("method", _INVALID)
        if method is _INVALID and ("result" in message or "error" in message):
            self._answered(message)
            return
        if not isinstance(method, str):
            raise _not_a_request("method must be a string")
        params = message.get("params")
        if "id" not in message:
            self._notification(method, params)
        elif _is_id(message["id"]):
            self._request(message["id"], method, params)
        else:
            raise _not_a_request("id must be a string or a whole number")

    # Notifications

    def _notification(self, method: str, params: Any) -> None:
        if self.dialect is not None:
            self.dialect.notification(method, params)
        elif method == "exit":
            self._stop(0 if self.shut_down else 1)
        elif method == "shutdown":  # some editors send it without an id
            self.shut_down = self.initialized
        elif method == "$/cancelRequest" and isinstance(params, dict):
            wanted = params.get("id")
            if _is_id(wanted) and wanted in self.running:
                self.cancel(self.running[wanted])
        elif self.elsewhere is not None and not self.shut_down:
            self.elsewhere.notification(method, params)

    def cancel(self, request: Request) -> None:
        """Answer a request as cancelled now, unless it is too late for that."""
        if request.cancel():
            self.give_up(request)

    def forget(self, request: Request) -> None:
        """Cancel a request, unless it is too late for that, and never answer it."""
        if request.cancel() and self._remove(request) and request.work is not None:
            request.work.cancel()

    def give_up(self, request: Request) -> None:
        """Answer a request as cancelled, whatever becomes of its work."""
        if request.work is not None:
            request.work.cancel()
        self._answer_error(request, RpcError(errors.REQUEST_CANCELLED, "Request cancelled"))

    # Requests

    def _request(self, request_id: RequestId, method: str, params: Any) -> None:
        if request_id in self.running:
            error = _not_a_request("a request with this id is in flight")
            error.data = {"id": request_id}
            self._fail(None, error)
            return
        request = Request(request_id, method, self._size)
        request.answered, self.greeted = self.greeted, False
        if not self.initialized and self.dialect is None:
            self.dialect = self._service.speaks(method, params)
        self.running[request_id] = request
        self._held += request.size
        try:
            self._require_state(method)
            if self._held > _MAX_HELD or len(self.running) > _MAX_RUNNING:
                self._require_room(method)
            result = self._begin(request, params)
        except RpcError as error:
            self._answer_error(request, error)
        except Exception as error:  # noqa: BLE001 - the guard at the door: a bug is answered too
            self._answer_error(request, _internal(error))
        else:
            if type(result) is not dict and isinstance(result, Awaitable):  # most are dicts
                request.work = asyncio.ensure_future(result)
                request.work.add_done_callback(lambda work: self._finish(request, work))
            else:
                self._answer(request, result)

    def _remove(self, request: Request) -> bool:
        """False if it has been answered already."""
        if self.running.get(request.id) is not request:
            return False
        del self.running[request.id]
        self._held -= request.size
        return True

    def _require_room(self, method: str) -> None:
        """What is held for the host is bounded; the end and what leads to it are always heard."""
        if method not in ("shutdown", "exit"):
            message = "Too many requests are under way; send it again when some are answered"
            raise RpcError(errors.REQUEST_CANCELLED, message, {"running": len(self.running)})

    def _require_state(self, method: str) -> None:
        if self.dialect is not None:
            return
        if self.shut_down and method != "exit":
            raise _not_a_request("the gateway has been shut down")
        if method == "initialize":
            if self.initialized:
                raise _not_a_request("already initialized")
        elif not self.initialized and method != "exit":
            raise RpcError(errors.SERVER_NOT_INITIALIZED, "Not initialized: send initialize first")

    def _begin(self, request: Request, params: Any) -> Any:
        if request.method in twice.METHODS:
            twice.require_once(self._read, request.method)
        if self.dialect is not None:
            return self.dialect.begin(request, _as_object(params))
        if request.method == "initialize":
            result = self._service.initialize(_as_object(params))
            self.initialized = True
            return result
        if request.method == "shutdown":
            self.shut_down = True
            request.cancel = lambda: False
            return self._service.settle()
        if request.method == "exit":
            asyncio.get_running_loop().call_soon(self._stop, 0 if self.shut_down else 1)
            return None
        if not self._service.knows(request.method):
            return self._elsewhere(request, params)
        return self._service.begin(request, _as_object(params))

    def _elsewhere(self, request: Request, params: Any) -> Any:
        """A language server is mounted here for editors; for others nobody is."""
        if self.elsewhere is not None:
            return self.elsewhere.begin(request, params)
        method = short(request.method)
        message = f"Method not found: {method}"
        raise RpcError(errors.METHOD_NOT_FOUND, message, {"method": method})

    def _finish(self, request: Request, work: "asyncio.Future[Any]") -> None:
        """The work of a request has ended, answered before or not: its outcome is looked at in any
        case, or the loop would log it."""
        request.work = None  # its traceback may lead back here, with all that the request held
        if work.cancelled():
            self._answer_error(request, RpcError(errors.REQUEST_CANCELLED, "Request cancelled"))
        elif (error := work.exception()) is None:
            self._answer(request, work.result())
        elif isinstance(error, RpcError):
            self._answer_error(request, error)
        else:
            self._answer_error(request, _internal(error))

    # Questions of ours

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request to the client: its result. Raises RpcError for an error. When this is
        cancelled, the client is told."""
        self._questions += 1
        question_id = f"pinfold-{self._questions}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[question_id] = future
        self._send({"id": question_id, "method": method, "params": params})
        try:
            return await future
        except asyncio.CancelledError:
            self._withdraw(question_id)
            raise
        finally:
            del self._asked[question_id]

    def _withdraw(self, question_id: str) -> None:
        if self.dialect is None:
            self.notify("$/cancelRequest", {"id": question_id})
        else:
            self.notify(*self.dialect.withdrawal(question_id))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification to the client."""
        self._send({"method": method, "params": params})

    def stop(self, status: int) -> None:
        """Begin to end."""
        self._stop(status)

    def _send(self, message: dict[str, Any]) -> None:
        self._wire.send(serialize({"jsonrpc": "2.0", **message}))

    def _answered(self, message: dict[str, Any]) -> None:
        """An answer of the client; one that nobody waits for is none of our business."""
        question_id = message.get("id")
        future = self._asked.get(question_id) if isinstance(question_id, str) else None
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RpcError(errors.INTERNAL_ERROR, "the client answered an error"))
        else:
            future.set_result(message["result"])

    # Answers

    def _answer(self, request: Request, result: Any) -> None:
        if request.answered:
            self._remove(request)
            return
        try:
            body = serialize({"jsonrpc": "2.0", "id": request.id, "result": result})
        except (TypeError, ValueError, RecursionError) as error:
            self._answer_error(request, _internal(error))
            return
        if self._remove(request):
            self._wire.send(body)

    def _answer_error(self, request: Request, error: RpcError) -> None:
        if self._remove(request) and not request.answered:
            self._fail(request.id, error)

    def _fail(self, request_id: RequestId | None, error: RpcError) -> None:
        members: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            members["data"] = error.data
        self._wire.send(serialize({"jsonrpc": "2.0", "id": request_id, "error": members}))


def _is_id(value: Any) -> bool:
    return type(value) is str or (type(value) is int and -(2**63) <= value < 2**64)


def _not_a_request(problem: str) -> RpcError:
    return RpcError(errors.INVALID_REQUEST, f"Invalid request: {problem}")


def _as_object(params: Any) -> dict[str, Any]:
    """Absent, null and empty params are the same. Raises RpcError (-32602) for anything else."""
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise invalid_params("", "params must be an object")
    return params


def _internal(error: BaseException) -> RpcError:
    error_id = os.urandom(4).hex()
    log_exception(error, error_id)
    message = "Internal error; the gateway's log has more under this id"
    return RpcError(errors.INTERNAL_ERROR, message, {"errorId": error_id})
