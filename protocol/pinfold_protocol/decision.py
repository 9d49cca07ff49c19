"""What was decided about a call, and why (section 5 of the contract)."""

from typing import Any, Literal

import attrs

Verdict = Literal["allow", "ask", "deny"]
Rule = Literal["pinned", "outside-memory", "base-rule", "shell", "unknown-tool", "default"]
Match = Literal["literal", "resolved", "identity", "hard-link"]
RootKind = Literal["project", "user", "team"]
Outcome = Literal["allow-once", "allow-session", "deny"]
Asked = Literal["allow-once", "allow-session", "deny", "no-approver", "timeout"]


@attrs.frozen
class RuleSource:
    """A base rule: its place in the list that it came in, counted from 0."""

    rule: int
    of: Literal["connection", "session"]

    def __str__(self) -> str:
        return f"rules[{self.rule}] of the {self.of}"


Source = Literal["profile", "override", "turn"] | RuleSource


@attrs.frozen
class Decision:
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


@attrs.frozen
class RuleSpec:
    """A base rule. `tools`: names, or `"*"` for all. `paths`: gitignore patterns, a later one
    beating an earlier one; anchored at the file system's root with a leading `/`, at home with
    `~/`, else at the project root. Without `paths` it also covers calls that have no path."""

    decision: Verdict
    tools: list[str]
    paths: list[str] | None = None


@attrs.frozen
class PermissionParams:
    """`permission/request`: the question that a base rule asks. `decision` says which rule, the
    path that was given and where it really leads."""

    session_id: str
    tool: str
    arguments: dict[str, Any]
    decision: Decision
    call_id: str | None = None


@attrs.frozen
class PermissionResult:
    """The answer: `allow-session` is for exactly this tool and real path, in this session."""

    outcome: Outcome


@attrs.frozen
class ExplainParams:
    """`policy/explain`: decide as a call would be decided, touching nothing."""

    session_id: str
    name: str
    arguments: dict[str, Any] = attrs.Factory(dict)
