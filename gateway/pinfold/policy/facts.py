"""The facts that a decision is made from. Gathered by `paths` and `memory`, read by `decide`."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from pinfold.policy.rules import Rule
from pinfold_protocol.decision import Asked, RootKind
from pinfold_protocol.session import Scope

Identity = tuple[int, int]
"""Device and inode, of a descriptor that is held while the facts are used."""

Action = Literal["read", "change", "shell", "unknown"]


class Step(msgspec.Struct, frozen=True):
    """One name on the way from the file system's root; `identity` is None where nothing is."""

    name: str
    identity: Identity | None


Way = tuple[Step, ...]


class Target(msgspec.Struct, frozen=True):
    """What a path leads to.

    `literal`: absolute, `.` and `..` folded as text. `real`: the kernel's name for what was
    opened, with missing names added; None if the path cannot be resolved, and `problem` says why.
    `walked`: the names as they were followed, where they differ from the kernel's. `ways`: the
    steps of both, for changes only.
    """

    literal: str
    real: str | None
    walked: str | None = None
    problem: str | None = None
    ways: tuple[Way, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """A directory that is reserved by identity: `names` below `anchor`, existing or not."""

    anchor: Identity
    names: tuple[str, ...]


class Reserved(msgspec.Struct, frozen=True):
    """The reserved directory of one root: by its own name, by where it leads, by identity.

    `folding`: the root's volume folds names, so the root itself has other spellings.
    """

    literal: str
    real: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    folding: bool = False


class RootFacts(msgspec.Struct, frozen=True):
    """One memory root as it lies on the disk now. `reserved` is None where nothing is (team).
    `above`: every directory on the way to the root and to its reserved directory, both included;
    known only for a call that takes a whole tree."""

    kind: RootKind
    path: str
    real: str | None
    write_path: str | None = None
    included: bool = False
    reserved: Reserved | None = None
    above: frozenset[Identity] = frozenset()


class Alias(msgspec.Struct, frozen=True):
    """A first-level name on a volume that folds names, which the root's listing does not have.

    `entries` are the listed names that are the same file: exactly one, if all is well.
    """

    kind: RootKind
    entries: tuple[str, ...]


class Spelling(msgspec.Struct, frozen=True):
    """How a path is written that another process will open. `missing`: the names at its end that
    are not there. `twins`: entries that look like the one missing name."""

    missing: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True):
    """Everything known about one call's target. `hard_link`: the root below whose reserved
    directory the same file stands (or may stand, where that could not be listed). `record`: the
    real path of the gateway's own record, where one is kept. `spelling`: only where another process
    opens the path."""

    target: Target
    roots: tuple[RootFacts, ...]
    hard_link: RootKind | None = None
    aliases: tuple[Alias, ...] = ()
    record: str | None = None
    spelling: Spelling | None = None


class ShellVerdict(msgspec.Struct, frozen=True):
    """What the shell gate says of a command, and why. Gathered before a decision."""

    read_only: bool
    reason: str


class Call(msgspec.Struct, frozen=True):
    """A call as the policy sees it. `managed_only`: it reads managed memory and nothing else.
    `command`: of a shell command, None where the gate was not asked. `tree`: it takes what is
    below its path along. `foreign`: another process opens the path; `also`: names of tools that
    do the same, for denials and questions; `unmapped`: an argument that nothing is known of."""

    name: str
    action: Action
    managed_only: bool = False
    command: ShellVerdict | None = None
    tree: bool = False
    foreign: bool = False
    also: tuple[str, ...] = ()
    unmapped: str | None = None


class Effective(msgspec.Struct, frozen=True):
    """The whole scope in force, and where its members come from (names as in Scope): which ones a
    host overrode, and which ones a turn made stricter than the session has them. `rules` are the
    connection's, then the session's."""

    scope: Scope
    overridden: frozenset[str] = frozenset()
    turns: Mapping[str, str] = msgspec.field(default_factory=dict)
    rules: tuple[Rule, ...] = ()


AskKey = tuple[str, str]
"""What a question is about: a tool, and the real path (the given one where there is none)."""

Answers = Callable[[AskKey], Asked | None]
"""What was answered to a question; None where it was not asked yet."""


def unasked(_: AskKey) -> Asked | None:
    """Nothing was asked so far."""
    return None


def no_approver(_: AskKey) -> Asked | None:
    """Nobody can be asked, whatever it is about."""
    return "no-approver"
