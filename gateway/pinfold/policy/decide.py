"""The one author of every decision. Order: unknown tool, shell, pinned, confinement, default."""

from collections.abc import Callable

from pinfold.policy.confinement import in_record, in_repository, included, managed
from pinfold.policy.facts import Call, Effective, Facts
from pinfold.policy.pinned import find_pinned
from pinfold_protocol.decision import Decision, Match, Rule, Source


def decide(call: Call, facts: Facts | None, effective: Effective) -> Decision:
    """The decision for a call. `facts` is None for a call that names no path."""
    for test in _TESTS:
        if decision := test(call, facts, effective):
            return decision
    return _decision("allow", "default", _default_reason(call, effective), facts)


def _unknown_tool(call: Call, facts: Facts | None, effective: Effective) -> Decision | None:
    if call.action != "unknown":
        return None
    scope = effective.scope
    guards = ("protect_pinned", "confine_writes", "confine_reads")
    guard = next((name for name in guards if getattr(scope, name)), None)
    if guard is None:
        return None
    reason = f"{call.name} is not a tool that pinfold knows, so what it changes cannot be said."
    return _decision("deny", "unknown-tool", reason, facts, source=_source(effective, guard))


def _shell(call: Call, facts: Facts | None, effective: Effective) -> Decision | None:
    if call.action != "shell":
        return None
    source = _source(effective, "shell")
    if effective.scope.shell == "unscoped":
        reason = "Shell commands are not scoped in this session."
        return _decision("allow", "shell", reason, facts, source=source)
    if effective.scope.shell == "deny":
        return _decision(
            "deny", "shell", "Shell commands are off in this session.", facts, source=source
        )
    gate = call.command
    if gate is not None and gate.read_only:
        return _decision(
            "allow", "shell", f"Proven read-only: {gate.reason}.", facts, source=source
        )
    why = "this one was not looked at" if gate is None else gate.reason
    reason = f"Only commands proven read-only may run here: {why}."
    return _decision("deny", "shell", reason, facts, source=source)


def _pinned(call: Call, facts: Facts | None, effective: Effective) -> Decision | None:
    if facts is None or call.action != "change" or not effective.scope.protect_pinned:
        return None
    found = find_pinned(facts)
    if found is None:
        return None
    kind, match = found
    reason = f"Pinned {kind} memory is read-only in this session: {_WHY[match]}."
    source = _source(effective, "protect_pinned")
    return _decision("deny", "pinned", reason, facts, match=match, source=source)


_WHY: dict[Match, str] = {
    "literal": "the path is the reserved directory or below it",
    "resolved": "the path leads into the reserved directory",
    "identity": "the way to it passes through the reserved directory under another name",
    "hard-link": "it is another name of a file in the reserved directory",
}


def _confinement(call: Call, facts: Facts | None, effective: Effective) -> Decision | None:
    if facts is None:
        return None
    if call.managed_only and managed(facts.target.real, facts.roots) is None:
        reason = f"{call.name} reads managed memory only, and this file is outside of it."
        return _decision("deny", "outside-memory", reason, facts)
    member = {"read": "confine_reads", "change": "confine_writes"}.get(call.action)
    if member is None or not getattr(effective.scope, member):
        return None
    verb = "read" if call.action == "read" else "change"
    inside = included(facts.target.real, facts.roots)
    if inside is None:
        reason = f"This session may {verb} files only inside {_roots(facts)}{_because(facts)}."
    elif call.action == "change" and in_repository(inside):
        reason = "A git directory inside a memory root is no memory."
    elif call.action == "change" and in_record(facts.target.real, facts.record):
        reason = "The gateway's own record is no memory."
    else:
        return None
    source = _source(effective, member)
    return _decision("deny", "outside-memory", reason, facts, source=source)


_Test = Callable[[Call, Facts | None, Effective], Decision | None]
_TESTS: tuple[_Test, ...] = (_unknown_tool, _shell, _pinned, _confinement)


def _roots(facts: Facts) -> str:
    paths = [root.path for root in facts.roots if root.included]
    return " or ".join(paths) if paths else "memory, and no root of it is included"


def _because(facts: Facts) -> str:
    target = facts.target
    if target.real is None:
        return f", and the path cannot be resolved ({target.problem})"
    return f", and the path leads to {target.real}" if target.real != target.literal else ""


def _default_reason(call: Call, effective: Effective) -> str:
    scope = effective.scope
    if call.action == "change" and scope.confine_writes:
        return "Inside an included memory root, and not pinned."
    if call.action == "read" and scope.confine_reads:
        return "Inside an included memory root."
    return "Nothing in this session's scope speaks against it."


def _source(effective: Effective, member: str) -> Source:
    return "override" if member in effective.overridden else "profile"


def _decision(
    verdict: str,
    rule: Rule,
    reason: str,
    facts: Facts | None,
    *,
    match: Match | None = None,
    source: Source | None = None,
) -> Decision:
    return Decision(
        decision="allow" if verdict == "allow" else "deny",
        rule=rule,
        reason=reason,
        root=managed(facts.target.real, facts.roots) if facts else None,
        match=match,
        path=facts.target.literal if facts else None,
        resolved_path=facts.target.real if facts else None,
        source=source,
    )
