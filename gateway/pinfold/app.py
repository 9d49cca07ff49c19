"""The gateway: the one pipeline of a call. No JSON, no framing, no loop.

    with a session's effective scope: look (paths, memory) → decide (policy) → do (tools) → tag

Everything here may block, and is safe to call from several threads.
"""

import os
import secrets
import stat
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

import attrs

from pinfold.audit.entry import Entry, Trace
from pinfold.backends.base import Backend
from pinfold.backends.local import LocalBackend
from pinfold.backends.locks import KeyedLocks
from pinfold.backends.publish import Seam
from pinfold.memory.layouts import Surroundings
from pinfold.memory.prompts import prompt_rules
from pinfold.memory.retention import tag_for
from pinfold.memory.roots import Look, configured_roots, find_git_root, report
from pinfold.paths.errors import ChangedUnderfoot, WouldBlock, reraise
from pinfold.paths.literal import expand, home_directory
from pinfold.paths.near import near_names
from pinfold.paths.opened import Opened, check
from pinfold.paths.volume import Volumes
from pinfold.paths.walk import glance, walk
from pinfold.policy.confinement import managed
from pinfold.policy.decide import decide
from pinfold.policy.facts import Call, Facts, RootFacts, ShellVerdict
from pinfold.policy.names import collapse
from pinfold.policy.pinned import find_pinned
from pinfold.session import Session, Sessions, merge, put
from pinfold.tools.base import Outcome, ToolType, Workplace
from pinfold.tools.registry import HOST_TOOLS, IGNORED_ARGUMENTS, TOOLS, as_call
from pinfold_protocol.compaction import CompactParams, CompactResult, Reread, ResetResult
from pinfold_protocol.convert import structure, unstructure, wire_name
from pinfold_protocol.decision import Decision, ExplainParams
from pinfold_protocol.errors import RpcError, ToolError, invalid_params, short
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag
from pinfold_protocol.session import (
    AuditOptions,
    ConnectionOptions,
    Limits,
    MemoryDidChangeParams,
    MemoryOptions,
    Root,
    SessionCloseResult,
    SessionConfigureParams,
    SessionOpenParams,
    SessionResult,
    SessionSummary,
)
from pinfold_protocol.tools import (
    DECISION_KEY,
    DETAILS_KEY,
    Content,
    TextContent,
    ToolResult,
    ToolsCallParams,
    WriteDetails,
)

if TYPE_CHECKING:
    from pinfold.audit.recorder import Recorder
    from pinfold.compaction import Evidence

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

    def cancel(self) -> bool:
        """Cancel the call. False if it is too late."""
        with self._lock:
            if not self._publishing:
                self._cancelled = True
            return self._cancelled

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


@attrs.frozen
class _Answer:
    """What became of a call: exactly one of `outcome` and `error` is there."""

    decision: Decision | None
    outcome: Outcome | None = None
    error: ToolError | None = None
    tag: RetentionTag | None = None
    published: bool = False

    @property
    def denied(self) -> bool:
        return self.error is not None and self.error.kind == "denied"


def _denied(decision: Decision) -> _Answer:
    return _Answer(decision, error=ToolError("denied", f"Denied: {decision.reason}"))


@attrs.frozen
class _Decided:
    """What was found and decided; its descriptors are open as long as the context lasts."""

    opened: Opened
    facts: Facts
    decision: Decision
    look: Look


@attrs.frozen
class _Request:
    """One call with everything that its steps need."""

    session: Session
    tool: ToolType
    arguments: Any
    path: str
    ticket: Ticket
    trace: Trace
    cached: bool = False

    @property
    def call(self) -> Call:
        return as_call(self.tool.name)


