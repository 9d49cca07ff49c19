"""The gateway: sessions, their calls, what is remembered of them. No JSON, no framing, no loop.

Everything here may block, and is safe to call from several threads.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pinfold.audit.entry import Trace
from pinfold.backends.publish import Seam
from pinfold.calls import (
    Answer,
    Asking,
    Calls,
    Cancelled,
    Request,
    Ticket,
    as_result,
    note,
    read_arguments,
)
from pinfold.memory.layouts import Surroundings
from pinfold.memory.prompts import prompt_rules
from pinfold.memory.roots import configured_roots, find_git_root, report
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode, encode, expand, home_directory, working_directory
from pinfold.paths.uri import from_uri, is_uri, to_uri
from pinfold.paths.volume import Volumes
from pinfold.policy.facts import Answers, no_approver
from pinfold.policy.names import collapse
from pinfold.policy.rules import Rule
from pinfold.recording import Records
from pinfold.session import EDITOR, LOCAL, Digests, Session, Sessions, merge
from pinfold.tools.base import ToolType
from pinfold.tools.registry import (
    HOST_TOOLS,
    TOOLS,
    no_such_tool,
    offered,
)
from pinfold_protocol.convert import unstructure, wire_names
from pinfold_protocol.decision import RuleSpec
from pinfold_protocol.errors import RpcError, ToolError, invalid_params
from pinfold_protocol.retention import RetentionTag
from pinfold_protocol.session import (
    AuditOptions,
    ConnectionOptions,
    EditorSession,
    FileDidChangeParams,
    Limits,
    MemoryDidChangeParams,
    MemoryOptions,
    Root,
    SessionCloseResult,
    SessionConfigureParams,
    SessionOpenParams,
    SessionResult,
    SessionSummary,
    TurnBeginParams,
    TurnEndParams,
    TurnEndResult,
    TurnResult,
)
from pinfold_protocol.tools import (
    ToolResult,
    ToolsCallParams,
    WriteDetails,
)

if TYPE_CHECKING:
    from pinfold.audit.log import Log
    from pinfold.backends.buffers import Buffers
    from pinfold.relay import Relayed
    from pinfold.upstreams import Upstreams


class Gateway:
    """Sessions, and the calls of their agents. One for each connection."""

    def __init__(
        self,
        env: dict[str, str] | None = None,
        *,
        cwd: str | None = None,
        seam: Seam = lambda moment: None,
        recording: bool = True,
    ) -> None:
        """`recording`: whether a record that is configured is kept; it is protected in any case."""
        self.env = dict(os.environ) if env is None else env
        self.home = home_directory(self.env)
        self._cwd = cwd or working_directory()
        platform.prepare()
        self.volumes = Volumes()
        self.records = Records()
        self._recording = recording
        self.calls = Calls(self.volumes, lambda: self.limits, self.records.place, seam)
        self._defaults = MemoryOptions()
        self._rules: list[RuleSpec] = []
        self.digests = Digests()
        self.on_memory_change: Callable[[MemoryDidChangeParams], None] = lambda params: None
        self.on_file_change: Callable[[FileDidChangeParams], None] = lambda params: None
        self.on_trouble: Callable[[str], None] = lambda message: None
        self._upstreams: Upstreams | None = None
        self.limits = Limits()
        self.sessions = Sessions()

    def set_options(self, options: ConnectionOptions) -> None:
        """Defaults for the sessions of this connection. Raises RpcError (-32602)."""
        log = None if options.audit is None else self._log(options.audit)
        if options.limits is not None:
            for name, wire in wire_names(Limits).items():
                if getattr(options.limits, name) < 1:
                    raise invalid_params(f"limits.{wire}", "must be at least 1")
        upstreams = self._with_upstreams(options)
        self._require_readable(options.memory, options.rules, "connection", upstreams)
        # All of it is right: only now is any of it taken.
        self.limits = options.limits or self.limits
        self._defaults = options.memory or self._defaults
        self._rules = self._rules if options.rules is None else options.rules
        self._upstreams = upstreams
        if log is not None:
            self.records.begin(log, self._trouble if self._recording else None)

    def require_valid(self, session: EditorSession) -> None:
        """What can be said of an editor's session before it is opened, without a look at the disk.
        Raises RpcError (-32602)."""
        if session.project_root is not None:
            self.project_root(session.project_root)
        _id("sessionId", session.session_id)
        self._require_readable(session.memory, session.rules, "session", self._upstreams)

    def _require_readable(
        self,
        memory: MemoryOptions | None,
        rules: list[RuleSpec] | None,
        of: str,
        upstreams: "Upstreams | None",
    ) -> None:
        if memory is not None:
            configured_roots(memory, self._surroundings("/"))
        if rules is not None:
            from pinfold.policy.rules import Anchors, read_rules

            known = self._known_tools(upstreams)
            read_rules(rules, of, Anchors("/", self.home), known)

    # Upstreams

    @property
    def upstreams(self) -> "Upstreams":
        """The file servers that were configured, if any."""
        if self._upstreams is None:
            from pinfold.upstreams import Upstreams

            self._upstreams = Upstreams(self.env, self.home, {})
        return self._upstreams

    def _with_upstreams(self, options: ConnectionOptions) -> "Upstreams | None":
        """With those that are configured now. Raises RpcError (-32602)."""
        if not options.upstreams:
            return self._upstreams
        return self.upstreams.with_more(options.upstreams)

    def _known_tools(self, upstreams: "Upstreams | None") -> set[str]:
        """The names that rules may give."""
        return {*TOOLS, *HOST_TOOLS, *(() if upstreams is None else upstreams.tools())}

    def offered(self, session: Session | None = None) -> list[dict[str, Any]]:
        """The tools that a session may call, as plain JSON; an upstream's own as it lists them."""
        if session is None or session.upstream is None:
            return [unstructure(tool) for tool in offered()]
        return self.upstreams.offered(session)

    def _call_upstream(
        self,
        session: Session,
        params: ToolsCallParams,
        ticket: Ticket,
        answers: Answers,
        on_progress: Callable[[dict[str, Any]], None] | None,
    ) -> ToolResult:
        from pinfold.relay import Relay, Relayed, as_result

        traces: list[Trace] = []
        errand = None
        try:
            try:
                errand = self.upstreams.errand(session, params.name, params.arguments)
                errand = msgspec.structs.replace(
                    errand, ticket=ticket, traces=traces, answers=answers, on_progress=on_progress
                )
                relay = Relay(self.calls, lambda: self.limits.max_file_bytes)
                relayed = relay.run(errand)
            except ToolError as error:
                relayed = Relayed(None, error=error)
        except (Asking, RpcError):
            raise
        except Cancelled:
            self._record_all(session, params.name, traces, "cancelled")
            raise
        except Exception:
            self._record_all(session, params.name, traces, "failed:internal")
            raise
        self._record_all(session, params.name, traces, _outcome(relayed))
        session.count(denied=relayed.denied)
        for effect in relayed.effects:
            self.digests.drop(effect.path)
            self.on_memory_change(
                MemoryDidChangeParams(session.session_id, effect.root, effect.path, effect.kind)
            )
        self._remember_tag(relayed.tag)
        session.remember(params.call_id, relayed.tag)
        return as_result(relayed, errand)

    def _record_all(self, session: Session, name: str, traces: list[Trace], outcome: str) -> None:
        """One line for each path that was decided; one in any case."""
        self.records.add(session.session_id, name, traces or [Trace()], outcome)

    def changed_paths(self, session: Session, params: ToolsCallParams) -> list[str] | None:
        """The paths, as they are written, that a call to an upstream may change; None for one that
        only reads, or will be refused."""
        try:
            errand = self.upstreams.errand(session, params.name, params.arguments, partly=True)
        except (ToolError, RpcError):
            return None
        if not errand.plan.changes:
            return None
        pairs = zip(errand.plan.paths, errand.paths, strict=True)
        return [collapse(path) for argument, path in pairs if argument.use != "read"]

    def _log(self, options: AuditOptions) -> "Log":
        """Nothing is opened yet. Raises RpcError (-32602)."""
        from pinfold.audit.log import Log
        from pinfold.audit.place import configured

        return Log(configured(options, self.home))

    def _trouble(self, message: str) -> None:
        self.on_trouble(message)

    def close(self, seconds: float = 1.0) -> None:
        """The end: what is to be recorded is written, as far as that takes no longer; upstreams and
        all that they started are ended."""
        if self._upstreams is not None:
            self._upstreams.close()
        self.records.close(seconds)

    def wake(self) -> None:
        """Requests are coming: what is looked at again and again is held, for speed."""
        self.volumes.standing.wake()

    def rest(self) -> None:
        """Nothing is asked for a while: give back what is held only for speed."""
        self.volumes.standing.rest()

    # Sessions

    def open_session(self, params: SessionOpenParams) -> SessionResult:
        """`session/open`. Raises RpcError (-32602)."""
        project = self.project_root(params.project_root)
        roots = configured_roots(self._memory(params.memory), self._surroundings(project))
        backend = self._backend(params.backend)
        session = Session(
            _id("sessionId", params.session_id),
            params.profile,
            project,
            roots,
            merge({}, params.scope),
            self._all_rules(params.rules, project),
            backend,
        )
        result = self._result(session)
        self.sessions.add(session)
        return result

    def attach_editor(self, buffers: "Buffers") -> None:
        """Let sessions have an editor's open documents as their backend."""
        from pinfold.backends.editor import EditorBackend

        backend = EditorBackend(self.calls.backend, buffers, lambda: self.limits.editor_seconds)
        self.calls.backends[EDITOR] = backend

    def _backend(self, name: str | None) -> str:
        """One that there is; an upstream runs then. Raises RpcError (-32602)."""
        if name is None or name in self.calls.backends:
            return name or LOCAL
        if name == EDITOR:
            problem = "needs a client that announces capabilities.textDocument"
            raise invalid_params("backend", problem)
        self.upstreams.start(name, self)
        return name

    def configure_session(self, params: SessionConfigureParams) -> SessionResult:
        """`session/configure`. Waits until no change decided under the old scope is under way."""
        session = self.sessions.get(params.session_id)
        rules = None
        if params.rules is not None:
            rules = self._all_rules(params.rules, session.project_root)
        session.configure(params.scope, rules)
        return self._result(session)

    def begin_turn(self, params: TurnBeginParams) -> TurnResult:
        """`turn/begin`. Waits until no change decided under the wider scope is under way."""
        session = self.sessions.get(params.session_id)
        turn_id = _id("turnId", params.turn_id)
        session.begin_turn(turn_id, params.profile, params.scope)
        return TurnResult(turn_id, session.scope, self._prompt_rules(session))

    def end_turn(self, params: TurnEndParams) -> TurnEndResult:
        """`turn/end`."""
        session = self.sessions.get(params.session_id)
        session.end_turn(params.turn_id)
        return TurnEndResult(session.scope, self._prompt_rules(session))

    def _all_rules(self, own: list[RuleSpec] | None, project: str) -> tuple[Rule, ...]:
        """The connection's rules and a session's own. Raises RpcError (-32602)."""
        if not own and not self._rules:
            return ()
        from pinfold.policy.rules import Anchors, read_rules

        anchors = Anchors(project, self.home, _real)
        known = self._known_tools(self._upstreams)
        ours = read_rules(self._rules, "connection", anchors, known)
        return ours + read_rules(own or (), "session", anchors, known)

    def _prompt_rules(self, session: Session) -> list[str]:
        return prompt_rules(session.prompt_profile, session.scope)

    def close_session(self, session_id: str) -> SessionCloseResult:
        """`session/close`. The caller has seen to it that no call of it is under way."""
        session = self.sessions.remove(session_id)
        return SessionCloseResult(session.calls, session.denials)

    def summaries(self) -> list[SessionSummary]:
        """`session/list`."""
        return [
            SessionSummary(s.session_id, s.profile, s.project_root, s.turns, s.calls, s.denials)
            for s in self.sessions.all()
        ]

    def _result(self, session: Session) -> SessionResult:
        return SessionResult(
            session_id=session.session_id,
            profile=session.profile,
            scope=session.scope,
            roots=report(session.roots, session.scope, self.volumes),
            tools=[tool["name"] for tool in self.offered(session)],
            prompt_rules=self._prompt_rules(session),
        )

    def roots(self, session: Session) -> list[Root]:
        """`memory/roots`."""
        return report(session.roots, session.scope, self.volumes)

    def _memory(self, given: MemoryOptions | None) -> MemoryOptions:
        if given is None:
            return self._defaults
        members = msgspec.structs.asdict(given).items()
        given_here = {name: value for name, value in members if value is not None}
        return msgspec.structs.replace(self._defaults, **given_here)

    def _surroundings(self, project: str) -> Surroundings:
        git_root = find_git_root(project)
        return Surroundings(project, git_root, self.env, self.home, self._cwd)

    def project_root(self, raw: str) -> str:
        """The absolute path that a host means, as text. Raises RpcError (-32602)."""
        path = from_uri(raw, "projectRoot") if is_uri(raw) else raw
        if not path.startswith("/"):
            raise invalid_params("projectRoot", "must be an absolute path or a file: URI")
        try:
            return collapse(expand(path, "/", self.home))
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
        answers: Answers = no_approver,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        local: bool = False,
    ) -> ToolResult:
        """`tools/call`: look, decide, do, tag. `session`: the one that the params named when
        they arrived, where its id may name another one by now. `on_progress` gets what an
        upstream tells meanwhile. `local`: by the gateway itself, whatever the session is in front
        of.

        Raises RpcError for an unknown session or tool, Cancelled, and with `cached` WouldBlock
        where an answer would have to wait for anything: then nothing has happened yet. The same
        with Asking, where a base rule asks and `answers` has none for this call.
        """
        session = session or self.sessions.get(params.session_id)
        if session.upstream is not None and not local:
            if cached:
                raise WouldBlock
            mine = ticket or Ticket()
            return self._call_upstream(session, params, mine, answers, on_progress)
        tool = TOOLS.get(params.name)
        if tool is None:
            raise invalid_params("name", no_such_tool(params.name, TOOLS))
        trace = Trace()
        work = partial(
            self._answer, session, tool, params, ticket or Ticket(), trace, cached, answers
        )
        answer = self._recorded(session, params, trace, work) if self.records.recorder else work()
        session.count(denied=answer.denied)
        if answer.published:
            self._notify(session, answer)
            self._remember_written(answer)
        if answer.tag is not None:
            self._remember_tag(answer.tag)
        if answer.tag is not None or params.call_id is not None:
            session.remember(params.call_id, answer.tag)
        return as_result(answer)

    def _answer(
        self,
        session: Session,
        tool: ToolType,
        params: ToolsCallParams,
        ticket: Ticket,
        trace: Trace,
        cached: bool,
        answers: Answers,
    ) -> Answer:
        try:
            arguments = read_arguments(tool, params.arguments)
            path = expand(arguments.file_path, session.project_root, self.home)
            return self.calls.run(
                Request(session, tool, arguments, path, ticket, trace, cached, answers)
            )
        except ToolError as error:
            return Answer(None, error=error)

    def _recorded(
        self, session: Session, params: ToolsCallParams, trace: Trace, work: Callable[[], Answer]
    ) -> Answer:
        """The answer of `work`; what becomes of it is recorded."""
        with self.records.recording(session.session_id, params.name, trace):
            trace.path = self._named_path(session, params.arguments)
            answer = work()
            note(trace, answer)
        return answer

    def _named_path(self, session: Session, arguments: dict[str, Any]) -> str | None:
        """The path that a call names, for the record; None where no path can be made of it."""
        try:
            raw = arguments.get("file_path")
            return expand(raw, session.project_root, self.home) if isinstance(raw, str) else None
        except ToolError:
            return None

    def _notify(self, session: Session, answer: Answer) -> None:
        """Tell of a change below a root, so that a client can refresh a stale index, and an
        editor of what it does not have open."""
        details = None if answer.outcome is None else answer.outcome.details
        root = None if answer.decision is None else answer.decision.root
        if not isinstance(details, WriteDetails):
            return
        kind: Literal["created", "changed"] = "created" if details.created else "changed"
        if session.backend == EDITOR and details.source == "disk":
            uri = to_uri(details.path)
            self.on_file_change(FileDidChangeParams(session.session_id, uri, kind))
        if root is not None:
            params = MemoryDidChangeParams(session.session_id, root, details.path, kind)
            self.on_memory_change(params)

    def _remember_written(self, answer: Answer) -> None:
        """What a document of managed memory last was, whichever session wrote it."""
        details = None if answer.outcome is None else answer.outcome.details
        if isinstance(details, WriteDetails) and answer.decision and answer.decision.root:
            self.digests.put(details.path, details.sha256)

    def _remember_tag(self, tag: RetentionTag | None) -> None:
        if tag is not None and tag.sha256 is not None:
            self.digests.put(tag.path, tag.sha256)


def _outcome(relayed: "Relayed") -> str:
    """For the record."""
    if relayed.error is not None:
        return "denied" if relayed.denied else f"failed:{relayed.error.kind}"
    failed = relayed.result is not None and relayed.result.get("isError") is True
    return "failed:backend" if failed else "done"


def _id(member: str, given: str | None) -> str:
    if given == "":
        raise invalid_params(member, "must not be empty")
    return given or f"{member.removesuffix('Id')}-{os.urandom(8).hex()}"


def _real(path: str) -> str:
    """What a path leads to now, as text."""
    return decode(os.path.realpath(encode(path)))
