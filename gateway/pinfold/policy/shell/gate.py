"""The gate for shell commands, in two steps, since what git would do depends on the disk.

reading = read(command)                    what the command is, and where it runs git
verdict = judge(reading, repositories)     with what was found at those places
"""

import re
from collections.abc import Mapping

import msgspec

from pinfold.policy.facts import ShellVerdict
from pinfold.policy.shell.commands import COMMANDS
from pinfold.policy.shell.git import Repository, check_git, repository_problem
from pinfold.policy.shell.shells import SHELLS, inner_command
from pinfold.policy.shell.tokens import Run, assignment, tokenize
from pinfold.policy.shell.tree import Compound, Statement, statement
from pinfold.policy.shell.words import Refused, Word, refuse
from pinfold.policy.shell.zsh import is_special

Place = tuple[str, ...]
"""A directory: the words of the `cd`s that lead to it from where the command starts, each literal.
One that begins with `~` is below home."""


class Lost(msgspec.Struct, frozen=True):
    """A place that is not known, and why."""

    why: str


Places = frozenset[Place | Lost]
"""Where a command may run."""

_START: Places = frozenset(((),))
_MOST_PLACES = 16
_MOST_CHANGES = 16
_READ_HERE = SHELLS | {"git"}


class Reading(msgspec.Struct, frozen=True):
    """`refusal`: why the command is not proven read-only, whatever lies on the disk; None if only
    the repositories at `places` can still speak against it."""

    refusal: str | None
    places: frozenset[Place] = frozenset()


def read(command: str) -> Reading:
    """What a command for bash, or zsh, is. Never raises: what cannot be read is refused."""
    reader = _Reader()
    try:
        reader.command(command, posix=False, wrapped=False, places=_START)
    except Refused as refused:
        return Reading(str(refused))
    except RecursionError:
        return Reading("It is too deep to be read")
    return Reading(None, frozenset(reader.places))


def judge(reading: Reading, repositories: Mapping[Place, tuple[Repository, ...]]) -> ShellVerdict:
    """The verdict, with all that git could find at each place of the reading."""
    if reading.refusal is not None:
        return ShellVerdict(False, reading.refusal)
    for place in sorted(reading.places):
        if place not in repositories:
            return ShellVerdict(False, "`git` would run at a place that was not looked at")
        for repository in repositories[place]:
            if problem := repository_problem(repository):
                return ShellVerdict(False, f"`git` {problem}")
    return ShellVerdict(True, "every part of it only reads")


