"""A call in front of an upstream: look and decide for every path, forward, look at what came back.

The upstream opens the files by itself, so the race that a local call closes stays open here
(docs/upstream.md); what is decided is the same, and by the same code.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, Literal

import msgspec

from pinfold.audit.entry import Trace
from pinfold.backends.local import not_regular
from pinfold.calls import Calls, Cancelled, Denied, Ticket, refusal
from pinfold.deciding import Decided
from pinfold.memory.retention import tag_for
from pinfold.paths.errors import ChangedUnderfoot, reraise
from pinfold.paths.opened import check, snapshot
from pinfold.paths.walk import walk
from pinfold.policy.decide import decide, guard, may_read
from pinfold.policy.facts import Answers, Call
from pinfold.session import Session
from pinfold.tools.base import UNREADABLE
from pinfold.tools.registry import TOOLS
from pinfold.upstream.mapping import ENTRIES, TREES, PathArgument, Plan
from pinfold.upstream.peer import Peer
from pinfold.upstream.waiting import GaveUp, Params, Waiting
from pinfold_protocol.convert import unstructure
from pinfold_protocol.decision import Decision, RootKind
from pinfold_protocol.errors import ToolError, kept, short
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag
from pinfold_protocol.tools import (
    DECISION_KEY,
    DETAILS_KEY,
    AnyContent,
    TextContent,
    ToolResult,
    UpstreamDetails,
)

_TRIES = 8
_READS = ("read_file",)
_CHANGES = ("write_file", "edit")


class Effect(msgspec.Struct, frozen=True):
    """A path in managed memory that is not what it was before the call."""

    root: RootKind
    path: str
    kind: Literal["created", "changed", "deleted"]


class Relayed(msgspec.Struct, frozen=True):
    """What became of a call: exactly one of `result` (as the upstream answered, without our keys)
    and `error` is there."""

    decision: Decision | None
    result: Params | None = None
    error: ToolError | None = None
    tag: RetentionTag | None = None
    path: str | None = None
    effects: tuple[Effect, ...] = ()

    def __post_init__(self) -> None:
        if self.error is not None:
            kept(self.error)

    @property
    def denied(self) -> bool:
        """Whether the decision stopped it."""
        return self.error is not None and self.error.kind == "denied"


class Errand(msgspec.Struct, frozen=True):
    """One call with everything that its steps need. `paths`: absolute, one for each of the plan's;
    `traces` gets what is found out about each, for the record."""

    session: Session
    name: str
    plan: Plan
    paths: tuple[str, ...]
    peer: Peer
    ticket: Ticket
    traces: list[Trace]
    answers: Answers
    on_progress: Callable[[Params], None] | None = None

    @property
    def scoped(self) -> bool:
        """Whether this session protects or confines anything, now."""
        return guard(self.session.scope) is not None

    @property
    def taking(self) -> Call:
        """What a move is at its source besides a change: it takes what is there to where other
        rules hold, and so reads it."""
        return Call(self.name, "read", tree=True, foreign=True, also=(*_READS, self.plan.tool))

    def call(self, argument: PathArgument | None) -> Call:
        """The call as the policy sees it, for one of its paths; None where it has none."""
        plan = self.plan
        if not plan.known:
            return Call(self.name, "unknown", foreign=True)
        use = "read" if argument is None else argument.use
        changing = use != "read"
        alike = () if plan.ours else _CHANGES if changing else _READS
        return Call(
            self.name,
            "change" if changing else "read",
            managed_only=plan.ours is not None and TOOLS[plan.ours].managed_only,
            tree=use in TREES,
            foreign=True,
            also=(*alike, plan.tool),
            unmapped=plan.unmapped,
        )


class _Found(msgspec.Struct, frozen=True):
    """What was decided about all paths: the first that is not allowed decides, else the first."""

    decision: Decision
    each: tuple[Decided, ...]


class Relay:
    """Runs errands. `most`: how many bytes of a file are compared with what came back."""

    def __init__(self, calls: Calls, most: Callable[[], int]) -> None:
        self._calls = calls
        self._most = most

    def decide(self, errand: Errand) -> Decision:
        """The decision, with nothing touched. Raises ToolError where something cannot be looked
        at."""
        with ExitStack() as held:
            return self._decide(held, errand).decision

    def run(self, errand: Errand) -> Relayed:
        """One call. Raises ToolError, Cancelled, Asking."""
        return self._change(errand) if errand.plan.changes else self._read(errand)

    def _decide(self, held: ExitStack, errand: Errand) -> _Found:
        """Every path by itself, through the one place that looks and decides. What was opened
        stays open while `held` does."""
        session, plan = errand.session, errand.plan
        errand.traces.clear()
        if plan.absent is not None and errand.scoped and plan.unmapped is None:
            message = f"{plan.absent}: is missing, and in this session a path must be said."
            raise ToolError("invalid-arguments", message, path=plan.absent)
        if not plan.paths:
            decision = decide(errand.call(None), None, session.effective, errand.answers)
            errand.traces.append(Trace(decision=decision))
            return _Found(decision, ())
        found: list[Decided] = []
        for argument, path in zip(plan.paths, errand.paths, strict=True):
            each = held.enter_context(
                self._calls.decided(session, errand.call(argument), path, answers=errand.answers)
            )
            errand.traces.append(Trace(path, each.decision, each.opened.status))
            found.append(each)
            decision = each.decision
            if decision.decision == "allow" and argument.use == "move-from":
                decision = decide(errand.taking, each.facts, each.effective, errand.answers)
                errand.traces[-1] = Trace(path, decision, each.opened.status)
            if decision.decision != "allow":
                return _Found(decision, tuple(found))
        return _Found(found[0].decision, tuple(found))

    # Reads

    def _read(self, errand: Errand) -> Relayed:
        session = errand.session
        decided_under = session.effective
        with ExitStack() as held:
            found = self._decide(held, errand)
            if refused := _refused(errand, found.decision):
                return refused
            relayed = self._send(errand, found)
            if session.effective is not decided_under:
                with ExitStack() as again:
                    if refused := _refused(errand, self._decide(again, errand).decision):
                        return refused
            errand.ticket.require_wanted()
            try:
                tag = self._tag(found, relayed.result)
            except ToolError as error:
                return Relayed(found.decision, error=error, path=relayed.path)
            return msgspec.structs.replace(relayed, tag=tag)

    def _tag(self, found: _Found, result: Params | None) -> RetentionTag | None:
        """Only where the gateway reads the same at that very path, and nothing else came back.
        Raises ToolError `io` where that cannot be found out this time."""
        shown = None if result is None else _shown(result)
        if shown is None or len(found.each) != 1 or found.decision.root is None:
            return None
        (only,) = found.each
        status = only.opened.status
        if status is None or status.st_size != len(shown):
            return None
        try:
            data = self._calls.backend.read(check(only.opened, only.decision), self._most()).data
        except ToolError as error:
            if error.kind == "io":
                raise
            return None
        if data != shown:
            return None
        digest = hashlib.sha256(data).hexdigest()
        try:
            return tag_for(only.opened, found.decision.root, only.look, digest, complete=True)
        except OSError as error:
            reraise(error, str(error.filename or only.opened.literal))

    # Changes

    def _change(self, errand: Errand) -> Relayed:
        for _ in range(_TRIES):
            errand.ticket.require_wanted()
            try:
                return self._change_once(errand)
            except ChangedUnderfoot:
                continue
            except Denied as error:
                if refused := _refused(errand, error.decision):
                    return refused
        message = "Something else keeps changing the path. Nothing was changed; try again."
        last = self.decide(errand)
        given_up = Relayed(last, error=ToolError("changed-underfoot", message))
        return _refused(errand, last) or given_up

    def _change_once(self, errand: Errand) -> Relayed:
        session = errand.session
        with ExitStack() as held:
            first = self._decide(held, errand)
            if refused := _refused(errand, first.decision):
                return refused
            errand.peer.start()
            for key in sorted({each.opened.key for each in first.each}, key=repr):
                held.enter_context(self._calls.files.hold(key))
            # Once more, whole, with the scope now in force; then it is told, and no way back.
            with session.gate.passing(), errand.ticket.publishing(), ExitStack() as again:
                last = self._decide(again, errand)
                _require_same(first, last)
                if last.decision.decision != "allow":
                    raise Denied(last.decision)
                if session.closed:
                    raise Cancelled
                relayed = self._send(errand, last)
                return msgspec.structs.replace(relayed, effects=tuple(_effects(errand.plan, last)))

    def _send(self, errand: Errand, found: _Found) -> Relayed:
        """Tell the upstream, and wait. A failure is an answer too: what it did is not known."""
        paths = [
            _forwarded(argument, path, each, scoped=errand.scoped)
            for argument, path, each in zip(
                errand.plan.paths, errand.paths, found.each, strict=True
            )
        ]
        path = paths[0] if paths else None
        changing = errand.plan.changes
        shown = not changing or _may_show(errand, found)
        on_progress = errand.on_progress if shown else None
        waiting = Waiting(changing=changing, on_progress=on_progress)
        try:
            with errand.ticket.watched(waiting.cancel):
                result = errand.peer.call(errand.plan.tool, errand.plan.with_paths(paths), waiting)
        except GaveUp:
            raise Cancelled from None
        except ToolError as error:
            said = error if shown else _unsaid(errand, error)
            return Relayed(found.decision, error=said, path=path)
        return Relayed(
            found.decision, result=result if shown else _hidden(errand, result), path=path
        )


def _refused(errand: Errand, decision: Decision) -> Relayed | None:
    error = refusal(errand.name, decision)
    return None if error is None else Relayed(decision, error=error)


def _forwarded(argument: PathArgument, path: str, found: Decided, *, scoped: bool) -> str:
    """The real path; in a session without a scope, the link itself for what is about names.
    Raises ToolError for one that no other process may be handed."""
    if found.opened.nameless:  # another process would open our own pipes by it
        raise not_regular(path)
    real = found.decision.resolved_path
    return path if real is None or (argument.use in ENTRIES and not scoped) else real


def _may_show(errand: Errand, found: _Found) -> bool:
    """Whether the session may read all that a change is about: what an upstream answers to one may
    quote it. The gate is passed: no other scope is in force before the answer is there."""
    answers = errand.session.answers
    return all(may_read(each.facts, each.effective, answers) for each in found.each)


def _hidden(errand: Errand, result: Params) -> Params:
    """Whether it went well, and nothing else of the upstream's."""
    failed = result.get("isError") is True
    fate = "failed" if failed else "did it"
    then = " Ask the user what is there." if failed else ""
    text = f"{errand.peer.name} {fate}. What it answered is not shown, {UNREADABLE}.{then}"
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _unsaid(errand: Errand, error: ToolError) -> ToolError:
    """The error, without the upstream's own words."""
    if "code" not in error.data:
        return error
    message = f"{errand.peer.name} answered an error, which is not shown, {UNREADABLE}."
    return ToolError("backend", f"{message} Ask the user what is there.", **error.data)


