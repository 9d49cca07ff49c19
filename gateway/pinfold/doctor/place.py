"""A root's own directory: is it there, whose is it, what does its volume do, where is `pinned`."""

import os
import stat
from collections.abc import Iterator, Sequence

import msgspec

from pinfold.doctor.finding import Finding, Level, Spot, finding
from pinfold.doctor.mounts import Mount, mount_of
from pinfold.doctor.volume import Means, is_full, probe
from pinfold.memory.roots import RootPath
from pinfold.paths.errors import describe
from pinfold.paths.kernel import platform
from pinfold.paths.literal import encode
from pinfold.paths.opened import Opened
from pinfold.paths.walk import walk
from pinfold.policy.facts import RootFacts
from pinfold.policy.names import RESERVED, below
from pinfold_protocol.session import Scope


class Subject(msgspec.Struct, frozen=True):
    """One root: as configured, as the gateway sees it (or why it does not), in a session's scope.
    `roots` are all of them, `table` is what is mounted."""

    root: RootPath
    seen: RootFacts | OSError
    scope: Scope
    roots: tuple[RootFacts, ...]
    table: tuple[Mount, ...]

    def find(
        self,
        name: str,
        title: str,
        spots: Sequence[Spot] = (),
        *,
        level: Level | None = None,
        advice: str | None = None,
    ) -> Finding:
        """A finding about this root."""
        about = f"{self.root.kind} root  {self.root.path}"
        return finding(name, about, title, spots, level=level, advice=advice, base=self.base)

    @property
    def base(self) -> str:
        """Where the root really is; empty where that cannot be said."""
        return "" if isinstance(self.seen, OSError) else self.seen.real or ""


def overlaps(roots: Sequence[RootFacts], project: str) -> list[Finding]:
    """Roots inside one another, and a project inside a root."""
    about = "where memory is"
    found = [
        finding("roots-overlap", about, f"The {inner.kind} root is inside the {outer.kind} root.")
        for inner in roots
        for outer in roots
        if inner is not outer and _inside(inner.real, outer.real)
    ]
    with walk(project) as opened:
        real = opened.real
    found += [
        finding(
            "project-in-root",
            about,
            f"The project is inside the {root.kind} root.",
            [Spot(project)],
        )
        for root in roots
        if _inside(real, root.real)
    ]
    return found


def _inside(path: str | None, base: str | None) -> bool:
    return path is not None and base is not None and below(path, base) is not None


def place(subject: Subject) -> list[Finding]:
    """Everything about the directory itself."""
    with walk(subject.root.path) as opened:
        return [*_directory(subject, opened), *_pinned(subject, opened)]


def _directory(subject: Subject, opened: Opened) -> Iterator[Finding]:
    if opened.problem is not None:
        yield subject.find("root-unresolved", f"It leads nowhere: {describe(opened.problem)}")
        return
    yield from _trusted(subject, opened)
    yield from _others(subject, opened.real or "")
    if opened.target is None or opened.status is None:
        yield subject.find("root-missing", "It is not there yet")
        yield from _future(subject, opened)
    elif not stat.S_ISDIR(opened.status.st_mode):
        yield subject.find("root-not-directory", "It is no directory")
    else:
        yield from _usable(subject, opened.target, opened.real or "")


def _future(subject: Subject, opened: Opened) -> Iterator[Finding]:
    """What the volume does, told by the directory in which the root will be made."""
    try:
        folds = opened.parent is not None and probe(opened.parent, writable=False).folding
    except OSError:
        return
    if folds:
        yield subject.find("root-folds-names", "Names in another case will be the same name")


def _trusted(subject: Subject, opened: Opened) -> Iterator[Finding]:
    """Where a link inside the part that the convention computes leads, writes are not allowed."""
    seen = subject.seen
    if isinstance(seen, OSError) or seen.write_path in (None, opened.real):
        return
    title = "Confined writes are refused: a link leads to another place than the one trusted"
    yield subject.find("root-untrusted", title, [Spot(seen.write_path or "", opened.real)])


