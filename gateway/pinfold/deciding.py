"""Look and decide: the one place where facts are gathered and a decision is made of them.

Calls, explanations and hooks all come here. Everything may block.
"""

from collections.abc import Mapping

import msgspec

from pinfold.memory.roots import Look, RootPath
from pinfold.paths.errors import WouldBlock, reraise
from pinfold.paths.near import spelling_of
from pinfold.paths.opened import Closing, Opened
from pinfold.paths.volume import Volumes
from pinfold.paths.walk import glance, walk
from pinfold.policy.decide import decide, guard
from pinfold.policy.facts import Answers, Call, Effective, Facts, ShellVerdict, unasked
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import ToolError

_TRIES = 8
"""How often a file that is moved meanwhile is looked for again."""


class Decided(Closing, msgspec.Struct, frozen=True, eq=False):
    """What was found and decided, and under which scope. Its descriptors are open until it is
    closed: use it in `with`."""

    opened: Opened
    facts: Facts
    decision: Decision
    look: Look
    effective: Effective

    def close(self) -> None:
        """Give the descriptors back."""
        self.look.close()
        self.opened.close()


class Ground(msgspec.Struct, frozen=True):
    """What is decided on: the roots, the scope in force, and what was answered to its questions.
    `record`: the real path of the gateway's own record, None where none is kept."""

    roots: tuple[RootPath, ...]
    effective: Effective
    volumes: Volumes
    record: str | None = None
    answers: Answers = unasked


def decided(ground: Ground, call: Call, path: str, *, cached: bool = False) -> Decided:
    """Open an absolute path, look at the roots, decide. With `cached`, raises WouldBlock where a
    look would have to wait.

    Raises ToolError where something cannot be looked at: then nothing was decided.
    """
    for _ in range(_TRIES):
        found = _decided(ground, call, path, cached)
        if not _rests_on_roots(ground, call, found) or found.opened.stands():
            return found
        found.close()  # moved before the roots were looked at: it may have been in none ever
        if cached:
            raise WouldBlock
    message = f"{path}: something else keeps moving it. Nothing was done; try again."
    raise ToolError("changed-underfoot", message)


def _rests_on_roots(ground: Ground, call: Call, found: Decided) -> bool:
    """Whether a read is let through since its file is in a root."""
    scope, rules = ground.effective.scope, ground.effective.rules
    inside = scope.confine_reads or call.managed_only or (scope.bypass_ask and bool(rules))
    return inside and call.action == "read" and found.decision.decision != "deny"


def _decided(ground: Ground, call: Call, path: str, cached: bool) -> Decided:
    effective, volumes = ground.effective, ground.volumes
    scope = effective.scope
    changing = call.action == "change"
    # Of a change, too: what it tells of the old content is decided as a read is.
    confined = scope.confine_reads or (changing and scope.confine_writes)
    trust = confined or (scope.bypass_ask and bool(effective.rules))
    above = changing and call.tree
    look = Look(ground.roots, scope, volumes, trust=trust, above=above, cached=cached)
    opened: Opened | None = None
    try:
        opened = walk(path) if changing else glance(path, cached=cached)
        opened.require_means()
        if changing:
            facts = look.for_change(opened, look.whole(), ground.record)
        else:
            facts = Facts(opened.as_target(), look.names_only(opened.real))
        look.require_means()
        if call.foreign and guard(scope) is not None:
            facts = msgspec.structs.replace(facts, spelling=spelling_of(opened))
        decision = decide(call, facts, effective, ground.answers)
        return Decided(opened, facts, decision, look, effective)
    except BaseException as error:
        look.close()
        if opened is not None:
            opened.close()
        if isinstance(error, OSError):  # what cannot be looked at is not changed
            reraise(error, str(error.filename or path))
        raise


def judged_command(
    ground: Ground, command: str, start: str, *, home: str, env: Mapping[str, str]
) -> ShellVerdict:
    """What the shell gate says of a command that would run in the directory `start`."""
    from pinfold.memory.repositories import Finder, memory_of  # few calls are of a shell
    from pinfold.policy.shell.gate import judge, read

    reading = read(command)
    if not reading.places:
        return judge(reading, {})
    try:
        with Look(ground.roots, ground.effective.scope, ground.volumes, trust=True) as look:
            roots = look.names_only()
            look.require_means()
            finder = Finder(start, home, env, memory_of(roots))
            return judge(reading, {place: finder.find(place) for place in reading.places})
    except OSError as error:  # what cannot be looked at is not proven
        return ShellVerdict(False, f"`git` would run where nothing can be seen ({error.strerror})")
