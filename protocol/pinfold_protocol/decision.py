"""What was decided about a call, and why (section 5 of the contract)."""

from typing import Any, Literal

import attrs

Verdict = Literal["allow", "ask", "deny"]
Rule = Literal["pinned", "outside-memory", "base-rule", "shell", "unknown-tool", "default"]
Match = Literal["literal", "resolved", "identity", "hard-link"]
RootKind = Literal["project", "user", "team"]
Asked = Literal["allow-once", "allow-session", "deny", "no-approver", "timeout"]
Source = Literal["profile", "override", "turn"]


@attrs.frozen
class Decision:
    """One decision as data. `path` is the literal path, `resolved_path` the real one."""

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
class ExplainParams:
    """`policy/explain`: decide as a call would be decided, touching nothing."""

    session_id: str
    name: str
    arguments: dict[str, Any] = attrs.Factory(dict)