def _require_same(first: _Found, last: _Found) -> None:
    """Raises ChangedUnderfoot where a path leads elsewhere now."""
    try:
        for one, other in zip(first.each, last.each, strict=False):
            one.opened.require_same(other.opened)
    except OSError as error:
        reraise(error, str(error.filename or ""))


def _effects(plan: Plan, found: _Found) -> Iterable[Effect]:
    """What is not as it was: looked at, since an answer proves nothing."""
    for argument, each in zip(plan.paths, found.each, strict=True):
        root, real = each.decision.root, each.opened.real
        if argument.use == "read" or root is None or real is None:
            continue
        with walk(real) as now:
            before, after = _state(each.opened.status), _state(now.status)
        if before != after:
            kind: Literal["created", "changed", "deleted"] = "changed"
            if before is None or after is None:
                kind = "created" if before is None else "deleted"
            yield Effect(root, real, kind)


def _state(status: os.stat_result | None) -> tuple[int, ...] | None:
    return None if status is None else (*snapshot(status), status.st_ctime_ns)


def _shown(result: Params) -> bytes | None:
    """What a result shows, if that is one text or one file's bytes and nothing else."""
    content, structured = result["content"], result.get("structuredContent")
    if result.get("isError") is True or len(content) != 1:
        return None
    (item,) = content
    if item.get("type") == "text":
        value, same = item.get("text"), [item.get("text")]
    elif item.get("type") in ("image", "audio"):
        value, same = item.get("data"), [item.get("data"), content]
    else:
        return None
    if not isinstance(value, str):
        return None
    if structured is not None and not (
        isinstance(structured, dict) and all(each in same for each in structured.values())
    ):
        return None
    try:
        return value.encode() if item["type"] == "text" else base64.b64decode(value, validate=True)
    except ValueError:
        return None