class Gateway:
    """Sessions, and the calls of their agents. One for each connection."""

    def __init__(
        self,
        env: dict[str, str] | None = None,
        *,
        cwd: str | None = None,
        seam: Seam | None = None,
    ) -> None:
        self._env = dict(os.environ) if env is None else env
        self._home = home_directory(self._env)
        self._cwd = cwd or _working_directory()
        self._seam: Seam = seam or (lambda moment: None)
        self._backend: Backend = LocalBackend(self._seam)
        self._files = KeyedLocks()
        self._volumes = Volumes()
        self._defaults = MemoryOptions()
        self._digests: dict[str, str] = {}
        self._digests_lock = threading.Lock()
        self._recorder: Recorder | None = None
        self.on_memory_change: Callable[[MemoryDidChangeParams], None] = lambda params: None
        self.on_trouble: Callable[[str], None] = lambda message: None
        self.limits = Limits()
        self.sessions = Sessions()

    def set_options(self, options: ConnectionOptions) -> None:
        """Defaults for the sessions of this connection. Raises RpcError (-32602)."""
        recorder = None if options.audit is None else self._recorder_for(options.audit)
        if options.limits is not None:
            for field in attrs.fields(Limits):
                value = getattr(options.limits, field.name)
                if value is not None and value < 1:
                    raise invalid_params(f"limits.{wire_name(Limits, field)}", "must be at least 1")
            self.limits = options.limits
        if options.memory is not None:
            configured_roots(options.memory, self._surroundings("/"))
            self._defaults = options.memory
        if recorder is not None:
            self._recorder = recorder

    def _recorder_for(self, options: AuditOptions) -> "Recorder":
        """Nothing is opened yet. Raises RpcError (-32602)."""
        from pinfold.audit.log import Log
        from pinfold.audit.place import configured
        from pinfold.audit.recorder import Recorder

        return Recorder(Log(configured(options, self._home)), self._trouble)

    def _trouble(self, message: str) -> None:
        self.on_trouble(message)

    def close(self, seconds: float = 1.0) -> None:
        """The end: what is to be recorded is written, as far as that takes no longer."""
        if self._recorder is not None:
            self._recorder.close(seconds)

    # Sessions

    def open_session(self, params: SessionOpenParams) -> SessionResult:
        """`session/open`. Raises RpcError (-32602)."""
        project = self.project_root(params.project_root)
        roots = configured_roots(self._memory(params.memory), self._surroundings(project))
        session = Session(
            _session_id(params.session_id),
            params.profile,
            project,
            roots,
            merge({}, params.scope),
        )
        result = self._result(session)
        self.sessions.add(session)
        return result

    def configure_session(self, params: SessionConfigureParams) -> SessionResult:
        """`session/configure`. Waits until no change decided under the old scope is under way."""
        session = self.sessions.get(params.session_id)
        session.configure(params.scope)
        return self._result(session)

    def close_session(self, session_id: str) -> SessionCloseResult:
        """`session/close`. The caller has seen to it that no call of it is under way."""
        session = self.sessions.remove(session_id)
        return SessionCloseResult(session.calls, session.denials)

    def summaries(self) -> list[SessionSummary]:
        """`session/list`."""
        return [
            SessionSummary(s.session_id, s.profile, s.project_root, [], s.calls, s.denials)
            for s in self.sessions.all()
        ]

    def _result(self, session: Session) -> SessionResult:
        return SessionResult(
            session_id=session.session_id,
            profile=session.profile,
            scope=session.scope,
            roots=report(session.roots, session.scope, self._volumes),
            tools=list(TOOLS),
            prompt_rules=prompt_rules(session.profile, session.scope),
        )

    def roots(self, session: Session) -> list[Root]:
        """`memory/roots`."""
        return report(session.roots, session.scope, self._volumes)

    def _memory(self, given: MemoryOptions | None) -> MemoryOptions:
        if given is None:
            return self._defaults
        members = attrs.asdict(given, filter=lambda _, value: value is not None)
        return attrs.evolve(self._defaults, **members)

    def _surroundings(self, project: str) -> Surroundings:
        git_root = find_git_root(project)
        return Surroundings(project, git_root, self._env, self._home, self._cwd)

    def project_root(self, raw: str) -> str:
        """The absolute path that a host means, as text. Raises RpcError (-32602)."""
        path = _from_uri(raw) if raw[:5].lower() == "file:" else raw
        if not path.startswith("/"):
            raise invalid_params("projectRoot", "must be an absolute path or a file: URI")
        try:
            return collapse(expand(path, "/", self._home))
        except ToolError as error:
            raise invalid_params("projectRoot", error.message) from None

    # Calls

    def call(
        self,
        params: ToolsCallParams,
        ticket: Ticket | None = None,
        *,
        session: Session | None = None,
        cached: bool = False,
    ) -> ToolResult:
        """`tools/call`: look, decide, do, tag. `session`: the one that the params named when
        they arrived, where its id may name another one by now.

        Raises RpcError for an unknown session or tool, Cancelled, and with `cached` WouldBlock
        where an answer would have to wait for anything: then nothing has happened yet.
        """
        session = session or self.sessions.get(params.session_id)
        tool = TOOLS.get(params.name)
        if tool is None:
            raise invalid_params("name", f"there is no tool called {short(params.name)!r}")
        with self._recording(session, tool.name) as trace:
            answer = self._answer(session, tool, params, ticket or Ticket(), trace, cached)
            _note(trace, answer)
        session.count(denied=answer.denied)
        self._notify(session, answer)
        self._remember_digest(answer)
        session.remember(params.call_id, answer.tag)
        return _result(answer)

    def _answer(
        self,
        session: Session,
        tool: ToolType,
        params: ToolsCallParams,
        ticket: Ticket,
        trace: Trace,
        cached: bool,
    ) -> _Answer:
        try:
            trace.path = self._named_path(session, params.arguments)
            arguments = _arguments(tool, params.arguments)
            path = expand(arguments.file_path, session.project_root, self._home)
            request = _Request(session, tool, arguments, path, ticket, trace, cached)
            return self._read(request) if tool.action == "read" else self._change(request)
        except ToolError as error:
            return _Answer(None, error=error)

    @contextmanager
    def _recording(self, session: Session, name: str) -> Iterator[Trace]:
        """Record what becomes of a call, exactly once; nothing where it has not begun."""
        trace = Trace()
        try:
            yield trace
        except (WouldBlock, RpcError):
            raise
        except Cancelled:
            trace.outcome = "cancelled"
            self._keep(session, name, trace)
            raise
        except Exception as error:
            trace.outcome = f"failed:{error.kind if isinstance(error, ToolError) else 'internal'}"
            self._keep(session, name, trace)
            raise
        self._keep(session, name, trace)

    def _keep(self, session: Session, name: str, trace: Trace) -> None:
        if self._recorder is not None:
            self._recorder.record(Entry(session.session_id, name, trace))

    def _named_path(self, session: Session, arguments: dict[str, Any]) -> str | None:
        """The path that a call names, for the record; None where no path can be made of it."""
        try:
            raw = arguments.get("file_path")
            if self._recorder is None or not isinstance(raw, str):
                return None
            return expand(raw, session.project_root, self._home)
        except ToolError:
            return None

    def _notify(self, session: Session, answer: _Answer) -> None:
        """Tell of a change below a root, so that a client can refresh a stale index."""
        details = None if answer.outcome is None else answer.outcome.details
        root = None if answer.decision is None else answer.decision.root
        if root is not None and isinstance(details, WriteDetails) and answer.published:
            kind: Literal["created", "changed"] = "created" if details.created else "changed"
            params = MemoryDidChangeParams(session.session_id, root, details.path, kind)
            self.on_memory_change(params)

    def _remember_digest(self, answer: _Answer) -> None:
        """What a document of managed memory last was, whichever session saw or wrote it."""
        details = None if answer.outcome is None else answer.outcome.details
        tag = answer.tag
        if tag is not None:
            path, sha256 = tag.path, tag.sha256
        elif isinstance(details, WriteDetails) and answer.decision and answer.decision.root:
            path, sha256 = details.path, details.sha256 if answer.published else None
        else:
            return
        if sha256 is not None:
            with self._digests_lock:
                self._digests.pop(path, None)
                put(self._digests, path, sha256)

    # Compaction

    def compact(self, params: CompactParams, session: Session | None = None) -> CompactResult:
        """`context/compact`. With a session, the paths that the history records are judged by its
        roots; and where the params name it, only tags that it issued count. Without one there are
        no roots to judge by, and the tags are taken as the host gives them.

        Raises RpcError for an unknown session, or a record that is none.
        """
        from pinfold.compaction import compact  # few hosts need it, and not at once

        if session is None and params.session_id is not None:
            session = self.sessions.get(params.session_id)
        with self.evidence(params, session) as evidence:
            return compact(params, evidence)

    @contextmanager
    def evidence(self, params: CompactParams, session: Session | None) -> "Iterator[Evidence]":
        """What is known of managed memory, for `pinfold.compaction`."""
        from pinfold.compaction import Evidence

        tags = params.tags or {}
        current = self._digests_now()
        if session is None:
            yield Evidence(tags=tags, current=current)
            return
        by_call, issued = session.tags_now()

        def genuine(tag: RetentionTag) -> bool:
            return params.session_id is None or tag in issued

        tags = {name: tag for name, tag in tags.items() if genuine(tag)} | by_call
        with Look(session.roots, session.scope, self._volumes, trust=False) as look:
            roots = look.names_only()
            yield Evidence(
                lambda path: self._is_managed(session, path, roots), tags, genuine, current
            )

    def _digests_now(self) -> dict[str, str]:
        with self._digests_lock:
            return dict(self._digests)

    def _is_managed(self, session: Session, raw: str, roots: tuple[RootFacts, ...]) -> bool:
        """Whether a path, as a call wrote it, leads into managed memory now; what can not be
        looked at does not."""
        try:
            with glance(expand(raw, session.project_root, self._home)) as opened:
                return managed(opened.real, roots) is not None
        except (ToolError, OSError):
            return False

    def reset(self, session_id: str) -> ResetResult:
        """`context/reset`: the session forgets what was read and tagged, and says what it was."""
        session = self.sessions.get(session_id)
        return ResetResult([Reread(tag.path, tag.scope, tag.pinned) for tag in session.reset()])

    def explain(self, params: ExplainParams, session: Session | None = None) -> Decision:
        """`policy/explain`: the decision by the same code, with nothing touched. `session` as for
        `call`.

        Raises RpcError for an unknown session, and where no path can be made of the arguments.
        """
        session = session or self.sessions.get(params.session_id)
        call = as_call(params.name)
        if call.action == "shell":
            call = attrs.evolve(call, command=self._gate(session, params.arguments))
            return decide(call, None, session.effective)
        path = self._explained_path(session, params)
        with self._recording(session, params.name) as trace:
            trace.outcome = "explained"
            if path is None:
                trace.decision = decide(call, None, session.effective)
                return trace.decision
            with self._decided(session, call, path, trace=trace) as decided:
                return decided.decision

    def _explained_path(self, session: Session, params: ExplainParams) -> str | None:
        if tool := TOOLS.get(params.name):
            unknown = set(params.arguments) - set(tool.properties) - IGNORED_ARGUMENTS
            if unknown:
                raise invalid_params(f"arguments.{min(unknown)}", "is not a known member")
            raw = _text_argument(params.arguments, "file_path", None)
        elif (host := HOST_TOOLS.get(params.name)) and host.path_argument:
            raw = _text_argument(params.arguments, host.path_argument, session.project_root)
        else:
            return None
        return self._expanded(session, raw)

    def _expanded(self, session: Session, raw: str) -> str:
        try:
            return expand(raw, session.project_root, self._home)
        except ToolError as error:
            raise invalid_params("arguments", error.message) from None

    def _gate(self, session: Session, arguments: dict[str, Any]) -> ShellVerdict | None:
        """What the shell gate says of a command; None in a session that does not ask it."""
        command = _text_argument(arguments, "command", None)
        raw = _text_argument(arguments, "directory", session.project_root)
        start = self._expanded(session, raw)
        if session.scope.shell != "read-only":
            return None
        from pinfold.memory.repositories import Finder, memory_of
        from pinfold.policy.shell.gate import judge, read

        reading = read(command)
        if not reading.places:
            return judge(reading, {})
        try:
            with Look(session.roots, session.scope, self._volumes, trust=True) as look:
                finder = Finder(start, self._home, self._env, memory_of(look.names_only()))
                return judge(reading, {place: finder.find(place) for place in reading.places})
        except OSError as error:  # what cannot be looked at is not proven
            return ShellVerdict(
                False, f"`git` would run where nothing can be seen ({error.strerror})"
            )

    @contextmanager
    def _decided(
        self,
        session: Session,
        call: Call,
        path: str,
        *,
        trace: Trace | None = None,
        cached: bool = False,
    ) -> Iterator[_Decided]:
        """Open a path, look at the roots, decide. The one place where that happens."""
        effective = session.effective
        scope = effective.scope
        changing = call.action == "change"
        trust = scope.confine_writes if changing else scope.confine_reads
        with ExitStack() as held:
            try:
                opened = held.enter_context(walk(path) if changing else glance(path, cached=cached))
                look = held.enter_context(
                    Look(session.roots, scope, self._volumes, trust=trust, cached=cached)
                )
                facts = Facts(opened.as_target(), look.whole() if changing else look.names_only())
                if changing:
                    facts = look.add_links_and_aliases(facts, opened)
                    facts = attrs.evolve(facts, record=self._real_record())
            except OSError as error:  # what cannot be looked at is not changed
                reraise(error, str(error.filename or path))
            decision = decide(call, facts, effective)
            if trace is not None:
                trace.decision = decision
                trace.links = _links(opened)
            yield _Decided(opened, facts, decision, look)

    def _deciding(self, request: _Request) -> AbstractContextManager[_Decided]:
        return self._decided(
            request.session,
            request.call,
            request.path,
            trace=request.trace,
            cached=request.cached,
        )

    def _real_record(self) -> str | None:
        """Where the record really is now."""
        if self._recorder is None:
            return None
        directory, base = os.path.split(self._recorder.path)
        return os.path.join(os.path.realpath(directory), base)

    def _read(self, request: _Request) -> _Answer:
        session = request.session
        decided_under = session.effective
        with self._deciding(request) as decided:
            decision = decided.decision
            if decision.decision != "allow":
                return _denied(decision)
            place = self._workplace(request)
            try:
                checked = check(decided.opened, decision)
                outcome = request.tool.run(request.arguments, checked, place)
            except ToolError as error:
                if request.cached and error.kind == "not-found":
                    raise WouldBlock from None  # names that look alike are looked for
                return _Answer(decision, error=_with_near_names(error, decided.opened))
            tag = None
            if decision.root is not None:
                roots = _whole(decided)
                sha256 = getattr(outcome.details, "sha256", None)
                tag = tag_for(
                    decided.opened, decision.root, roots, sha256, complete=outcome.complete
                )
            if session.effective is not decided_under:
                again = decide(request.call, decided.facts, session.effective)
                if again.decision != "allow":
                    return _denied(again)
            request.ticket.require_wanted()
            return _Answer(decision, outcome=outcome, tag=tag)

    def _change(self, request: _Request) -> _Answer:
        for _ in range(_TRIES):
            request.ticket.require_wanted()
            try:
                return self._change_once(request)
            except ChangedUnderfoot:
                continue
            except Denied as error:
                return _denied(error.decision)
        message = (
            f"{request.path}: something else keeps changing it. Nothing was changed; try again."
        )
        with self._deciding(request) as last:
            if last.decision.decision != "allow":
                return _denied(last.decision)
            return _Answer(last.decision, error=ToolError("changed-underfoot", message))

    def _change_once(self, request: _Request) -> _Answer:
        with self._deciding(request) as first:
            self._seam("opened")
            if first.decision.decision != "allow":
                return _denied(first.decision)
            with self._files.hold(first.opened.key) as waited:
                if not waited:
                    return self._perform(request, first)
                with self._deciding(request) as again:
                    if again.decision.decision != "allow":
                        return _denied(again.decision)
                    if again.opened.key != first.opened.key:
                        raise ChangedUnderfoot(request.path)
                    return self._perform(request, again)

    def _perform(self, request: _Request, decided: _Decided) -> _Answer:
        request.ticket.require_wanted()
        checked = check(
            decided.opened,
            decided.decision,
            lambda: self._publishing(request, decided.opened),
            sweep=find_pinned(decided.facts) is None,
        )
        try:
            place = self._workplace(request)
            outcome = request.tool.run(request.arguments, checked, place)
        except ToolError as error:
            return _Answer(decided.decision, error=_with_near_names(error, decided.opened))
        return _Answer(decided.decision, outcome=outcome, published=request.ticket.published)

    def _workplace(self, request: _Request) -> Workplace:
        session = request.session
        return Workplace(
            backend=self._backend,
            limits=self.limits,
            known=session.known,
            staleness=session.scope.staleness,
            cached=request.cached,
            require_wanted=request.ticket.require_wanted,
        )

    @contextmanager
    def _publishing(self, request: _Request, opened: Opened) -> Iterator[None]:
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


