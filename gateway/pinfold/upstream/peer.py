"""One upstream, spoken to as an MCP client: started once, again when it has died, ended with us.

Threads, no loop: whoever calls waits here. A thread writes, so that an upstream which does not read
keeps nobody from cancelling; a thread reads, so that nothing an upstream says waits for anybody.
"""

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pinfold.upstream.events import Events, Questions
from pinfold.upstream.mapping import Catalog
from pinfold.upstream.messages import line_of, parse, without_ours
from pinfold.upstream.process import Child
from pinfold.upstream.waiting import GaveUp, Params, Waiting
from pinfold_protocol import SERVER_NAME
from pinfold_protocol.errors import INTERNAL_ERROR, RpcError, ToolError, short
from pinfold_protocol.framing import EDGE, Body, LineFramer, Oversized
from pinfold_protocol.oversized import id_of_oversized_answer
from pinfold_protocol.session import UpstreamOptions

REVISION = "2025-11-25"
START_SECONDS = 60.0
"""How long an upstream may take to answer `initialize` and `tools/list`; `npx` may download it."""
END_SECONDS = 0.5
LISTING_SECONDS = 0.5
"""Its tools are listed again no sooner than so long after the last time."""
LAST_SECONDS = 2.0
"""How long is read on where the process has ended and its output has not."""
_BACKOFF = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_LONGEST_WAIT = 2.0
"""A call waits for the next start so long, and fails where it would be longer."""
_LINGER_SECONDS = 0.2
"""Between the end of what an upstream says and its own, if it ends by itself."""
_STEADY_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_TOOLS = 1000
_MOST_QUEUED = 256
"""Answers and notifications of ours that wait for an upstream which does not read."""


class _Life:
    """One process from its start to its end, and what waits for it."""

    def __init__(self, child: Child, limit: int) -> None:
        self.child = child
        self.framer = LineFramer(limit)
        self.waiting: dict[int, Waiting] = {}
        self.queue: deque[tuple[Waiting | None, bytes]] = deque()
        self.changed = threading.Condition()
        self.over = False
        self.ended = False
        self.status: int | None = None
        """With which it ended, where it did so by itself; a signal counts below zero."""
        self.questions: Questions


