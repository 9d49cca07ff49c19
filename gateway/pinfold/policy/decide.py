"""The one author of every decision.

Order: unknown tool, shell, pinned, confinement (and, where another process opens the path, whether
it would open the same file), base rules, default. Each step says no, or nothing;
so what comes later can not lift what came before.
"""

from collections.abc import Callable, Iterable

import msgspec

from pinfold.policy.confinement import (
    in_record,
    in_repository,
    included,
    managed,
    takes_record,
)
from pinfold.policy.facts import Answers, AskKey, Call, Effective, Facts, Target, unasked
from pinfold.policy.names import is_sayable, join, sayable, split
from pinfold.policy.pinned import find_contained, find_pinned
from pinfold.policy.rules import Rule as BaseRule
from pinfold.policy.rules import strongest
from pinfold.policy.spelling import doubt
from pinfold_protocol.decision import Asked, Decision, Match, Rule, Source, Verdict
from pinfold_protocol.session import Scope

_LISTING = ("grep_search", "list_directory")
"""Tools whose path is where they look for files."""
_LIST = Call("list_directory", "read")
_READ = Call("read_file", "read")


def decide(
    call: Call, facts: Facts | None, effective: Effective, answers: Answers = unasked
) -> Decision:
    """The decision for a call. `facts` is None for a call that names no path. `answers` are those
    that were given to what a base rule asked; without one for this call, it is `ask`."""
    case = _Case(call, facts, effective, answers)
    for test in _TESTS:
        if decision := test(case):
            return decision
    return _default(case)


def may_read(
    facts: Facts, effective: Effective, answers: Answers = unasked, call: Call = _READ
) -> bool:
    """Whether a read of that path would be allowed as things stand: what nobody was asked about
    is not. For all that would show what a file holds, or who its neighbours are."""
    return decide(call, facts, effective, answers).decision == "allow"


def tellable(
    names: Iterable[str], facts: Facts, effective: Effective, answers: Answers, call: Call = _READ
) -> list[str]:
    """Those of the names beside a missing one that a session may hear of: it may list where they
    are, and read them by `call`, as far as their names say."""
    literal, real = split(facts.target.literal), split(facts.target.real or "")
    if literal[-1:] != real[-1:]:  # a link led to where the names are
        literal = real
    above, really = literal[:-1], real[:-1]

    def allowed(of: Call, *name: str) -> bool:
        target = Target(join((*above, *name)), join((*really, *name)))
        there = msgspec.structs.replace(facts, target=target)
        return may_read(there, effective, answers, of)

    return [name for name in names if allowed(_LIST) and allowed(call, name)]


def ask_key(tool: str, decision: Decision) -> AskKey:
    """What a question about this decision is about."""
    return tool, decision.resolved_path or decision.path or ""


class _Case(msgspec.Struct, frozen=True):
    """All that a decision is made of."""

    call: Call
    facts: Facts | None
    effective: Effective
    answers: Answers

    def said(
        self,
        verdict: Verdict,
        rule: Rule,
        reason: str,
        *,
        member: str | None = None,
        **more: Match | Source | Asked | None,
    ) -> Decision:
        """A decision. `member` is the member of the scope that it comes from. A real path that no
        message can hold is left out."""
        facts = self.facts
        real = facts.target.real if facts else None
        turn_id = None if member is None else self.effective.turns.get(member)
        if member is not None:
            more["source"] = self._source(member)
        return Decision(
            decision=verdict,
            rule=rule,
            reason=sayable(reason),
            root=managed(real, facts.roots) if facts else None,
            path=facts.target.literal if facts else None,
            resolved_path=real if real is None or is_sayable(real) else None,
            turn_id=turn_id,
            **more,  # type: ignore[arg-type]
        )

    def _source(self, member: str) -> Source:
        if member in self.effective.turns:
            return "turn"
        return "override" if member in self.effective.overridden else "profile"


def guard(scope: Scope) -> str | None:
    """The first member by which a scope protects or confines anything; None if none does."""
    if scope.protect_pinned:
        return "protect_pinned"
    if scope.confine_writes:
        return "confine_writes"
    return "confine_reads" if scope.confine_reads else None


