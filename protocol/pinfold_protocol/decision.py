"""What was decided about a call, and why (section 5 of the contract)."""

from typing import Any, Literal

import msgspec

from pinfold_protocol.wire import Wire

Verdict = Literal["allow", "ask", "deny"]
Rule = Literal["pinned", "outside-memory", "base-rule", "shell", "unknown-tool", "default"]
Match = Literal["literal", "resolved", "identity", "hard-link"]
RootKind = Literal["project", "user", "team"]
Outcome = Literal["allow-once", "allow-session", "deny"]
Asked = Literal["allow-once", "allow-session", "deny", "no-approver", "timeout"]


class RuleSource(Wire, frozen=True):
    """A base rule: its place in the list that it came in, counted from 0."""

    rule: int
    of: Literal["connection", "session"]

    def __str__(self) -> str:
        return f"rules[{self.rule}] of the {self.of}"


Source = Literal["profile", "override", "turn"] | RuleSource


class Decision(Wire, frozen=True):
    """One decision as data. `path` is the literal path, `resolved_path` the real one.

    `turn_id` is there where `source` is a turn; `asked` where a question was, or would have been,
    put to the client.
    """

    decision: Verdict
    rule: Rule
    reason: str
    root: RootKind | None = None
    match: Match | None = None
    path: str | None = None
    resolved_path: str | None = None
    turn_id: str | None = None
    asked: Asked | None = None
    source: Source | None = None


class RuleSpec(Wire, frozen=True):
    """A base rule. `tools`: names, or `"*"` for all. `paths`: gitignore patterns, a later one
    beating an earlier one; anchored at the file system's root with a leading `/`, at home with
    `~/`, else at the project root. Without `paths` it also covers calls that have no path."""

    decision: Verdict
    tools: list[str]
    paths: list[str] | None = None


class PermissionParams(Wire, frozen=True):
    """`permission/request`: the question that a base rule asks. `decision` says which rule, the
    path that was given and where it really leads."""

    session_id: str
    tool: str
    arguments: dict[str, Any]
    decision: Decision
    call_id: str | None = None


class PermissionResult(Wire, frozen=True):
    """The answer: `allow-session` is for exactly this tool and real path, in this session."""

    outcome: Outcome


class ExplainParams(Wire, frozen=True):
    """`policy/explain`: decide as a call would be decided, touching nothing."""

    session_id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
