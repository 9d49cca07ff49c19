"""What lies in a root: links and where they lead, other names of pinned files, what only looks
protected. Judged by the policy's own code."""

import os
import stat
from collections.abc import Iterator, Mapping

from pinfold.doctor.finding import Finding, count
from pinfold.doctor.mounts import mounts_below
from pinfold.doctor.place import Subject
from pinfold.doctor.tree import Census, Limits, take
from pinfold.paths.errors import describe
from pinfold.paths.literal import encode
from pinfold.paths.opened import Opened
from pinfold.paths.walk import walk
from pinfold.policy.confinement import included, managed
from pinfold.policy.facts import Facts
from pinfold.policy.names import RESERVED, below, same
from pinfold.policy.pinned import find_pinned


def contents(subject: Subject, limits: Limits) -> list[Finding]:
    """One bounded look at everything in a root that exists."""
    seen = subject.seen
    real = os.path.realpath(encode(subject.root.path)).decode("utf-8", "surrogateescape")
    if not os.path.isdir(encode(real)):
        return []
    guarded = subject.root.guarded
    reserved = () if isinstance(seen, OSError) or not seen.reserved else seen.reserved.real
    target = tuple(path for path in reserved if _is_apart(path, real))
    census = take(real, guarded, target, limits)
    links = _sorted_links(subject, census, real)
    census.nested += links.pop("nested", [])
    return [
        *_reserved(subject, census, real),
        *_protected_in_looks(subject, census, links),
        *_other_names(subject, census),
        *_links(subject, links),
        *_rest(subject, census, real),
    ]


def _is_apart(path: str, root: str) -> bool:
    return below(root, path) is None and os.path.isdir(encode(path))


def _is_pinned(subject: Subject, opened: Opened) -> bool:
    return find_pinned(Facts(opened.as_target(), subject.roots)) is not None


def _reserved(subject: Subject, census: Census, real: str) -> Iterator[Finding]:
    path = f"{real.rstrip('/')}/{RESERVED}"
    if subject.root.guarded and os.path.isdir(encode(path)):
        documents = count(census.documents, "document")
        yield subject.find("pinned", f"pinned/ is there, with {documents}")


def _protected_in_looks(
    subject: Subject, census: Census, links: Mapping[str, list[str]]
) -> Iterator[Finding]:
    """What somebody may take for protected, and is not, or for another thing than it is."""
    if census.aliases:
        title = "What reads like pinned but is spelt otherwise counts as pinned too."
        yield subject.find("pinned-alias", title, census.aliases)
    if census.nested:
        title = "A pinned/ below the first level is not protected."
        more = {}
        if not subject.root.guarded:
            title = "A pinned/ in the team root is not protected."
            more = {"advice": "Move what is in it to pinned/ of the project or the user root."}
        yield subject.find("pinned-nested", title, census.nested, **more)
    if out := links.get("out"):
        title = "A document in pinned/ is a link, and what it leads to is not protected."
        yield subject.find("pinned-link-out", title, out)
    doors = [
        f"{path} = {census.pinned_directories[here]}"
        for here, path in census.directories.items()
        if here in census.pinned_directories and not _protected(subject, path)
    ]
    if doors:
        title = "A directory of pinned/ is mounted at another place, and not protected there."
        yield subject.find("pinned-second-door", title, doors)


def _protected(subject: Subject, path: str) -> bool:
    with walk(path) as opened:
        return _is_pinned(subject, opened)


# Several names of one file


def _other_names(subject: Subject, census: Census) -> Iterator[Finding]:
    inside: list[str] = []
    elsewhere: list[str] = []
    for here, file in census.pinned_linked.items():
        others = census.linked[here].names if here in census.linked else []
        inside += [f"{other} = {file.names[0]}" for other in others]
        missing = file.links - len(file.names) - len(others)
        if missing > 0:
            elsewhere.append(f"{file.names[0]}  ({count(missing, 'other name')})")
    ignored = subject.scope.protect_pinned and subject.scope.hard_links == "ignore"
    if inside:
        title = "Pinned files have other names: the gateway refuses them, other programs do not."
        level = "wrong" if ignored else "note"
        yield subject.find("pinned-hard-links", title, inside, level=level)
    if elsewhere:
        title = "Pinned files have other names that were not found in this root."
        yield subject.find("pinned-names-elsewhere", title, elsewhere)


# Symbolic links


def _sorted_links(subject: Subject, census: Census, real: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in census.links:
        with walk(path) as opened:
            leads = opened.real or describe(opened.problem)
            for kind in _kinds(subject, path, opened, real):
                found.setdefault(kind, []).append(f"{path} → {leads}")
    return found


def _kinds(subject: Subject, path: str, opened: Opened, real: str) -> Iterator[str]:
    inside = below(path, real) or ()
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


def _links(subject: Subject, links: Mapping[str, list[str]]) -> Iterator[Finding]:
    confined = subject.scope.confine_writes
    titles = {
        "pinned": ("links-to-pinned", "{} into pinned/"),
        "inside": ("links-inside", "{} to other places in memory"),
        "outside": (
            "links-outside",
            "{} out of memory; writes through them are "
            + ("refused" if confined else "possible in a session like this one"),
        ),
        "dangling": ("links-dangling", "{} to what is not there"),
        "broken": ("links-broken", "{} that cannot be followed"),
    }
    for kind, (name, title) in titles.items():
        if paths := links.get(kind):
            lead = count(len(paths), "link leads", "links lead")
            lead = count(len(paths), "link") if kind == "broken" else lead
            yield subject.find(name, title.format(lead) + ".", paths)


# The rest


def _rest(subject: Subject, census: Census, real: str) -> Iterator[Finding]:
    mounted = sorted({*census.other_volumes, *mounts_below(real, subject.table)})
    if mounted:
        yield subject.find("mounts-inside", "Something is mounted inside the root.", mounted)
    if census.pinned_unreadable:
        title = "Parts of pinned/ cannot be listed: changes of files with several names fail."
        yield subject.find("unreadable", title, census.pinned_unreadable, level="wrong")
    if census.unreadable:
        yield subject.find("unreadable", "Parts cannot be listed.", census.unreadable)
    entries = count(census.entries, "entry", "entries")
    if census.stopped is None:
        yield subject.find("entries", f"{entries} looked at, in all directories")
    else:
        title = f"The look ended {census.stopped}: what is said of this root is not all."
        yield subject.find("stopped", title)