def _working_directory() -> str:
    """Only relative variables of the environment need it, and it may have been removed."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _whole(decided: _Decided) -> tuple[RootFacts, ...]:
    """With the reserved directories, for the tag; one that cannot be looked at is not told."""
    try:
        return decided.look.whole()
    except OSError:
        return decided.facts.roots


def _from_uri(raw: str) -> str:
    """The path of a `file:` URI of this machine. Raises RpcError (-32602)."""
    problem = "must be a file: URI of this machine"
    if not raw.isprintable():  # urlsplit would drop some of these
        raise invalid_params("projectRoot", problem)
    try:
        uri = urllib.parse.urlsplit(raw)
        path = urllib.parse.unquote(uri.path, errors="strict")
    except ValueError:
        raise invalid_params("projectRoot", problem) from None
    if uri.netloc.lower() not in ("", "localhost") or uri.query or uri.fragment:
        raise invalid_params("projectRoot", problem)
    return path


def _session_id(given: str | None) -> str:
    if given == "":
        raise invalid_params("sessionId", "must not be empty")
    return given or f"session-{secrets.token_hex(8)}"


def _links(opened: Opened) -> int | None:
    """How many names a file has; None for anything else."""
    status = opened.status
    return status.st_nlink if status is not None and stat.S_ISREG(status.st_mode) else None


def _note(trace: Trace, answer: _Answer) -> None:
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


def _text_argument(arguments: dict[str, Any], name: str, default: str | None) -> str:
    value = arguments.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        problem = "is missing" if value is None else "must be a string"
        raise invalid_params(f"arguments.{name}", problem)
    return value


def _arguments(tool: ToolType, raw: dict[str, Any]) -> Any:
    """Raw arguments → the tool's own type. Raises ToolError `invalid-arguments`."""
    if len(raw) > _MOST_ARGUMENTS:
        message = f"{tool.name} takes {', '.join(tool.properties)}, and nothing else"
        raise ToolError("invalid-arguments", message)
    given = {name: value for name, value in raw.items() if name not in IGNORED_ARGUMENTS}
    try:
        arguments = structure(given, tool.arguments)
    except RpcError as error:
        data = error.data or {}
        member, problem = data.get("path") or "arguments", data.get("problem")
        if member in given and member not in tool.properties:
            problem = f"is not an argument of {tool.name}; it takes {', '.join(tool.properties)}"
        raise ToolError("invalid-arguments", f"{member}: {problem}", path=member) from None
    tool.check(arguments)
    return arguments


def _result(answer: _Answer) -> ToolResult:
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


def _with_near_names(error: ToolError, opened: Opened) -> ToolError:
    """For a file that is not there: names in the same directory that look alike."""
    if error.kind != "not-found" or len(opened.missing) != 1 or opened.parent is None:
        return error
    near = near_names(opened)
    if not near:
        return error
    message = f"{error.message}. There is {', '.join(map(repr, near))}."
    return ToolError(error.kind, message, **error.data, near=near)
