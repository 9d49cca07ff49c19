"""What lies in a root: links and where they lead, other names of pinned files, what only looks
protected. Judged by the policy's own code."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pinfold.doctor.finding import Finding, Level, Spot, count
from pinfold.doctor.mounts import mounts_below
from pinfold.doctor.place import Subject
from pinfold.doctor.tree import Census, Limits, Linked, take
from pinfold.paths.errors import describe
from pinfold.paths.literal import encode
from pinfold.paths.opened import Opened
from pinfold.paths.walk import walk
from pinfold.policy.confinement import included, managed
from pinfold.policy.facts import Facts, Identity
from pinfold.policy.names import RESERVED, below, same
from pinfold.policy.pinned import find_pinned


def survey(subject: Subject, limits: Limits) -> Census | None:
    """One bounded look at everything in a root; None where there is none."""
    seen, real = subject.seen, subject.base
    if isinstance(seen, OSError) or not real or not os.path.isdir(encode(real)):
        return None
    reserved = () if seen.reserved is None else seen.reserved.real
    target = tuple(path for path in reserved if _is_apart(path, real))
    return take(real, subject.root.guarded, target, limits)


def contents(
    subject: Subject, census: Census, everywhere: Sequence[Census | None]
) -> list[Finding]:
    """What there is to say of it. `everywhere`: what was found in all roots."""
    links = _sorted_links(subject, census)
    return [
        *_reserved(subject, census),
        *_protected_in_looks(subject, census, links),
        *_other_names(subject, census, [each for each in everywhere if each is not None]),
        *_links(subject, links),
        *_rest(subject, census),
    ]


def _is_apart(path: str, root: str) -> bool:
    return below(root, path) is None and os.path.isdir(encode(path))


def _is_pinned(subject: Subject, opened: Opened) -> bool:
    return find_pinned(Facts(opened.as_target(), subject.roots)) is not None


def _path_of(subject: Subject) -> str:
    return f"{subject.base.rstrip('/')}/{RESERVED}"


def _reserved(subject: Subject, census: Census) -> Iterator[Finding]:
    if subject.root.guarded and os.path.isdir(encode(_path_of(subject))):
        documents = count(census.documents, "document")
        yield subject.find("pinned", f"pinned/ is there, with {documents}")


def _protected_in_looks(
    subject: Subject, census: Census, links: Mapping[str, list[Spot]]
) -> Iterator[Finding]:
    """What somebody may take for protected, and is not, or for another thing than it is."""
    aliases = [Spot(path) for path in census.aliases]
    if len(aliases) == 1 and not census.listed and os.path.lexists(encode(_path_of(subject))):
        aliases = []  # the volume folds names: this is how `pinned` itself is spelt
    if aliases:
        title = "What reads like pinned but is spelt otherwise counts as pinned too"
        yield subject.find("pinned-alias", title, aliases)
    # A root inside of this one protects its own.
    nested = [Spot(path) for path in census.nested if not _protected(subject, path)]
    nested += list(links.get("nested", ()))
    if nested and subject.root.guarded:
        title = "A pinned/ below the first level is not protected"
        yield subject.find("pinned-nested", title, nested)
    elif nested:
        title = "A pinned/ in the team root is not protected"
        advice = "Move what is in it to pinned/ of the project or the user root."
        yield subject.find("pinned-nested", title, nested, advice=advice)
    if out := links.get("out"):
        title = "A document in pinned/ is a link, and what it leads to is not protected"
        yield subject.find("pinned-link-out", title, out)
    doors = [
        Spot(path, census.pinned_directories[here])
        for here, path in census.directories.items()
        if here in census.pinned_directories and not _protected(subject, path)
    ]
    if doors:
        title = "A directory of pinned/ is mounted at another place, and not protected there"
        yield subject.find("pinned-second-door", title, doors)


def _protected(subject: Subject, path: str) -> bool:
    with walk(path) as opened:
        return _is_pinned(subject, opened)


# Several names of one file


def _other_names(
    subject: Subject, census: Census, everywhere: Sequence[Census]
) -> Iterator[Finding]:
    inside: list[Spot] = []
    elsewhere: list[Spot] = []
    for here, file in census.pinned_linked.items():
        others = _names_in(here, [each.linked for each in everywhere])
        pinned = _names_in(here, [each.pinned_linked for each in everywhere])
        inside += [Spot(other, file.names[0]) for other in sorted(others - pinned)]
        missing = file.links - len(pinned | others)
        if missing > 0:
            elsewhere.append(Spot(file.names[0], said=count(missing, "other name")))
    ignored = subject.scope.protect_pinned and subject.scope.hard_links == "ignore"
    if inside:
        title = "Pinned files have other names, "
        title += "which may be written to" if ignored else "which only the gateway refuses"
        level: Level = "wrong" if ignored else "note"
        yield subject.find("pinned-hard-links", title, inside, level=level)
    if elsewhere:
        title = "Pinned files have other names, outside of the roots"
        yield subject.find("pinned-names-elsewhere", title, elsewhere)


def _names_in(here: Identity, tables: Iterable[Mapping[Identity, Linked]]) -> set[str]:
    return {name for table in tables if here in table for name in table[here].names}


# Symbolic links


def _sorted_links(subject: Subject, census: Census) -> dict[str, list[Spot]]:
    found: dict[str, list[Spot]] = {}
    for path in census.links:
        with walk(path) as opened:
            problem = None if opened.problem is None else describe(opened.problem)
            for kind in _kinds(subject, path, opened):
                found.setdefault(kind, []).append(Spot(path, opened.real, problem))
    return found


def _kinds(subject: Subject, path: str, opened: Opened) -> Iterator[str]:
    inside = below(path, subject.base) or ()
    if subject.root.guarded and inside and same(inside[0], RESERVED):
        if len(inside) > 1:  # `pinned` itself is told of by `place`
            yield from _kinds_in_pinned(subject, opened)
        return
    if opened.real is None:
        yield "broken"
        return
    pinned = _is_pinned(subject, opened)
    if same(path.rpartition("/")[2], RESERVED) and not pinned and _is_directory(opened):
        yield "nested"
    if pinned:
        yield "pinned"
    elif opened.status is None:
        yield "dangling"
    else:
        yield "inside" if managed(opened.real, subject.roots) else "outside"


def _is_directory(opened: Opened) -> bool:
    return opened.status is not None and stat.S_ISDIR(opened.status.st_mode)


def _kinds_in_pinned(subject: Subject, opened: Opened) -> Iterator[str]:
    """A link in pinned/ is protected as a name; what it leads to only if it is pinned by itself,
    or if a session like this one may not write there."""
    if opened.real is None:
        yield "broken"
        return
    with walk(opened.real) as target:
        if _is_pinned(subject, target):
            yield "pinned"
        elif subject.scope.confine_writes and included(target.real, subject.roots) is None:
            yield "outside"
        else:
            yield "out"


def _links(subject: Subject, links: Mapping[str, list[Spot]]) -> Iterator[Finding]:
    confined = subject.scope.confine_writes
    titles = {
        "pinned": ("links-to-pinned", "{} into pinned/"),
        "inside": ("links-inside", "{} to another place in memory"),
        "outside": (
            "links-outside",
            "{} out of memory, where writes are "
            + ("refused" if confined else "possible in a session like this one"),
        ),
        "dangling": ("links-dangling", "{} to what is not there"),
        "broken": ("links-broken", "{} that cannot be followed"),
    }
    for kind, (name, title) in titles.items():
        if spots := links.get(kind):
            yield subject.find(name, title.format(count(len(spots), "link")), spots)


# The rest


def _rest(subject: Subject, census: Census) -> Iterator[Finding]:
    mounted = sorted({*census.other_volumes, *mounts_below(subject.base, subject.table)})
    if mounted:
        title = "Something is mounted inside the root"
        yield subject.find("mounts-inside", title, [Spot(path) for path in mounted])
    if census.pinned_unreadable:
        title = "Parts of pinned/ cannot be listed: changes of files with several names fail"
        spots = [Spot(path) for path in census.pinned_unreadable]
        yield subject.find("unreadable", title, spots, level="wrong")
    if census.unreadable:
        spots = [Spot(path) for path in census.unreadable]
        yield subject.find("unreadable", "Parts of it cannot be listed", spots)
    entries = count(census.entries, "entry", "entries")
    if census.stopped is None:
        yield subject.find("entries", f"{entries} looked at")
    else:
        title = f"The look ended {census.stopped}: what is said of this root is not all"
        yield subject.find("stopped", title)
