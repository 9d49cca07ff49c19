"""`tools/call` behind the door: what runs in place, what on a pool, and which change waits.

A small read that the kernel can answer from its caches runs in place; everything else runs on a
pool. Changes in one directory run in order of arrival. Imported with the gateway, not before.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pinfold.app import Gateway
from pinfold.calls import Asking, Ticket
from pinfold.doors.order import Lanes, Turn
from pinfold.doors.questions import Questions
from pinfold.doors.rpc import Request
from pinfold.doors.wire import Wire
from pinfold.doors.workers import Begun, Workers
from pinfold.paths.errors import WouldBlock
from pinfold.policy.facts import AskKey, no_approver, unasked
from pinfold.policy.names import collapse
from pinfold.session import Session
from pinfold.tools.registry import TOOLS
from pinfold_protocol.convert import unstructure
from pinfold_protocol.errors import kept
from pinfold_protocol.tools import ToolsCallParams

if TYPE_CHECKING:
    from pinfold.doors.mcp import Rounds
    from pinfold.doors.progress import Progress
    from pinfold_protocol.decision import Asked

_MAX_PATH = 4096
_MOST_QUESTIONS = 8


class _Call:
    """A tool call under way: its work on a pool, and what was answered to its questions. `local`:
    it is the gateway's own work; `progress`: who hears what an upstream tells meanwhile."""

    def __init__(
        self,
        request: Request,
        params: ToolsCallParams,
        ticket: Ticket,
        session: Session,
        questions: "Questions | Rounds | None",
        work: Begun | None = None,
    ) -> None:
        self.local = session.upstream is None
        self.progress: Progress | None = None
        self.request = request
        self.params = params
        self.ticket = ticket
        self.session = session
        self.questions = questions
        self.work = work
        self._answers: dict[AskKey, tuple[Asked, Any]] = {}

    def note(self, key: AskKey, answer: "Asked", rules: Any) -> None:
        """An answer to what these rules asked."""
        self._answers[key] = answer, rules

    def answered(self, key: AskKey) -> "Asked | None":
        """What was answered, while the rules that asked are in force."""
        answer, rules = self._answers.get(key, (None, None))
        return answer if self.session.effective.rules is rules else None


