"""Is it pinned? Four tests that are independent on purpose: each alone must be enough."""

from collections.abc import Iterator

from pinfold.policy import names
from pinfold.policy.facts import Facts, Place, Reserved, RootFacts, Target, Way
from pinfold_protocol.decision import Match, RootKind


def find_pinned(facts: Facts) -> tuple[RootKind, Match] | None:
    """The root whose reserved directory the target is in, and the first test that says so."""
    return next(_matches(facts), None)


def find_contained(facts: Facts) -> tuple[RootKind, Match] | None:
    """The root whose reserved directory is below the target, there or not: whoever takes the target
    away, or puts something in its place, takes that along. Names are compared as for a denial."""
    return next(_containing(facts), None)


def _containing(facts: Facts) -> Iterator[tuple[RootKind, Match]]:
    target = facts.target
    guarded = [(root, root.reserved) for root in facts.roots if root.reserved is not None]
    for root, reserved in guarded:
        if _is_above(target.literal, reserved.literal):
            yield root.kind, "literal"
    for root, reserved in guarded:
        real = () if root.real is None else (f"{root.real.rstrip('/')}/{names.RESERVED}",)
        places = (reserved.literal, *real, *reserved.real)
        for path in (target.real, target.walked):
            if path is not None and any(_is_above(path, place) for place in places):
                yield root.kind, "resolved"
    for root, _ in guarded:
        if any(way and way[-1].identity in root.above for way in target.ways):
            yield root.kind, "identity"


def _is_above(path: str, place: str) -> bool:
    return names.starts_with(names.split(place), names.split(path))


def _matches(facts: Facts) -> Iterator[tuple[RootKind, Match]]:
    guarded = [(root, root.reserved) for root in facts.roots if root.reserved is not None]
    for root, reserved in guarded:
        if _literally(facts.target, reserved):
            yield root.kind, "literal"
    for root, _ in guarded:
        if is_reserved(facts.target.real, root) or is_reserved(facts.target.walked, root):
            yield root.kind, "resolved"
    for root, reserved in guarded:
        if any(_passes(way, place) for way in facts.target.ways for place in reserved.places):
            yield root.kind, "identity"
    for alias in facts.aliases:
        if len(alias.entries) != 1 or names.same(alias.entries[0], names.RESERVED):
            yield alias.kind, "identity"
    if facts.hard_link is not None:
        yield facts.hard_link, "hard-link"


def _literally(target: Target, reserved: Reserved) -> bool:
    root = reserved.literal.rpartition("/")[0] or "/"
    inside = _inside(target.literal, root, reserved)
    return bool(inside) and names.same(inside[0], names.RESERVED)  # type: ignore[index]


def _inside(path: str, root: str, reserved: Reserved) -> tuple[str, ...] | None:
    """The names from a root on. They alone are folded, unless the volume itself folds names."""
    if not reserved.folding:
        return names.below(path, root)
    parts, prefix = names.split(path), names.split(root)
    return parts[len(prefix) :] if names.starts_with(parts, prefix) else None


def is_reserved(path: str | None, root: RootFacts) -> bool:
    """Whether a real path is in the reserved directory of `root`, by name."""
    if path is None or root.reserved is None:
        return False
    inside = None if root.real is None else _inside(path, root.real, root.reserved)
    if inside and names.same(inside[0], names.RESERVED):
        return True
    return any(_leads_into(path, inside, target, root.real) for target in root.reserved.real)


def _leads_into(
    path: str, inside: tuple[str, ...] | None, target: str, real_root: str | None
) -> bool:
    """Names are folded only from the root on; a target outside of it has no such point."""
    below_root = None if real_root is None else names.below(target, real_root)
    if below_root is not None:
        return inside is not None and names.starts_with(inside, below_root)
    return names.starts_with(names.split(path), names.split(target))


def _passes(way: Way, place: Place) -> bool:
    """Whether a way leads through the anchor and on into the reserved names below it."""
    for index, step in enumerate(way):
        if step.identity is not None and step.identity == place.anchor:
            rest = tuple(each.name for each in way[index + 1 :])
            if names.starts_with(rest, place.names):
                return True
    return False