class _Reader:
    """Goes through a command in its order; collects the places where git runs."""

    def __init__(self) -> None:
        self.places: set[Place] = set()
        self._assigned: str | None = None
        self._returns = False

    def command(self, text: str, *, posix: bool, wrapped: bool, places: Places) -> None:
        tokens = tokenize(text, posix=posix)
        if not tokens.runs:
            raise Refused("There is no command")
        # The grammar takes long over what is no command, so the names come first.
        for run in tokens.runs:
            _require_known(run)
        self._returns |= "\r" in text
        # A shell is read as one only where nothing stands before it.
        self._shell = None if wrapped or tokens.runs[0].start else tokens.runs[0]
        self._statement(statement(tokens), places)

    # Where things run: (after success, after failure)

    def _statement(self, part: Statement, places: Places) -> tuple[Places, Places]:
        if len(places) > _MOST_PLACES:
            places = frozenset((Lost("`git` would run in one of too many places"),))
        if isinstance(part, Run):
            return self._run(part, places)
        return _FLOWS[part.kind](self, part, places)

    def _sequence(self, part: Compound, places: Places) -> tuple[Places, Places]:
        """Also with `&`: what runs in the background moves nothing, so what was stays possible."""
        for child in part.parts:
            places = places.union(*self._statement(child, places))
        return places, places

    def _and(self, part: Compound, places: Places) -> tuple[Places, Places]:
        left, right = part.parts
        success, failure = self._statement(left, places)
        then, otherwise = self._statement(right, success)
        return then, failure | otherwise

    def _or(self, part: Compound, places: Places) -> tuple[Places, Places]:
        left, right = part.parts
        success, failure = self._statement(left, places)
        then, otherwise = self._statement(right, failure)
        return success | then, otherwise

    def _aside(self, part: Compound, places: Places) -> tuple[Places, Places]:
        """In processes of their own; some shells run the last one of a pipeline in themselves."""
        moved = [self._statement(child, places) for child in part.parts]
        if part.kind == "pipeline":
            places = places.union(*moved[-1])
        return places, places

    def _subshell(self, part: Compound, places: Places) -> tuple[Places, Places]:
        self._sequence(part, places)
        return places, places

    # What runs

    def _run(self, run: Run, places: Places) -> tuple[Places, Places]:
        if assignment(run.words[0], posix=run.posix):
            self._assign(run)
            return places, places
        name, words = run.words[0], run.words[1:]
        if name.value == "git":
            self._git(run, places)
        elif name.value in SHELLS:
            self._wrapper(run, places)
        else:
            COMMANDS[name.value](name.value, words)
        if name.value == "cd":
            return _moved(run, places), places
        return places, places

    def _assign(self, run: Run) -> None:
        """Capitals may mean something to a program, and some names to zsh; a subscript is
        evaluated."""
        assigned = [(word, assignment(word, posix=run.posix)) for word in run.words]
        for word, found in assigned:
            if found is None:
                raise refuse(run.words[0].raw, f"is set for a command, {word.raw[:40]}")
        for word, found in assigned:
            assert found is not None
            subscript = (found.group(2) or "[0]")[1:-1]
            if not re.fullmatch("[a-z][a-z0-9_]*", found.group(1)) or not (
                subscript.isascii() and subscript.isdecimal()
            ):
                raise refuse(word.raw, "sets a variable that may mean something to a program")
            if is_special(found.group(1)):
                raise refuse(word.raw, "sets a variable that means something to a shell")
            self._assigned = word.raw

    def _require_unprepared(self, name: str) -> None:
        if self._assigned is not None:
            raise refuse(self._assigned, f"is set before {name}")
        if self._returns:
            raise refuse("\\r", f"may change what is read before {name}")

    def _git(self, run: Run, places: Places) -> None:
        self._require_unprepared("git")
        if not check_git("git", run.words[1:]):
            return
        for place in places:
            if isinstance(place, Lost):
                raise Refused(place.why)
            self.places.add(place)

    def _wrapper(self, run: Run, places: Places) -> None:
        self._require_unprepared(run.words[0].value)
        if run is not self._shell:
            raise refuse(run.words[0].raw, "is a shell in the midst of a command")
        inner, posix = inner_command(run.words)
        self.command(inner, posix=posix, wrapped=True, places=places)


_FLOWS = {
    "sequence": _Reader._sequence,
    "group": _Reader._sequence,
    "and": _Reader._and,
    "or": _Reader._or,
    "pipeline": _Reader._aside,
    "subshell": _Reader._subshell,
    "negated": _Reader._sequence,
}


def _require_known(run: Run) -> None:
    """Raises Refused for what begins with neither an assignment nor a name that is written plainly
    and known."""
    name = run.words[0]
    known = name.raw == name.value and (name.raw in COMMANDS or name.raw in _READ_HERE)
    if not known and assignment(name, posix=run.posix) is None:
        raise refuse(name.raw, "is not one")


def _moved(run: Run, places: Places) -> Places:
    """Where a `cd` that succeeds leads from each of these places."""
    words = run.words[1:]
    if len(words) != 1 or not _is_literal(words[0]):
        return _lost(run, "may lead anywhere")
    target = words[0].value
    if words[0].tilde:
        if target != "~" and not target.startswith("~/"):
            return _lost(run, "leads to a directory that is not known")
        return frozenset(((target,),))
    # A name that begins with a quoted `~` is an ordinary one.
    target = f"./{target}" if target.startswith("~") else target
    if target.startswith("/"):
        return frozenset(((target,),))
    if any(not isinstance(place, Lost) and len(place) >= _MOST_CHANGES for place in places):
        return _lost(run, "is one of too many")
    return frozenset(place if isinstance(place, Lost) else (*place, target) for place in places)


def _is_literal(word: Word) -> bool:
    """Whether a `cd` gets just this, as a path: `-` and `+1` are places where it was before."""
    return word.fixed and not word.returned and word.value[:1] not in ("-", "+", "")


def _lost(run: Run, why: str) -> Places:
    text = " ".join(word.raw for word in run.words)
    return frozenset((Lost(f"{refuse(text, why)}, and `git` would run there"),))
