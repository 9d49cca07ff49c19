"""The one pipeline of a call: look (paths, memory) → decide (policy) → do (tools) → tag.

Everything here may block, and is safe to call from several threads.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from pinfold.audit.entry import Trace
from pinfold.backends.base import Backend
from pinfold.backends.local import LocalBackend
from pinfold.backends.locks import DirectoryLocks, KeyedLocks
from pinfold.backends.move import Movement
from pinfold.backends.publish import Seam
from pinfold.deciding import Decided, Ground, decided
from pinfold.memory.retention import tag_for
from pinfold.memory.roots import Look
from pinfold.paths.errors import ChangedUnderfoot, WouldBlock, from_errno, reraise
from pinfold.paths.near import near_names
from pinfold.paths.opened import Opened, check
from pinfold.paths.volume import Volumes
from pinfold.policy.decide import ask_key, decide, may_read, tellable
from pinfold.policy.facts import Answers, AskKey, Call, no_approver, unasked
from pinfold.policy.pinned import find_pinned
from pinfold.session import EDITOR, LOCAL, Session
from pinfold.text.codec import printable
from pinfold.tools.base import Outcome, ToolType, Workplace
from pinfold.tools.registry import IGNORED_ARGUMENTS, as_call
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import RpcError, ToolError, kept
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag
from pinfold_protocol.session import Limits
from pinfold_protocol.tools import (
    DECISION_KEY,
    DETAILS_KEY,
    Content,
    TextContent,
    ToolResult,
    WriteDetails,
)

_MOST_ARGUMENTS = 64
_TRIES = 8
"""How often a change is tried again when something else changed the tree meanwhile."""


class Cancelled(Exception):
    """The call was cancelled before it took effect; nothing was changed."""


class Denied(Exception):
    """The decision made right before publishing was another one; nothing was changed."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.reason)
        self.decision = decision