def as_result(relayed: Relayed, errand: Errand | None) -> ToolResult:
    """The result as a host gets it: the upstream's own members as they came, ours in `_meta`.
    `errand`: None where the call never became one."""
    result = relayed.result or {}
    details: dict[str, Any] = {}
    if errand is not None and not relayed.denied:
        name = errand.peer.name
        details = unstructure(UpstreamDetails(name, errand.plan.tool, relayed.path))
    content: list[AnyContent] = result.get("content") or []
    failed = result.get("isError") is True
    if relayed.error is not None:
        error, failed, content = relayed.error, True, [TextContent(relayed.error.message)]
        details |= {"error": {"kind": error.kind, "message": error.message, **error.data}}
    elif failed:
        said = next((item["text"] for item in result["content"] if _is_text(item)), "")
        details |= {"error": {"kind": "backend", "message": short(said)}}
    theirs = result.get("_meta")
    meta = dict(theirs) if isinstance(theirs, dict) else {}
    meta[DETAILS_KEY] = details
    meta[DECISION_KEY] = None if relayed.decision is None else unstructure(relayed.decision)
    if relayed.tag is not None:
        meta[RETENTION_KEY] = unstructure(relayed.tag)
    more = {name: value for name, value in result.items() if name not in _MEMBERS}
    return ToolResult(content, failed, meta, more)


_MEMBERS = ("content", "isError", "_meta", "resultType", "inputRequests")
"""Said by the gateway: the last two are how a newer revision of MCP asks the client something,
and an upstream that answers in an older one has no business to."""


def _is_text(item: Params) -> bool:
    return item.get("type") == "text" and isinstance(item.get("text"), str)