class Peer:
    """An upstream by name. `limit`: the bytes of its longest message, now."""

    def __init__(
        self,
        name: str,
        options: UpstreamOptions,
        env: dict[str, str],
        events: Events,
        limit: Callable[[], int],
    ) -> None:
        self.name = name
        self.catalog = Catalog(name, "", (), options)
        self.server: Params = {}
        self.can: Params = {}
        self._options = options
        self._env = {**env, **(options.env or {})}
        self._cwd = options.cwd
        if self._cwd is not None and self._cwd.startswith("~/"):
            self._cwd = env.get("HOME", os.path.expanduser("~")) + self._cwd[1:]
        self._events = events
        self._limit = limit
        self._ids = itertools.count(1)
        self._starting = threading.Lock()
        self._life: _Life | None = None
        self._failures = 0
        self._not_before = 0.0
        self._started = 0.0
        self._closed = False
        self._refreshing = threading.Lock()
        self._stale = False
        self._level: str | None = None
        self._reported: set[str] = set()

    # For whoever calls

    def start(self) -> None:
        """See to it that it runs. Raises ToolError `backend`."""
        self._alive()

    def call(self, tool: str, arguments: Params, waiting: Waiting) -> Params:
        """`tools/call`: its result, without `pinfold/` keys. Never sent twice.

        Raises ToolError `backend`, and GaveUp as `Waiting.wait` does.
        """
        params: Params = {"name": tool, "arguments": arguments}
        life = self._alive()
        try:
            result = self._request(life, "tools/call", params, waiting)
        except RpcError as error:
            message = f"{self.name} answered an error: {short(error.message)}"
            raise ToolError("backend", message, code=error.code) from None
        if not isinstance(result, dict) or not isinstance(result.get("content"), list):
            raise ToolError("backend", f"{self.name} answered something that is no result.")
        if not all(isinstance(item, dict) for item in result["content"]):
            raise ToolError("backend", f"{self.name} answered something that is no result.")
        self._failures = 0
        found: Params = without_ours(result)
        return found

    def set_level(self, level: str) -> None:
        """`logging/setLevel`, for now and for later starts; without waiting for an answer."""
        self._level = level
        life = self._life
        if life is not None and not life.over and "logging" in self.can:
            self._post(
                life,
                {"id": next(self._ids), "method": "logging/setLevel", "params": {"level": level}},
            )

    def close(self, seconds: float = END_SECONDS) -> None:
        """The end: its input is closed; what still runs after so long is killed."""
        self._closed = True
        life = self._life
        if life is not None:
            self._over(life, seconds)

    # Its life

    def _alive(self) -> _Life:
        life = self._life
        if life is not None and not life.over:
            return life
        with self._starting:
            life = self._life
            if life is not None and not life.over:
                return life
            if self._closed:
                raise ToolError("backend", f"{self.name} has been ended.")
            self._await_turn()
            return self._start()

    def _await_turn(self) -> None:
        """The first start after an end is at once; then it takes longer each time."""
        left = self._not_before - time.monotonic()
        if left > _LONGEST_WAIT:
            message = f"{self.name} keeps ending; it is started again in {left:.0f} seconds."
            raise ToolError("backend", message)
        if left > 0:
            threading.Event().wait(left)

    def _start(self) -> _Life:
        try:
            child = Child((self._options.command, *self._options.args), self._env, self._cwd)
        except OSError as error:
            self._failed()
            what = error.filename or self._options.command
            message = f"{self.name} cannot be started: {what}: {error.strerror}. Correct its "
            message += "command in the configuration."
            raise ToolError("backend", message) from None
        life = _Life(child, self._limit())
        life.questions = Questions(self._events, lambda message: self._post(life, message))
        for work in (self._write, self._read, self._watch):
            name = f"{self.name}-{work.__name__[1:]}"
            threading.Thread(target=work, args=(life,), name=name, daemon=True).start()
        try:
            self._greet(life, time.monotonic() + START_SECONDS)
        except (ToolError, RpcError, TimeoutError) as error:
            by_itself = life.over
            self._over(life, END_SECONDS)
            self._failed()
            raise ToolError("backend", self._why_not(life, error, by_itself)) from None
        self._life = life
        self._started = time.monotonic()
        if self._closed:  # meanwhile
            self._over(life, END_SECONDS)
        return life

    def _why_not(self, life: _Life, error: Exception, by_itself: bool) -> str:
        why = f"it did not answer within {START_SECONDS:.0f} seconds"
        if by_itself:
            with life.changed:
                life.changed.wait_for(lambda: life.ended, END_SECONDS)
            why = f"it ended{_by(life.status)}"
        elif not isinstance(error, TimeoutError):
            why = short(getattr(error, "message", ""))
        said = short(life.child.last_words)
        return f"{self.name} cannot be started: {why}" + (f" (it said: {said})" if said else "")

    def _greet(self, life: _Life, deadline: float) -> None:
        from pinfold import __version__

        params = {
            "protocolVersion": REVISION,
            "capabilities": self._events.capabilities(),
            "clientInfo": {"name": SERVER_NAME, "version": __version__},
        }
        answer = self._request(life, "initialize", params, Waiting(), deadline)
        if not isinstance(answer, dict) or not isinstance(answer.get("protocolVersion"), str):
            raise ToolError("backend", "it answered initialize with something else")
        server, can = answer.get("serverInfo"), answer.get("capabilities")
        self.server = server if isinstance(server, dict) else {}
        self.can = can if isinstance(can, dict) else {}
        self._post(life, {"method": "notifications/initialized"})
        if self._level is not None and "logging" in self.can:
            self._post(
                life,
                {
                    "id": next(self._ids),
                    "method": "logging/setLevel",
                    "params": {"level": self._level},
                },
            )
        self._list(life, deadline)

    def _list(self, life: _Life, deadline: float) -> None:
        """Its tools, page by page."""
        listed: list[Params] = []
        cursor: Any = None
        for _ in range(_MOST_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            page = self._request(life, "tools/list", params, Waiting(), deadline)
            tools = page.get("tools") if isinstance(page, dict) else None
            if not isinstance(tools, list):
                raise ToolError("backend", "it answered tools/list with something else")
            listed += [without_ours(tool) for tool in tools if _is_tool(tool)]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or len(listed) > _MOST_TOOLS:
                break
        name = self.server.get("name")
        name = name if isinstance(name, str) else ""
        self.catalog = Catalog(self.name, name, listed[:_MOST_TOOLS], self._options)

    def _failed(self) -> None:
        delay = _BACKOFF[min(self._failures, len(_BACKOFF) - 1)]
        self._failures += 1
        self._not_before = time.monotonic() + delay

    def _lost(self, life: _Life) -> None:
        """Its input or its output has ended, and nobody wanted that."""
        steady = time.monotonic() - self._started > _STEADY_SECONDS
        if self._life is life and not life.over:
            self._failures = 0 if steady else self._failures
            self._failed()
            self._tell("it has ended; it is started again when it is needed")
        # One that has not begun well is asked for its status; another is to be gone at once.
        self._over(life, 0.0 if self._life is life else _LINGER_SECONDS)

    def _over(self, life: _Life, seconds: float) -> None:
        """It has ended, or is to end. What waits for it fails; it is never sent again."""
        with life.changed:
            if life.over:
                return
            life.over = True
            waiting, life.waiting = list(life.waiting.values()), {}
            life.queue.clear()
            life.changed.notify_all()
        for each in waiting:
            what = "whether it did what it was told is not known"
            if each.state != "sent":
                what = "it had not been told to do this"
            message = f"{self.name} has ended before it answered; {what}."
            each.settle(error=ToolError("backend", message))
        status = life.child.end(seconds)
        with life.changed:
            life.status, life.ended = status, True
            life.changed.notify_all()

    # Messages to it

    def _request(
        self,
        life: _Life,
        method: str,
        params: Params,
        waiting: Waiting,
        deadline: float | None = None,
    ) -> Any:
        number = next(self._ids)
        if waiting.on_progress is not None:
            params = {**params, "_meta": {"progressToken": number}}
        try:
            line = line_of({"id": number, "method": method, "params": params})
        except ValueError as error:
            raise ToolError("invalid-arguments", f"The arguments are {error}.") from None
        waiting.withdraw = lambda: self._post(
            life, {"method": "notifications/cancelled", "params": {"requestId": number}}
        )
        if not waiting.queued():
            raise GaveUp
        with life.changed:
            if life.over:
                raise ToolError("backend", f"{self.name} has ended; try again.")
            life.waiting[number] = waiting
            life.queue.append((waiting, line))
            life.changed.notify_all()
        try:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            return waiting.wait(left)
        finally:
            with life.changed:
                life.waiting.pop(number, None)

    def _post(self, life: _Life, message: Params) -> None:
        """What nobody waits for. While an upstream does not read, only so many are kept."""
        with life.changed:
            if not life.over and len(life.queue) < _MOST_QUEUED:
                life.queue.append((None, line_of(message)))
                life.changed.notify_all()

    def _write(self, life: _Life) -> None:
        while (line := self._next_line(life)) is not None:
            try:
                life.child.write(line)
            except OSError:  # it has gone, or it will hear no more
                self._lost(life)
                break
        with life.changed:
            life.changed.wait_for(lambda: life.ended)
        life.child.written()

    def _next_line(self, life: _Life) -> bytes | None:
        """What is still wanted; None at the end."""
        while True:
            with life.changed:
                life.changed.wait_for(lambda: life.queue or life.over)
                if life.over:
                    return None
                waiting, line = life.queue.popleft()
            if waiting is None or waiting.sending():
                return line

    # Messages from it

    def _read(self, life: _Life) -> None:
        while data := life.child.read():
            life.framer.max_body = self._limit()
            life.framer.receive(data)
            while (event := life.framer.next_event()) is not None:
                if isinstance(event, Body):
                    self._line(life, event.data)
                else:
                    self._oversized(life, event)
        self._lost(life)

    def _watch(self, life: _Life) -> None:
        """Something that it started may keep its output open: that it ended shows here too, when
        what it said last has been read."""
        life.child.wait()
        with life.changed:
            life.changed.wait_for(lambda: life.over, LAST_SECONDS)
        self._lost(life)

    def _line(self, life: _Life, line: bytes) -> None:
        try:
            message = parse(line)
        except ValueError:
            edges = Oversized(len(line), line[:EDGE], line[-EDGE:])
            self._fail(life, id_of_oversized_answer(edges), "answered what is no JSON")
            message = None
        if not isinstance(message, dict):
            self._tell("it writes what is no message to its output; that is ignored")
        elif isinstance(message.get("method"), str):
            self._said(life, message)
        else:
            self._answered(life, message)

    def _answered(self, life: _Life, message: Params) -> None:
        """An answer that nobody waits for, a second one too, is dropped."""
        number = message.get("id")
        with life.changed:
            waiting = life.waiting.pop(number, None) if type(number) is int else None
        if waiting is None:
            return
        error = message.get("error")
        if "result" in message:
            waiting.settle(message["result"])
        elif isinstance(error, dict):
            code, text = error.get("code"), error.get("message")
            failure = RpcError(
                code if type(code) is int else INTERNAL_ERROR,
                text if isinstance(text, str) else "no message",
            )
            waiting.settle(error=failure)
        else:
            failure = RpcError(INTERNAL_ERROR, "an answer without a result")
            waiting.settle(error=failure)

    def _oversized(self, life: _Life, event: Oversized) -> None:
        """A message over the limit fails the call that it answers; all, if that cannot be told."""
        number = id_of_oversized_answer(event)
        with life.changed:
            numbers = [number] if type(number) is int else list(life.waiting)
        for each in numbers:
            self._fail(life, each, f"sent {event.length} bytes, over the limit of {self._limit()}")

    def _fail(self, life: _Life, number: object, what: str) -> None:
        """An answer that cannot be read is one too; nothing where nobody waits for it."""
        with life.changed:
            waiting = life.waiting.pop(number, None) if type(number) is int else None
        if waiting is not None:
            waiting.settle(error=ToolError("backend", f"{self.name} {what}."))

    def _said(self, life: _Life, message: Params) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            life.questions.put(message["id"], method, params)
        elif method == "notifications/progress":
            token = params.get("progressToken")
            waiting = life.waiting.get(token) if type(token) is int else None
            if waiting is not None and waiting.on_progress is not None and not waiting.cancelled:
                more = {name: each for name, each in params.items() if name != "progressToken"}
                waiting.on_progress(without_ours(more))
        elif method == "notifications/message":
            self._events.on_log(without_ours(params))
        elif method == "notifications/tools/list_changed":
            self._refresh(life)
        elif method == "notifications/cancelled":
            life.questions.withdraw(params.get("requestId"))

    def _refresh(self, life: _Life) -> None:
        """List its tools again, on a thread of its own, and once for however many times it says
        so meanwhile."""
        self._stale = True
        if not self._refreshing.acquire(blocking=False):
            return

        def work() -> None:
            try:
                while self._stale and not life.over:
                    self._stale = False
                    self._list(life, time.monotonic() + START_SECONDS)
                    self._events.on_tools()
                    with life.changed:  # one that says so each time it is asked is no busy loop
                        life.changed.wait_for(lambda: life.over, LISTING_SECONDS)
            except (ToolError, RpcError, TimeoutError):
                self._tell("it said that its tools changed, and does not list them")
            finally:
                self._refreshing.release()
            if self._stale and not life.over:  # said while this was ending
                self._refresh(life)

        threading.Thread(target=work, name=f"{self.name}-tools", daemon=True).start()

    def _tell(self, what: str) -> None:
        """Each thing once, and never contents."""
        if what not in self._reported:
            self._reported.add(what)
            self._events.on_trouble(f"upstream {self.name}: {what}")


def _by(status: int | None) -> str:
    if status is None:
        return ""
    return f", by signal {-status}" if status < 0 else f", with status {status}"


def _is_tool(tool: Any) -> bool:
    return (
        isinstance(tool, dict)
        and isinstance(tool.get("name"), str)
        and isinstance(tool.get("inputSchema"), dict)
    )