class Ticket:
    """One call under way: it can be cancelled until its effect is being published."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._publishing = False  # stays so once something is published
        self._cancelled = False
        self._asked = False
        self._watcher: Callable[[], None] | None = None

    def cancel(self) -> bool:
        """Cancel the call. False if it is too late; whoever watches is told in any case."""
        with self._lock:
            self._asked = True
            if not self._publishing:
                self._cancelled = True
            cancelled, watcher = self._cancelled, self._watcher
        if watcher is not None:
            watcher()
        return cancelled

    @contextmanager
    def watched(self, watcher: Callable[[], None]) -> Iterator[None]:
        """Meanwhile `watcher` is called, on any thread, when somebody wants to cancel the call; at
        once where somebody did."""
        with self._lock:
            self._watcher = watcher
            asked = self._asked
        if asked:
            watcher()
        try:
            yield
        finally:
            with self._lock:
                self._watcher = None

    @property
    def published(self) -> bool:
        """Whether the call has taken effect, or is about to."""
        return self._publishing

    def require_wanted(self) -> None:
        """Raise Cancelled if it was cancelled."""
        if self._cancelled:
            raise Cancelled

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """From here to the end it cannot be cancelled. Raises Cancelled."""
        with self._lock:
            self.require_wanted()
            self._publishing = True
        try:
            yield
        except BaseException:  # nothing was published: it may be cancelled again
            with self._lock:
                self._publishing = False
            raise


class Asking(Exception):
    """A base rule asks, and the answer is not there yet; nothing has happened. `key` is what the
    question is about."""

    def __init__(self, decision: Decision, key: AskKey) -> None:
        super().__init__(decision.reason)
        self.decision = decision
        self.key = key


def asking_about(tool: str, decision: Decision) -> Asking:
    """What to raise where a decision is `ask`."""
    return Asking(decision, ask_key(tool, decision))


class Answer(msgspec.Struct, frozen=True):
    """What became of a call: exactly one of `outcome` and `error` is there."""

    decision: Decision | None
    outcome: Outcome | None = None
    error: ToolError | None = None
    tag: RetentionTag | None = None
    published: bool = False

    def __post_init__(self) -> None:
        if self.error is not None:
            kept(self.error)

    @property
    def denied(self) -> bool:
        return self.error is not None and self.error.kind == "denied"


def refusal(name: str, decision: Decision) -> ToolError | None:
    """What is said to a call that may not go on; None if it may. Raises Asking."""
    if decision.decision == "allow":
        return None
    if decision.decision == "ask":
        raise asking_about(name, decision)
    return ToolError("denied", f"Denied: {decision.reason}")


def _refused(request: "Request", decision: Decision) -> Answer | None:
    error = refusal(request.tool.name, decision)
    return None if error is None else Answer(decision, error=error)


class Request(msgspec.Struct, frozen=True):
    """One call with everything that its steps need. `answers`: to what was asked for this call."""

    session: Session
    tool: ToolType
    arguments: Any
    path: str
    ticket: Ticket
    trace: Trace
    cached: bool = False
    answers: Answers = no_approver


class Calls:
    """Runs calls on files. `limits` and `record` (the real path of the gateway's own record, None
    where none is kept) are looked up for each."""

    def __init__(
        self,
        volumes: Volumes,
        limits: Callable[[], Limits],
        record: Callable[[], str | None],
        seam: Seam,
    ) -> None:
        self._seam = seam
        self.backend = LocalBackend(seam)
        self.backends: dict[str, Backend] = {LOCAL: self.backend}
        self._move_locks = DirectoryLocks()
        self.files = KeyedLocks()
        self._volumes = volumes
        self._limits = limits
        self._record = record

    def run(self, request: Request) -> Answer:
        """One call. Raises ToolError, Cancelled, Asking, and WouldBlock for a cached one."""
        return self._read(request) if request.tool.action == "read" else self._change(request)

    def decided(
        self,
        session: Session,
        call: Call,
        path: str,
        *,
        cached: bool = False,
        answers: Answers = unasked,
    ) -> Decided:
        """Look and decide, for a session as it is now.

        Raises ToolError where something cannot be looked at, and `invalid-path` where a call that
        is not denied leads to a name that no message can hold: its answer could not be read.
        """
        effective = session.effective
        ground = Ground(
            session.roots,
            effective,
            self._volumes,
            self._record() if call.action == "change" else None,
            _answers(session, answers) if effective.rules else unasked,
        )
        found = decided(ground, call, path, cached=cached)
        real = found.opened.real
        if (
            real is None
            or found.decision.resolved_path == real
            or found.decision.decision == "deny"
        ):
            return found
        found.close()
        message = f"{found.opened.literal}: it leads to a name that is no UTF-8, and no message can"
        raise ToolError("invalid-path", f"{message} hold that path. Use another.")

    def _deciding(self, request: Request) -> Decided:
        """The same for a call under way, and for the record."""
        found = self.decided(
            request.session,
            as_call(request.tool.name),
            request.path,
            cached=request.cached,
            answers=request.answers,
        )
        request.trace.decision = found.decision
        request.trace.status = found.opened.status
        return found

    def _read(self, request: Request) -> Answer:
        session = request.session
        decided = self._deciding(request)
        try:
            decision = decided.decision
            if refused := _refused(request, decision):
                return refused
            place = self._workplace(request)
            try:
                checked = check(decided.opened, decision)
                outcome = request.tool.run(request.arguments, checked, place)
            except ToolError as error:
                if request.cached and error.kind == "not-found":
                    raise WouldBlock from None  # names that look alike are looked for
                return Answer(decision, error=_placed(request, error, decided))
            tag = None
            if decision.root is not None:
                sha256 = getattr(outcome.details, "sha256", None)
                try:
                    tag = tag_for(
                        decided.opened,
                        decision.root,
                        decided.look,
                        sha256,
                        complete=outcome.complete,
                    )
                except OSError as error:
                    failed = from_errno(error.errno, str(error.filename or request.path))
                    return Answer(decision, error=failed)
            if session.effective is not decided.effective:
                answers = _answers(session, request.answers)
                again = self._again(request, as_call(request.tool.name), decided, answers)
                if refused := _refused(request, again):
                    return refused
            request.ticket.require_wanted()
            return Answer(decision, outcome=outcome, tag=tag)
        finally:
            decided.close()

    def _again(self, request: Request, call: Call, decided: Decided, answers: Answers) -> Decision:
        """Decide about a read of what was found under the scope now in force; which roots it
        includes is looked up anew. Raises ToolError, WouldBlock."""
        session, effective = request.session, request.session.effective
        trust = effective.scope.confine_reads or effective.scope.bypass_ask
        look = Look(
            session.roots, effective.scope, self._volumes, trust=trust, cached=request.cached
        )
        try:
            with look:
                facts = msgspec.structs.replace(decided.facts, roots=look.names_only())
                look.require_means()
        except OSError as error:
            reraise(error, str(error.filename or request.path))
        return decide(call, facts, effective, answers)

    def _may_show(self, request: Request, decided: Decided) -> bool:
        """Whether the session may read, now, the file that a change is about: only then is
        anything told of what it held. Never raises: the change may be published."""
        session = request.session
        if session.effective is decided.effective:
            return may_read(decided.facts, decided.effective, session.answers)
        try:
            again = self._again(request, as_call("read_file"), decided, session.answers)
        except ToolError:
            return False
        return again.decision == "allow"

    def _change(self, request: Request) -> Answer:
        for _ in range(_TRIES):
            request.ticket.require_wanted()
            try:
                return self._change_once(request)
            except ChangedUnderfoot:
                continue
            except Denied as error:
                if refused := _refused(request, error.decision):
                    return refused
        message = (
            f"{request.path}: something else keeps changing it. Nothing was changed; try again."
        )
        with self._deciding(request) as last:
            if refused := _refused(request, last.decision):
                return refused
            return Answer(last.decision, error=ToolError("changed-underfoot", message))

    def _change_once(self, request: Request) -> Answer:
        with self._deciding(request) as first:
            self._seam("opened")
            if refused := _refused(request, first.decision):
                return refused
            with self.files.hold(first.opened.key) as waited:
                if not waited:
                    return self._perform(request, first)
                with self._deciding(request) as again:
                    if refused := _refused(request, again.decision):
                        return refused
                    if again.opened.key != first.opened.key:
                        raise ChangedUnderfoot(request.path)
                    return self._perform(request, again)

    def _perform(self, request: Request, decided: Decided) -> Answer:
        request.ticket.require_wanted()
        checked = check(
            decided.opened,
            decided.decision,
            lambda: self._publishing(request, decided.opened),
            sweep=find_pinned(decided.facts) is None,
        )
        try:
            place = self._workplace(request, lambda: self._may_show(request, decided))
            outcome = request.tool.run(request.arguments, checked, place)
        except ToolError as error:
            return Answer(decided.decision, error=_placed(request, error, decided))
        return Answer(decided.decision, outcome=outcome, published=request.ticket.published)

    # Moving: both ends are changes, and are decided as such

    def move(self, session: Session, old: str, new: str) -> None:
        """Move a regular file to a name that is free. Raises ToolError; then nothing was moved."""
        for _ in range(_TRIES):
            try:
                self._move_once(session, old, new)
                return
            except ChangedUnderfoot:
                continue
        message = f"{old}: something else keeps changing it. Nothing was moved; try again."
        raise ToolError("changed-underfoot", message)

    def _move_once(self, session: Session, old: str, new: str) -> None:
        with self._ends(session, old, new) as (source, target), ExitStack() as held:
            self._seam("opened")
            for key in sorted({source.opened.key, target.opened.key}, key=repr):
                held.enter_context(self.files.hold(key))
            Movement(
                check(source.opened, source.decision),
                check(target.opened, target.decision),
                self._move_locks,
                lambda: self._moving(session, source, target),
            ).run()

    @contextmanager
    def _ends(self, session: Session, old: str, new: str) -> Iterator[tuple[Decided, Decided]]:
        """Both ends, decided. Raises ToolError `denied` unless both may be changed."""
        call = as_call("write_file")
        with (
            self.decided(session, call, old) as source,
            self.decided(session, call, new) as target,
        ):
            for each in (source, target):
                if each.decision.decision != "allow":
                    raise ToolError("denied", f"Denied: {each.decision.reason}")
            yield source, target

    @contextmanager
    def _moving(self, session: Session, source: Decided, target: Decided) -> Iterator[None]:
        """Once more, whole, with fresh facts and the scope now in force; then no way back."""
        old, new = source.opened.literal, target.opened.literal
        with session.gate.passing(), self._ends(session, old, new) as (first, second):
            source.opened.require_same(first.opened)
            target.opened.require_same(second.opened)
            if session.closed:
                raise Cancelled
            self._seam("decided")
            yield

    def _workplace(
        self, request: Request, may_show: Callable[[], bool] = lambda: True
    ) -> Workplace:
        session = request.session
        return Workplace(
            backend=self.backends.get(session.backend, self.backend),
            limits=self._limits(),
            known=session.known,
            staleness=session.effective.scope.staleness,
            cached=request.cached,
            sources=EDITOR in self.backends,
            require_wanted=request.ticket.require_wanted,
            may_show=may_show,
        )

    @contextmanager
    def _publishing(self, request: Request, opened: Opened) -> Iterator[None]:
        """Once more, whole, with fresh facts and the scope now in force; then no way back."""
        session = request.session
        with (
            session.gate.passing(),
            request.ticket.publishing(),
            self._deciding(request) as again,
        ):
            opened.require_same(again.opened)
            if again.decision.decision != "allow":
                raise Denied(again.decision)
            if session.closed:
                raise Cancelled
            yield


def _answers(session: Session, own: Answers) -> Answers:
    """What was allowed for the session, else what was answered for a call."""
    return lambda key: session.answers(key) or own(key)


def note(trace: Trace, answer: Answer) -> None:
    """Take over for the record what became of a call."""
    trace.decision = answer.decision
    if answer.error is not None:
        trace.outcome = "denied" if answer.denied else f"failed:{answer.error.kind}"
        return
    assert answer.outcome is not None
    details = answer.outcome.details
    trace.before, trace.after = answer.outcome.before, details.sha256
    if isinstance(details, WriteDetails) and not answer.published:
        trace.outcome = "dry-run" if details.changed else "unchanged"
        trace.after = trace.before


def read_arguments(tool: ToolType, raw: dict[str, Any]) -> Any:
    """Raw arguments → the tool's own type. Raises ToolError `invalid-arguments`."""
    if len(raw) > _MOST_ARGUMENTS:
        message = f"{tool.name} takes {', '.join(tool.properties)}, and nothing else."
        raise ToolError("invalid-arguments", message)
    given = raw
    if not IGNORED_ARGUMENTS.isdisjoint(raw):
        given = {name: value for name, value in raw.items() if name not in IGNORED_ARGUMENTS}
    try:
        arguments = structure(given, tool.arguments)
    except RpcError as error:
        data = error.data or {}
        member, problem = data.get("path") or "arguments", data.get("problem")
        if member in given and member not in tool.properties:
            problem = f"is not an argument of {tool.name}; it takes {', '.join(tool.properties)}"
        raise ToolError("invalid-arguments", f"{member}: {problem}.", path=member) from None
    tool.check(arguments)
    return arguments