def _others(subject: Subject, real: str) -> Iterator[Finding]:
    """Whoever may rename a directory on the way may put another one in its place."""
    others, group = [], []
    for path in dict.fromkeys((*_upwards(real), *_upwards(subject.root.path))):
        try:
            status = os.lstat(encode(path))
        except OSError:
            continue
        spot = Spot(path, said=f"{stat.filemode(status.st_mode)}, owner {status.st_uid}")
        foreign = status.st_uid not in (0, os.geteuid())
        # In a sticky directory others cannot rename what is not theirs; and links have no mode.
        mode = 0 if stat.S_ISLNK(status.st_mode) else status.st_mode
        open_to = 0 if mode & stat.S_ISVTX and path != real else mode
        if foreign or open_to & stat.S_IWOTH:
            others.append(spot)
        elif open_to & stat.S_IWGRP:
            group.append(spot)
    level: Level = "wrong" if subject.root.guarded else "note"
    if others:
        title = "Others may exchange or change what is there"
        yield subject.find("root-others", title, others, level=level)
    if group:
        yield subject.find("root-group", "A group may exchange or change what is there", group)


def _upwards(path: str) -> Iterator[str]:
    """A path and all that is above it but `/`."""
    while path.rstrip("/"):
        yield path
        path = path.rpartition("/")[0]


def _usable(subject: Subject, target: int, real: str) -> Iterator[Finding]:
    if not _listable(target):
        yield subject.find("root-unreadable", "You may not list it")
        return
    writable = platform.writable(target)
    if not writable:
        level: Level = "wrong" if subject.root.guarded else "note"
        yield subject.find("root-read-only", "You may not write in it", level=level)
    else:
        leads = "" if real == subject.root.path else f"; it really is {real}"
        yield subject.find("root", f"A directory that you may read and write{leads}")
    yield from _volume(subject, probe(target, writable=writable), real)


def _listable(target: int) -> bool:
    try:
        os.close(platform.reopen(target, os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return False
    return True


def _volume(subject: Subject, means: Means, real: str) -> Iterator[Finding]:
    if is_full(real):
        yield subject.find("root-full", "There is no room on its volume")
    mount = mount_of(real, subject.table)
    kind = f"{mount.kind}: " if mount else ""
    if mount is not None and mount.remote:
        title = f"It is on {mount.kind}: whoever serves that may change it unseen"
        yield subject.find("root-remote", title)
    if means.folding:
        yield subject.find("root-folds-names", f"{kind}names in another case are the same name")
    elif means.folding is None:
        yield subject.find("root-folding-unknown", f"{kind}whether names fold cannot be told")
    if means.exchange is False:
        title = f"{kind}no exchange of names, so a change has a gap before its rename"
        yield subject.find("root-no-exchange", title)
    if means.locks is False:
        yield subject.find("root-no-locks", f"{kind}no locks, so gateways do not wait")
    if means.folding is False and means.exchange:
        how = "files without names" if means.nameless else "temporaries"
        title = f"{kind}case tells names apart; changes appear in one step, by {how}"
        yield subject.find("root-volume", title)


# The reserved directory


def _pinned(subject: Subject, root: Opened) -> Iterator[Finding]:
    seen = subject.seen
    if isinstance(seen, OSError):
        title = f"pinned/ cannot be looked at: {describe(seen.errno)}"
        yield subject.find("pinned-unknown", title)
        return
    if seen.reserved is None or root.status is None or not stat.S_ISDIR(root.status.st_mode):
        return
    literal = seen.reserved.literal
    with walk(literal) as opened:
        if seen.reserved.real or opened.problem is not None:
            yield _link(subject, opened, root.real or "")
        elif opened.status is None:
            yield subject.find("pinned-missing", "There is no pinned/: nothing is protected yet")
        elif not stat.S_ISDIR(opened.status.st_mode):
            yield subject.find(
                "pinned-not-directory", f"{RESERVED} is no directory", [Spot(literal)]
            )


def _link(subject: Subject, opened: Opened, root: str) -> Finding:
    problem = None if opened.problem is None else describe(opened.problem)
    leads = Spot(opened.literal, opened.real, problem)
    if opened.real is None or opened.status is None:
        return subject.find("pinned-dangling", "pinned is a link to what is not there", [leads])
    if below(root, opened.real) is not None:
        title = "pinned is a link that makes all of the root read-only"
        return subject.find("pinned-whole-root", title, [leads])
    if not stat.S_ISDIR(opened.status.st_mode):
        return subject.find("pinned-not-directory", f"{RESERVED} is no directory", [leads])
    where = "inside" if below(opened.real, root) is not None else "outside"
    return subject.find("pinned-link", f"pinned is a link to a place {where} the root", [leads])