class Calling:
    """The tool calls of one connection. `lanes`: which of them wait for a session message."""

    def __init__(self, gateway: Gateway, wire: Wire, lanes: Lanes, workers: Workers) -> None:
        self._gateway = gateway
        self._wire = wire
        self._lanes = lanes
        self._workers = workers
        self._loop = asyncio.get_running_loop()
        self._turns: dict[str, Turn] = {}
        self._asking: dict[str, asyncio.Future[None]] = {}

    def call(
        self,
        request: Request,
        params: ToolsCallParams,
        questions: "Questions | Rounds | None",
        progress: "Progress | None" = None,
        *,
        local: bool = False,
    ) -> Any:
        """The result, or an awaitable of it. `questions`: how this call is asked about;
        `progress`: who is told. `local`: a read that is the gateway's own, whatever the session is
        in front of. Raises RpcError."""
        ticket = Ticket()
        request.cancel = ticket.cancel
        lane = self._lanes.get(params.session_id)
        session = None if lane else self._gateway.sessions.get(params.session_id)
        foreign = lane.upstream if lane else session is not None and session.upstream is not None
        if foreign and not local:
            return self._lanes.in_order(
                params.session_id,
                lambda: self._relay(request, params, ticket, questions, progress),
            )
        tool = TOOLS.get(params.name)
        request.changing = tool is not None and tool.action == "change"
        if request.changing:
            return self._change(request, params, ticket, questions)
        if session is not None:
            return self._read(request, params, ticket, questions, session)
        return self._lanes.in_order(
            params.session_id,
            lambda: self._read(
                request, params, ticket, questions, self._gateway.sessions.get(params.session_id)
            ),
        )

    def _read(
        self,
        request: Request,
        params: ToolsCallParams,
        ticket: Ticket,
        questions: "Questions | Rounds | None",
        session: Session,
    ) -> Any:
        asking = None
        if not self._wire.congested:
            possible = questions is not None and questions.possible
            answers = unasked if possible else no_approver
            try:
                return unstructure(
                    self._gateway.call(
                        params, ticket, session=session, cached=True, answers=answers, local=True
                    )
                )
            except WouldBlock:
                pass
            except Asking as error:
                asking = kept(error)
        call = _Call(request, params, ticket, session, questions)
        call.local = True
        return self._answered(call, asking)

    def _relay(
        self,
        request: Request,
        params: ToolsCallParams,
        ticket: Ticket,
        questions: "Questions | Rounds | None",
        progress: "Progress | None",
    ) -> Awaitable[Any]:
        """A call to an upstream: never in place, and on a pool of its own, since an upstream may
        take as long as it likes."""
        session = self._gateway.sessions.get(params.session_id)
        paths = self._gateway.changed_paths(session, params)
        request.changing = paths is not None

        def call(session: Session, work: Begun) -> _Call:
            call = _Call(request, params, ticket, session, questions, work)
            call.progress = progress
            return call

        if paths is None:
            return self._answered(call(session, []))
        return self._queued(paths, session, call)

    def _perform(self, call: _Call) -> Any:
        possible = call.questions is not None and call.questions.possible
        return unstructure(
            self._gateway.call(
                call.params,
                call.ticket,
                session=call.session,
                answers=call.answered if possible else no_approver,
                on_progress=call.progress,
                local=call.local,
            )
        )

    async def _work(self, call: _Call) -> Any:
        """A call on the pool that is for it."""
        run = self._workers.run if call.local else self._workers.run_upstream
        return await run(lambda: self._perform(call), call.work)

    async def _answered(self, call: _Call, asking: Asking | None = None) -> Any:
        """A call, with what the client answers to its questions. A path that leads elsewhere each
        time it is looked at is asked about some times, and then no more."""
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
                asking = kept(error)
        call.questions = None
        return await self._work(call)

    def _change(
        self,
        request: Request,
        params: ToolsCallParams,
        ticket: Ticket,
        questions: "Questions | Rounds | None",
    ) -> Awaitable[Any]:
        """Changes to one directory, as it is written, run one by one in order of arrival: that
        orders the changes to one path, and a directory that somebody keeps locked costs one
        thread. Other spellings of a path exclude each other, but are not ordered."""
        found = self._lanes.in_order(
            params.session_id, lambda: self._gateway.sessions.get(params.session_id)
        )
        return self._queued(
            [self._changed_path(params)],
            found,
            lambda session, work: _Call(request, params, ticket, session, questions, work),
        )

    def _queued(
        self,
        paths: list[str],
        found: Session | Awaitable[Session],
        call: Callable[[Session, Begun], _Call],
    ) -> Awaitable[Any]:
        """Run a change when all changes before it in the directories of its paths are over."""
        keys = dict.fromkeys(path.rpartition("/")[0] for path in paths)
        work: Begun = []
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

    async def _in_turn(self, call: _Call, paths: list[str], turn: Turn) -> Any:
        """A change that waits for an answer lets others in its directories pass, but for those of
        the same paths."""
        asking, earlier = None, {each for path in paths if (each := self._asking.get(path))}
        if not earlier:
            try:
                return await self._work(call)
            except Asking as error:
                asking = kept(error)
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

    def _changed_path(self, params: ToolsCallParams) -> str:
        """As it is written, from the file system's root; empty where it will be refused."""
        path = params.arguments.get("file_path")
        if not isinstance(path, str) or len(path) > _MAX_PATH:
            return ""  # it will be refused
        if path.startswith("~"):
            return path
        lane = self._lanes.get(params.session_id)
        session_id = params.session_id
        base = lane.project if lane else self._gateway.sessions.get(session_id).project_root
        return collapse(path if path.startswith("/") else f"{base}/{path}")
