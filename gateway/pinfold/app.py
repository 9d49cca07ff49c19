"""The gateway: sessions, their calls, what is remembered of them. No JSON, no framing, no loop.

Everything here may block, and is safe to call from several threads.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pinfold.audit.entry import Entry, Trace
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
from pinfold.deciding import Ground, judged_command
from pinfold.memory.layouts import Surroundings
from pinfold.memory.prompts import prompt_rules
from pinfold.memory.roots import Look, configured_roots, find_git_root, report
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode, encode, expand, home_directory, working_directory
from pinfold.paths.opened import check
from pinfold.paths.uri import from_uri, is_uri, to_uri
from pinfold.paths.volume import Volumes
from pinfold.paths.walk import glance
from pinfold.policy.confinement import managed
from pinfold.policy.decide import decide
from pinfold.policy.facts import Answers, RootFacts, ShellVerdict, no_approver
from pinfold.policy.names import collapse
from pinfold.policy.rules import Rule
from pinfold.session import EDITOR, LOCAL, Session, Sessions, merge, put
from pinfold.text.lines import normalize
from pinfold.tools.base import ToolType
from pinfold.tools.registry import (
    HOST_TOOLS,
    IGNORED_ARGUMENTS,
    TOOLS,
    as_call,
    no_such_tool,
    offered,
)
from pinfold_protocol.convert import unstructure, wire_names
from pinfold_protocol.decision import Decision, ExplainParams, RootKind, RuleSpec
from pinfold_protocol.errors import RpcError, ToolError, invalid_params
from pinfold_protocol.retention import RetentionTag
from pinfold_protocol.session import (
    PROFILES,
    AuditOptions,
    ConnectionOptions,
    EditorSession,
    FileDidChangeParams,
    Limits,
    MemoryDidChangeParams,
    MemoryOptions,
    Profile,
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
    from pinfold.audit.recorder import Recorder
    from pinfold.backends.buffers import Buffers
    from pinfold.compaction import Evidence
    from pinfold.memory.survey import Survey
    from pinfold.relay import Relayed
    from pinfold.text.codec import Decoded
    from pinfold.upstreams import Upstreams
    from pinfold_protocol.compaction import CompactParams, CompactResult, ResetResult
    from pinfold_protocol.memory import MemoryIndexResult

_MOST_ARGUMENTS = 64
_TRIES = 8
"""How often a change is tried again when something else changed the tree meanwhile."""


class Gateway:
    """Sessions, and the calls of their agents. One for each connection."""

    def __init__(
        self,
        env: dict[str, str] | None = None,
        *,
        cwd: str | None = None,
        seam: Seam = lambda moment: None,
    ) -> None:
        self._env = dict(os.environ) if env is None else env
        self._home = home_directory(self._env)
        self._cwd = cwd or working_directory()
        platform.prepare()
        self._volumes = Volumes()
        self.calls = Calls(self._volumes, lambda: self.limits, self._real_record, seam)
        self._defaults = MemoryOptions()
        self._rules: list[RuleSpec] = []
        self._digests: dict[str, str] = {}
        self._digests_lock = threading.Lock()
        self._recorder: Recorder | None = None
        self.on_memory_change: Callable[[MemoryDidChangeParams], None] = lambda params: None
        self.on_file_change: Callable[[FileDidChangeParams], None] = lambda params: None
        self.on_trouble: Callable[[str], None] = lambda message: None
        self._upstreams: Upstreams | None = None
        self.limits = Limits()
        self.sessions = Sessions()

    def set_options(self, options: ConnectionOptions) -> None:
        """Defaults for the sessions of this connection. Raises RpcError (-32602)."""
        recorder = None if options.audit is None else self._recorder_for(options.audit)
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
        if recorder is not None:
            self._recorder = recorder

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
            read_rules(rules, of, Anchors("/", self._home), known)

    # Upstreams

    @property
    def upstreams(self) -> "Upstreams":
        """The file servers that were configured, if any."""
        if self._upstreams is None:
            from pinfold.upstreams import Upstreams

            self._upstreams = Upstreams(self._env, self._home, {})
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
            self._keep_all(session, params.name, traces, "cancelled")
            raise
        except Exception:
            self._keep_all(session, params.name, traces, "failed:internal")
            raise
        self._keep_all(session, params.name, traces, _outcome(relayed))
        session.count(denied=relayed.denied)
        for effect in relayed.effects:
            with self._digests_lock:
                self._digests.pop(effect.path, None)
            self.on_memory_change(
                MemoryDidChangeParams(session.session_id, effect.root, effect.path, effect.kind)
            )
        self._remember_tag(relayed.tag)
        session.remember(params.call_id, relayed.tag)
        return as_result(relayed, errand)

    def _keep_all(self, session: Session, name: str, traces: list[Trace], outcome: str) -> None:
        """One line for each path that was decided; one in any case."""
        for trace in traces or [Trace()]:
            trace.outcome = outcome
            if self._recorder is not None:
                self._recorder.record(Entry(session.session_id, name, trace))

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

    def _recorder_for(self, options: AuditOptions) -> "Recorder":
        """Nothing is opened yet. Raises RpcError (-32602)."""
        from pinfold.audit.log import Log
        from pinfold.audit.place import configured
        from pinfold.audit.recorder import Recorder

        return Recorder(Log(configured(options, self._home)), self._trouble)

    def _trouble(self, message: str) -> None:
        self.on_trouble(message)

    def close(self, seconds: float = 1.0) -> None:
        """The end: what is to be recorded is written, as far as that takes no longer; upstreams and
        all that they started are ended."""
        if self._upstreams is not None:
            self._upstreams.close()
        if self._recorder is not None:
            self._recorder.close(seconds)

    def wake(self) -> None:
        """Requests are coming: what is looked at again and again is held, for speed."""
        self._volumes.standing.wake()

    def arrived(self) -> None:
        """Something has come from the host; to be said while it is awake, before it is acted on."""
        self._volumes.standing.arrived()

    def rest(self) -> None:
        """Nothing is asked for a while: give back what is held only for speed."""
        self._volumes.standing.rest()

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

        anchors = Anchors(project, self._home, _real)
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
            roots=report(session.roots, session.scope, self._volumes),
            tools=[tool["name"] for tool in self.offered(session)],
            prompt_rules=self._prompt_rules(session),
        )

    def roots(self, session: Session) -> list[Root]:
        """`memory/roots`."""
        return report(session.roots, session.scope, self._volumes)

    def index(
        self,
        session: Session,
        kinds: Collection[RootKind] | None = None,
        limit: int | None = None,
    ) -> "MemoryIndexResult":
        """`memory/index`: the documents that the session may read, of the roots of `kinds` (None:
        of all), at most `limit` of each (None: 200).

        Raises RpcError (-32602) for a limit below 1.
        """
        from pinfold.memory.index import Readable, index  # not for a first read
        from pinfold_protocol.memory import DEFAULT_LIMIT

        most = DEFAULT_LIMIT if limit is None else limit
        if most < 1:
            raise invalid_params("limit", "must be at least 1")
        while True:
            effective = session.effective
            # Only a denial of a change must fail closed where a reserved directory cannot be seen.
            scope = msgspec.structs.replace(effective.scope, protect_pinned=False)
            with Look(session.roots, scope, self._volumes, trust=True) as look:
                readable = Readable(effective, session.answers)
                result = index(look, session.roots, readable, kinds, most)
            if session.effective is effective:  # else it was listed under a scope that is gone
                return result

    @contextmanager
    def survey(self, session: Session) -> "Iterator[Survey]":
        """A look at where documents stand in the roots of a session, and what links lead to: with
        what is pinned, whether the session protects that or not."""
        from pinfold.memory.index import Readable
        from pinfold.memory.survey import Survey

        scope = msgspec.structs.replace(session.scope, protect_pinned=True, hard_links="deny")
        readable = Readable(session.effective, session.answers)
        with Look(session.roots, scope, self._volumes, trust=True) as look:
            yield Survey(look, readable.may)

    def text_of(self, session: Session, path: str) -> str | None:
        """The text of a file that the session may read, decoded without loss; None for any other,
        and where there is none."""
        found = self._decoded(session, path)
        return None if found is None or found.undecodable else found.text

    def rewrite(
        self, session: Session, path: str, before: str, change: Callable[[str], str]
    ) -> bool:
        """Change the text of a file, as a call of the session, if it still is `before` but for its
        line endings, which not every editor tells: whether that was done."""
        found = self._decoded(session, path)
        if found is None or found.undecodable or normalize(found.text) != normalize(before):
            return False
        digest = hashlib.sha256(found.data).hexdigest()
        content = change(found.text)
        arguments = {"file_path": path, "content": content, "expected_sha256": digest}
        params = ToolsCallParams(session.session_id, "write_file", arguments)
        return not self.call(params, session=session).is_error

    def move(self, session: Session, old: str, new: str) -> None:
        """Move a file to a name that is free, both ends decided as changes, and tell of it. Raises
        ToolError; then nothing was moved."""
        told: list[tuple[str, Literal["created", "deleted"]]] = [(old, "deleted"), (new, "created")]
        with _Recording(self._recorder, session, "move") as trace:
            trace.path = old
            with self.calls.decided(session, as_call("write_file"), old) as decided:
                trace.decision = decided.decision
            self.calls.move(session, old, new)
        for path, kind in told:
            with (
                glance(path) as opened,
                Look(session.roots, session.scope, self._volumes, trust=False) as look,
            ):
                root = managed(opened.real, look.names_only())
            if root is not None:
                real = opened.real or path
                self.on_memory_change(MemoryDidChangeParams(session.session_id, root, real, kind))

    def _decoded(self, session: Session, path: str) -> "Decoded | None":
        from pinfold.text.codec import decode as decode_text

        try:
            with self.calls.decided(session, as_call("read_file"), path) as decided:
                if decided.decision.decision != "allow":
                    return None
                checked = check(decided.opened, decided.decision)
                data = self.calls.backend.read(checked, self.limits.max_file_bytes).data
            return decode_text(data)
        except ToolError:
            return None

    def who_may(self, session: Session, tool: str, path: str) -> "dict[Profile, Decision]":
        """What each profile would be told of a call, with the roots and the rules of a session."""
        told: dict[Profile, Decision] = {}
        for profile in PROFILES:
            rules = session.effective.rules
            asked = Session(
                session.session_id, profile, session.project_root, session.roots, {}, rules
            )
            told[profile] = self.explain(
                ExplainParams(session.session_id, tool, {"file_path": path}), asked
            )
        return told

    def _memory(self, given: MemoryOptions | None) -> MemoryOptions:
        if given is None:
            return self._defaults
        members = msgspec.structs.asdict(given).items()
        given_here = {name: value for name, value in members if value is not None}
        return msgspec.structs.replace(self._defaults, **given_here)

    def _surroundings(self, project: str) -> Surroundings:
        git_root = find_git_root(project)
        return Surroundings(project, git_root, self._env, self._home, self._cwd)

    def project_root(self, raw: str) -> str:
        """The absolute path that a host means, as text. Raises RpcError (-32602)."""
        path = from_uri(raw, "projectRoot") if is_uri(raw) else raw
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
        answer = self._recorded(session, params, trace, work) if self._recorder else work()
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
            path = expand(arguments.file_path, session.project_root, self._home)
            return self.calls.run(
                Request(session, tool, arguments, path, ticket, trace, cached, answers)
            )
        except ToolError as error:
            return Answer(None, error=error)

    def _recorded(
        self, session: Session, params: ToolsCallParams, trace: Trace, work: Callable[[], Answer]
    ) -> Answer:
        """The answer of `work`; what becomes of it is recorded."""
        with _Recording(self._recorder, session, params.name, trace):
            trace.path = self._named_path(session, params.arguments)
            answer = work()
            note(trace, answer)
        return answer

    def _named_path(self, session: Session, arguments: dict[str, Any]) -> str | None:
        """The path that a call names, for the record; None where no path can be made of it."""
        try:
            raw = arguments.get("file_path")
            return expand(raw, session.project_root, self._home) if isinstance(raw, str) else None
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
            self._put_digest(details.path, details.sha256)

    def _remember_tag(self, tag: RetentionTag | None) -> None:
        if tag is not None and tag.sha256 is not None:
            self._put_digest(tag.path, tag.sha256)

    def _put_digest(self, path: str, sha256: str | None) -> None:
        if sha256 is not None:
            with self._digests_lock:
                self._digests.pop(path, None)
                put(self._digests, path, sha256)

    # Compaction

    def compact(self, params: "CompactParams", session: Session | None = None) -> "CompactResult":
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
    def evidence(self, params: "CompactParams", session: Session | None) -> "Iterator[Evidence]":
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
                managed=lambda path: self._is_managed(session, path, roots),
                tags=tags,
                genuine=genuine,
                current=current,
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

    def reset(self, session_id: str) -> "ResetResult":
        """`context/reset`: the session forgets what was read and tagged, and says what it was."""
        session = self.sessions.get(session_id)
        from pinfold_protocol.compaction import Reread, ResetResult

        return ResetResult([Reread(tag.path, tag.scope, tag.pinned) for tag in session.reset()])

    def explain(self, params: ExplainParams, session: Session | None = None) -> Decision:
        """`policy/explain`: the decision by the same code, with nothing touched. `session` as for
        `call`.

        Raises RpcError for an unknown session, and where no path can be made of the arguments.
        """
        session = session or self.sessions.get(params.session_id)
        if session.upstream is not None and self.upstreams.answers_for(session, params.name):
            return self._explain_upstream(session, params)
        call = as_call(params.name)
        if call.action == "shell":
            call = msgspec.structs.replace(call, command=self._gate(session, params.arguments))
        path = self._explained_path(session, params)
        with _Recording(self._recorder, session, params.name) as trace:
            trace.outcome = "explained"
            if path is None:
                trace.decision = decide(call, None, session.effective, session.answers)
                return trace.decision
            with self.calls.decided(session, call, path) as decided:
                trace.decision = decided.decision
                return decided.decision

    def _explain_upstream(self, session: Session, params: ExplainParams) -> Decision:
        from pinfold.relay import Relay

        try:
            errand = self.upstreams.errand(session, params.name, params.arguments, partly=True)
            errand = msgspec.structs.replace(errand, answers=session.answers)
            decision = Relay(self.calls, lambda: 0).decide(errand)
        except ToolError as error:
            raise invalid_params("arguments", error.message) from None
        self._keep_all(session, params.name, errand.traces, "explained")
        return decision

    def _explained_path(self, session: Session, params: ExplainParams) -> str | None:
        if tool := TOOLS.get(params.name):
            unknown = set(params.arguments) - set(tool.properties) - IGNORED_ARGUMENTS
            if unknown:
                raise invalid_params(f"arguments.{min(unknown)}", "is not a known member")
            member, raw = "file_path", _text_argument(params.arguments, "file_path", None)
        elif (host := HOST_TOOLS.get(params.name)) and host.path_argument:
            member = host.path_argument
            raw = _text_argument(params.arguments, member, session.project_root)
        else:
            return None
        return self._expanded(session, member, raw)

    def _expanded(self, session: Session, member: str, raw: str) -> str:
        try:
            return expand(raw, session.project_root, self._home)
        except ToolError as error:
            raise invalid_params(f"arguments.{member}", error.message) from None

    def _gate(self, session: Session, arguments: dict[str, Any]) -> ShellVerdict | None:
        """What the shell gate says of a command; None in a session that does not ask it."""
        command = _text_argument(arguments, "command", None)
        raw = _text_argument(arguments, "directory", session.project_root)
        start = self._expanded(session, "directory", raw)
        if session.scope.shell != "read-only":
            return None
        ground = Ground(session.roots, session.effective, self._volumes)
        return judged_command(ground, command, start, home=self._home, env=self._env)

    def _real_record(self) -> str | None:
        """Where the record really is now."""
        if self._recorder is None:
            return None
        directory, base = os.path.split(self._recorder.path)
        return os.path.join(os.path.realpath(directory), base)


class _Recording:
    """Records what becomes of a call, exactly once; nothing where it has not begun."""

    def __init__(
        self, recorder: "Recorder | None", session: Session, name: str, trace: Trace | None = None
    ) -> None:
        self._recorder = recorder
        self._session_id = session.session_id
        self._name = name
        self._trace = trace or Trace()

    def __enter__(self) -> Trace:
        return self._trace

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: object
    ) -> None:
        if isinstance(error, WouldBlock | Asking | RpcError):
            return
        if error is not None:
            failed = f"failed:{error.kind if isinstance(error, ToolError) else 'internal'}"
            self._trace.outcome = "cancelled" if isinstance(error, Cancelled) else failed
        if self._recorder is not None:
            self._recorder.record(Entry(self._session_id, self._name, self._trace))


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


def _text_argument(arguments: dict[str, Any], name: str, default: str | None) -> str:
    value = arguments.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        problem = "is missing" if value is None else "must be a string"
        raise invalid_params(f"arguments.{name}", problem)
    return value