def as_result(answer: Answer) -> ToolResult:
    meta: dict[str, Any] = {}
    if answer.error is not None:
        error = answer.error
        members = {"kind": error.kind, "message": error.message, **error.data}
        meta[DETAILS_KEY] = {"error": members}
        content: tuple[Content, ...] = (TextContent(error.message),)
    else:
        assert answer.outcome is not None
        meta[DETAILS_KEY] = unstructure(answer.outcome.details)
        content = answer.outcome.content
    meta[DECISION_KEY] = None if answer.decision is None else unstructure(answer.decision)
    if answer.tag is not None:
        meta[RETENTION_KEY] = unstructure(answer.tag)
    return ToolResult(list(content), answer.error is not None, meta)


_OF_TEXT = frozenset({"binary", "undecodable", "no-match", "ambiguous-match"})
"""What pure code says of a text, which does not know where it stands."""


def _placed(request: Request, error: ToolError, decided: Decided) -> ToolError:
    """Which file it is, where that is not said. For one that is not there: names in the same
    directory that look alike, as far as the session may hear of them."""
    opened = decided.opened
    if error.kind in _OF_TEXT and opened.literal not in error.message:
        message = f"{printable(opened.literal)}: {error.message[:1].lower()}{error.message[1:]}"
        return ToolError(error.kind, message, **error.data)
    if error.kind != "not-found" or len(opened.missing) != 1 or opened.parent is None:
        return error
    call = as_call(request.tool.name if request.tool.action == "read" else "read_file")
    answers = request.session.answers
    near = tellable(near_names(opened), decided.facts, decided.effective, answers, call)
    if not near or request.session.effective is not decided.effective:
        return error
    message = f"{error.message} There is {', '.join(map(repr, near))}."
    return ToolError(error.kind, message, **error.data, near=near)
