"""Which of two scopes is stricter, member by member: what turns may do to a session."""

from collections.abc import Mapping

import msgspec

from pinfold.policy.facts import Effective
from pinfold.policy.rules import Rule
from pinfold_protocol.session import PROFILES, Profile, Scope

_FROM_STRICT: dict[str, tuple[object, ...]] = {
    "confine_writes": (True, False),
    "confine_reads": (True, False),
    "project_memory": (False, True),
    "user_memory": (False, True),
    "protect_pinned": (True, False),
    "shell": ("deny", "read-only", "unscoped"),
    "bypass_ask": (False, True),
    "hard_links": ("deny", "ignore"),
    "staleness": ("require-read", "detect", "off"),
}
"""The values of each member, the strictest first."""


def effective(
    profile: Profile,
    overrides: Mapping[str, object],
    rules: tuple[Rule, ...] = (),
    turns: Mapping[str, Mapping[str, object]] | None = None,
) -> Effective:
    """What is in force: a profile's scope with overrides, narrowed by turns (members by turn id).
    Members are named as in Scope, and their values are of its types."""
    own = msgspec.structs.replace(PROFILES[profile], **overrides)
    scope, decided = narrowed(own, turns or {})
    return Effective(scope, frozenset(overrides), decided, rules)


def values_of(member: str) -> tuple[object, ...]:
    """The values that a member of Scope can have, the strictest first. Raises KeyError."""
    return _FROM_STRICT[member]


def stricter(member: str, one: object, other: object) -> object:
    """The stricter of two values of a member."""
    values = _FROM_STRICT[member]
    return min(one, other, key=values.index)


def narrowed(own: Scope, turns: Mapping[str, Mapping[str, object]]) -> tuple[Scope, dict[str, str]]:
    """A session's own scope with the members of its turns (by turn id) laid over it, each where it
    is stricter; and for each member that a turn decides, the id of the first that does."""
    values = msgspec.structs.asdict(own)
    decided: dict[str, str] = {}
    for turn_id, members in turns.items():
        for member, value in members.items():
            if stricter(member, values[member], value) != values[member]:
                values[member] = value
                decided[member] = turn_id
    return Scope(**values), decided
