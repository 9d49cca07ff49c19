"""Is it confined, is it managed? Containment that allows is exact, and on real paths only."""

from collections.abc import Iterable

from pinfold.policy import names
from pinfold.policy.facts import RootFacts
from pinfold_protocol.decision import RootKind

# A repository planted in memory would run its configuration in the user's next `git status`.
_REPOSITORY = (".git", "git~1")


def managed(real: str | None, roots: Iterable[RootFacts]) -> RootKind | None:
    """The kind of root that a real path is inside of, the innermost where roots nest."""
    found: tuple[int, RootKind] | None = None
    for root in roots:
        if real is None or root.real is None or not names.is_below(real, root.real):
            continue
        if found is None or len(root.real) > found[0]:
            found = (len(root.real), root.kind)
    return found[1] if found else None


def included(real: str | None, roots: Iterable[RootFacts]) -> tuple[str, ...] | None:
    """The names from an included root's trusted path to `real`; None if it is in none."""
    for root in roots:
        if root.included and root.write_path is not None and real is not None:
            inside = names.below(real, root.write_path)
            if inside is not None:
                return inside
    return None


def in_repository(inside: tuple[str, ...]) -> bool:
    """Whether a name on the way may mean a git directory."""
    return any(names.same(name, each) for name in inside for each in _REPOSITORY)


def in_record(real: str | None, record: str | None) -> bool:
    """Whether a path may mean the gateway's record, an older file of it, or something below that
    name, which would be in the way of the next one."""
    if real is None or record is None:
        return False
    directory, _, base = record.rpartition("/")
    inside = names.below(real, directory or "/")
    if not inside:
        return False
    name = inside[0].rstrip(". ")
    stem, _, number = name.rpartition(".")
    if number.isdecimal() and number.isascii():
        name = stem
    return names.same(inside[0], base) or names.same(name, base)


def takes_record(real: str | None, record: str | None) -> bool:
    """Whether the gateway's record is below a path."""
    return real is not None and record is not None and names.is_below(record, real)