def _unknown_tool(case: _Case) -> Decision | None:
    call = case.call
    if call.action != "unknown" and call.unmapped is None:
        return None
    member = guard(case.effective.scope)
    if member is None:
        return None
    if call.action == "unknown":
        reason = f"{call.name} is not a tool that pinfold knows, so what it changes cannot be said."
        reason = f"{reason} Use a tool that the session lists."
    else:
        known = f"{call.unmapped} is not an argument of {call.name} that pinfold knows"
        reason = f"{known}, so what it changes cannot be said. Leave it out."
    return case.said("deny", "unknown-tool", reason, member=member)


def _shell(case: _Case) -> Decision | None:
    shell, gate = case.effective.scope.shell, case.call.command
    if case.call.action != "shell" or shell == "unscoped":
        return None
    if shell == "deny":
        reason = "Shell commands are off in this session. Use the file tools."
        return case.said("deny", "shell", reason, member="shell")
    if gate is not None and gate.read_only:
        return None
    why = "this one was not looked at" if gate is None else gate.reason
    then = "Say it more simply, or use the file tools."
    reason = f"Only commands proven read-only may run here: {why}. {then}"
    return case.said("deny", "shell", reason, member="shell")


def _pinned(case: _Case) -> Decision | None:
    facts = case.facts
    if facts is None or case.call.action != "change" or not case.effective.scope.protect_pinned:
        return None
    found, why = find_pinned(facts), _WHY
    if found is None and case.call.tree:
        found, why = find_contained(facts), _WHY_TREE
    if found is None:
        return None
    kind, match = found
    reason = f"Pinned {kind} memory is read-only in this session: {why[match]}. {_LEAVE}"
    return case.said("deny", "pinned", reason, match=match, member="protect_pinned")


_LEAVE = "Leave it as it is; what is new goes into a topic outside of pinned/."

_WHY: dict[Match, str] = {
    "literal": "the path is the reserved directory or below it",
    "resolved": "the path leads into the reserved directory",
    "identity": "the way to it passes through the reserved directory under another name",
    "hard-link": "it is another name of a file in the reserved directory",
}
_WHY_TREE: dict[Match, str] = {
    "literal": "the reserved directory is below the path, and would go with it",
    "resolved": "the path leads to where the reserved directory is below, and would go with it",
    "identity": "it is, under another name, a directory on the way to the reserved one",
}


def _confinement(case: _Case) -> Decision | None:
    call, facts = case.call, case.facts
    if facts is None:
        return None
    if call.managed_only and managed(facts.target.real, facts.roots) is None:
        where = _listed([root.path for root in facts.roots])
        reason = (
            f"{call.name} reads managed memory only, which is in {where}, and this file is "
            "outside of it. Use read_file, or a path there."
        )
        return case.said("deny", "outside-memory", reason)
    member = {"read": "confine_reads", "change": "confine_writes"}.get(call.action)
    if member is None or not getattr(case.effective.scope, member):
        return None
    verb = "read" if call.action == "read" else "change"
    inside = included(facts.target.real, facts.roots)
    if inside is None:
        reason = f"This session may {verb} files only inside {_roots(facts)}{_because(facts)}."
        reason += " Use a path there."
        member = _excluding(case, facts) or member
    elif call.tree and call.action == "change" and not inside:
        reason = "A memory root itself is not moved or removed, nor is anything put in its place."
        reason += " Use a path inside of it."
    elif call.action == "change" and in_repository(inside):
        reason = "A git directory inside a memory root is no memory. Use another path."
    elif call.action == "change" and _touches_record(call, facts):
        reason = "The gateway's own record is no memory. Use another path."
    else:
        return None
    return case.said("deny", "outside-memory", reason, member=member)


def _touches_record(call: Call, facts: Facts) -> bool:
    real = facts.target.real
    return in_record(real, facts.record) or (call.tree and takes_record(real, facts.record))


def _foreign(case: _Case) -> Decision | None:
    """Another process opens the path, so nothing may be left for it to find out."""
    facts = case.facts
    if facts is None or facts.spelling is None:
        return None
    member = guard(case.effective.scope)
    if member is None:
        return None
    why = doubt(facts.target, facts.spelling)
    if why is None:
        return None
    reason = f"Another program would open this path, and might open another file: {why}."
    reason += " Use a plain path to the file itself."
    return case.said("deny", "outside-memory", reason, member=member)


def _excluding(case: _Case, facts: Facts) -> str | None:
    """The member by which a turn took away the root that the path is in."""
    member = f"{managed(facts.target.real, facts.roots)}_memory"
    return member if member in case.effective.turns else None


def _base_rules(case: _Case) -> Decision | None:
    rules = case.effective.rules
    rule = strongest(rules, lambda rule: _matches(rule, case)) if rules else None
    if rule is None:
        return None
    return _asks(rule, case) if rule.decision == "ask" else _says(rule, case)


def _matches(rule: BaseRule, case: _Case) -> bool:
    """Denials and questions match on the given or on the real path, permissions on both."""
    tools = (case.call.name,) if rule.decision == "allow" else (case.call.name, *case.call.also)
    if not any(rule.names(tool) for tool in tools):
        return False
    if rule.paths is None:
        return True
    if case.facts is None:
        return False
    target = case.facts.target
    if rule.decision == "allow":
        return target.real is not None and all(
            rule.covers(path, directory=False) for path in (target.literal, target.real)
        )
    return _matched_by(rule, case) is not None


def _matched_by(rule: BaseRule, case: _Case) -> Match | None:
    if rule.paths is None or case.facts is None:
        return None
    target, directory = case.facts.target, case.call.name in _LISTING or case.call.tree
    if rule.covers(target.literal, directory=directory):
        return "literal"
    if target.real is not None and rule.covers(target.real, directory=directory):
        return "resolved"
    return None


def _says(rule: BaseRule, case: _Case) -> Decision:
    source, match = rule.source, _matched_by(rule, case)
    if rule.decision == "allow":
        reason = f"{source} allows {case.call.name}{_here(rule)}."
        return case.said("allow", "base-rule", reason, source=source, match=match)
    reason = f"{source} denies {case.call.name}{_here(rule)}.{_WITHOUT}"
    return case.said("deny", "base-rule", reason, source=source, match=match)


def _asks(rule: BaseRule, case: _Case) -> Decision:
    facts, source, match = case.facts, rule.source, _matched_by(rule, case)
    if case.effective.scope.bypass_ask and facts and included(facts.target.real, facts.roots):
        reason = f"{source} asks; inside memory this session need not."
        return case.said("allow", "base-rule", reason, source=source, match=match)
    real = facts.target.real or facts.target.literal if facts else ""
    answer = case.answers((case.call.name, real))
    reason = f"{source} asks before {case.call.name}{_here(rule)}."
    if answer is None:
        return case.said("ask", "base-rule", reason, source=source, match=match)
    verdict: Verdict = "allow" if answer in ("allow-once", "allow-session") else "deny"
    reason = f"{reason[:-1]}: {_ANSWERED[answer]}.{_WITHOUT if verdict == 'deny' else ''}"
    return case.said(verdict, "base-rule", reason, source=source, match=match, asked=answer)


_WITHOUT = " Go on without it, and tell the user."

_ANSWERED: dict[Asked, str] = {
    "allow-once": "it was allowed, this time",
    "allow-session": "it was allowed, for this tool and this file in this session",
    "deny": "the answer was no",
    "no-approver": "nobody can be asked here",
    "timeout": "nobody answered in time",
}


def _here(rule: BaseRule) -> str:
    return "" if rule.paths is None else " here"


_TESTS: tuple[Callable[[_Case], Decision | None], ...] = (
    _unknown_tool,
    _shell,
    _pinned,
    _confinement,
    _foreign,
    _base_rules,
)


def _default(case: _Case) -> Decision:
    scope, call = case.effective.scope, case.call
    if call.action == "shell":
        unscoped = "Shell commands are not scoped in this session."
        reason = f"Proven read-only: {call.command.reason}." if call.command else unscoped
        return case.said("allow", "shell", reason, member="shell")
    reason = "Nothing in this session's scope speaks against it."
    if call.action == "change" and scope.confine_writes:
        reason = "Inside an included memory root, and not pinned."
    if call.action == "read" and scope.confine_reads:
        reason = "Inside an included memory root."
    return case.said("allow", "default", reason)


def _roots(facts: Facts) -> str:
    paths = [root.path for root in facts.roots if root.included]
    return _listed(paths) if paths else "memory, and no root of it is included"


def _listed(paths: list[str]) -> str:
    return " or ".join(paths)


def _because(facts: Facts) -> str:
    target = facts.target
    if target.real is None:
        return f", and the path cannot be resolved ({target.problem})"
    return f", and the path leads to {target.real}" if target.real != target.literal else ""
