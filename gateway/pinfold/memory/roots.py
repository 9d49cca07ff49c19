"""The memory roots of a session: which paths they are, and what lies there now.

Which paths is fixed when the session opens; what lies there is looked up for each call, on
descriptors that stay open until the call ends.
"""

import errno
import os
import stat

import msgspec

from pinfold.memory.layouts import LAYOUTS, Surroundings
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode, encode, expand
from pinfold.paths.opened import NO_MEANS, Closing, Opened, identity
from pinfold.paths.volume import Volumes, entries_of, holds_file
from pinfold.paths.walk import glance, walk
from pinfold.policy.facts import Alias, Facts, Identity, Place, Reserved, RootFacts, Target
from pinfold.policy.names import RESERVED, below, collapse, is_sayable
from pinfold_protocol.decision import RootKind
from pinfold_protocol.errors import ToolError, invalid_params
from pinfold_protocol.session import MemoryOptions, Root, Scope

_NOTHING_THERE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class RootPath(msgspec.Struct, frozen=True):
    """One root as configured. `anchor` is the trusted prefix, None where the root is resolved
    whole; `guarded` says whether it has a reserved directory."""

    kind: RootKind
    path: str
    anchor: str | None = None

    @property
    def guarded(self) -> bool:
        """The team root has no reserved directory."""
        return self.kind != "team"


def find_git_root(project: str) -> str | None:
    """The nearest directory from `project` upwards, as written, that holds a `.git`."""
    path = project
    while True:
        if os.path.exists(encode(f"{path.rstrip('/')}/.git")):
            return path
        if path == "/":
            return None
        path = path.rpartition("/")[0] or "/"


def configured_roots(options: MemoryOptions, around: Surroundings) -> tuple[RootPath, ...]:
    """The roots by layout, explicit ones in place of the layout's.

    Raises RpcError (-32602) for an explicit root that is not absolute.
    """
    layout = LAYOUTS[options.layout or "qwen"](around)
    roots: list[RootPath] = []
    explicit = {
        "project": _explicit("memory.projectRoot", options.project_root, around.home),
        "user": _explicit("memory.userRoot", options.user_root, around.home),
        "team": _explicit("memory.teamRoot", options.team_root, around.home),
    }
    if explicit["project"] is None:
        roots.append(RootPath("project", layout.project, layout.anchor))
    else:
        roots.append(RootPath("project", explicit["project"]))
    if user := explicit["user"] or layout.user:
        roots.append(RootPath("user", user))
    if team := explicit["team"] or layout.team:
        roots.append(RootPath("team", team))
    return tuple(roots)


def _explicit(member: str, raw: str | None, home: str) -> str | None:
    if raw is None:
        return None
    if not (raw.startswith(("/", "~/")) or raw == "~"):
        raise invalid_params(member, "must be an absolute path, or begin with ~/")
    try:
        return collapse(expand(raw, "/", home))
    except ToolError as error:
        raise invalid_params(member, error.message) from None


class Look(Closing):
    """What lies at the roots right now. Holds descriptors: close it when the call ends.

    With `trust`, finds out the paths that confinement trusts as well; with `above`, what the whole
    needs for a call that takes a tree. With `cached`, raises WouldBlock where a look would have to
    wait.
    """

    def __init__(
        self,
        roots: tuple[RootPath, ...],
        scope: Scope,
        volumes: Volumes,
        *,
        trust: bool,
        above: bool = False,
        cached: bool = False,
    ) -> None:
        self._above = above
        self._roots = roots
        self._scope = scope
        self._included = {"project": scope.project_memory, "user": scope.user_memory}
        self._trust = trust
        self._cached = cached
        self._volumes = volumes
        self._held: list[Opened] = []
        self._handles: list[int] = []
        self._opened: dict[RootKind, Opened] = {}
        self._found: dict[RootKind, RootFacts] = {}
        self._failed: tuple[object, ...] | None = None
        self._marking = False
        self._briefly = False

    def close(self) -> None:
        """Give the descriptors back."""
        while self._held:
            self._held.pop().close()
        while self._handles:
            os.close(self._handles.pop())

    def names_only(self, of: str | None = None) -> tuple[RootFacts, ...]:
        """Enough for a read: where the roots really are, and what confinement trusts. `of`: the
        real path that will be compared with them; unless it is likely to be in one, a look that
        must not wait opens none of which only the name is needed."""
        if self._cached and of is not None:
            self._briefly = not any(of.startswith(f"{root.path}/") for root in self._roots)
        return tuple(map(self._root, self._roots))

    def whole(self) -> tuple[RootFacts, ...]:
        """For a change: the reserved directories too, by name and by identity.

        Raises OSError where something is protected and cannot be looked at for any reason but
        that nothing is there.
        """
        return tuple(map(self._with_reserved, self._roots))

    def marked(self) -> tuple[RootFacts, ...]:
        """The same for who only tells what is pinned: a reserved directory that cannot be looked
        at counts by its name, and those of other roots as ever."""
        self._marking = True
        return tuple(map(self._marked, self._roots))

    def _marked(self, root: RootPath) -> RootFacts:
        try:
            return self._with_reserved(root)
        except OSError as error:
            self._note(error)
            by_name = Reserved(f"{root.path.rstrip('/')}/{RESERVED}")
            return msgspec.structs.replace(self._root(root), reserved=by_name)

    def require_means(self) -> None:
        """Raise OSError where something of what was looked at so far only could not be looked at
        this time: what was found then is no ground for a decision, nor for a tag."""
        if self._failed is not None:
            raise OSError(*self._failed)

    def _note(self, error: OSError) -> None:
        if error.errno in NO_MEANS:
            self._failed = (error.errno, error.strerror, error.filename)

    def _hold(self, opened: Opened) -> Opened:
        self._held.append(opened)
        try:
            opened.require_means()
        except OSError as error:
            self._note(error)
        return opened

    def _with_reserved(self, root: RootPath) -> RootFacts:
        if not root.guarded:
            return self._root(root)
        reserved = self._reserved(root)
        above = self._all_above(reserved.literal) if self._above else frozenset()
        found = self._root(root)
        return RootFacts(
            found.kind, found.path, found.real, found.write_path, found.included, reserved, above
        )

    def _all_above(self, reserved: str) -> frozenset[Identity]:
        """Every directory on the ways to the root and to where its reserved directory leads, and
        those that only a link on the way is in: without it the rest is reached no more."""
        found: set[Identity] = set()
        for path in (reserved, reserved.rpartition("/")[0] or "/"):
            opened = self._walk(path)
            self._require_known(opened)
            found |= opened.passed
            found |= {step.identity for way in opened.ways for step in way if step.identity}
        return frozenset(found)

    def opened(self, root: RootPath) -> Opened:
        """A root itself, open as long as the look is."""
        return self._open_root(root)

    def _open(self, path: str) -> Opened:
        standing = self._volumes.standing
        opened = standing.again(path, cached=self._cached)
        if opened is None:
            opened = self._hold(glance(path, cached=self._cached))
            standing.keep(path, opened)
        return opened

    def _walk(self, path: str) -> Opened:
        if self._cached:
            raise WouldBlock
        return self._hold(walk(path))

    def _open_root(self, root: RootPath) -> Opened:
        opened = self._opened.get(root.kind)
        if opened is None:
            opened = self._opened[root.kind] = self._open(root.path)
            found = self._found.get(root.kind)
            if found is not None and found.real != opened.real:  # only its name was looked at
                raise WouldBlock
        return opened

    def _is_plain(self, path: str) -> bool:
        """Whether a path is known to be its own real path without being opened."""
        return self._briefly and self._volumes.standing.is_plain(path)

    def _root(self, root: RootPath) -> RootFacts:
        kind, path = root.kind, root.path
        found = self._found.get(kind)
        if found is None:
            real = path if self._is_plain(path) else self._open_root(root).real
            trusted = self._write_path(root, real) if self._trust else None
            included = self._included.get(kind, False)
            found = self._found[kind] = RootFacts(kind, path, real, trusted, included)
        return found

    def _write_path(self, root: RootPath, real: str | None) -> str | None:
        """The trusted prefix is resolved, the managed suffix is not (docs/policy.md)."""
        suffix = None if root.anchor is None else below(root.path, root.anchor)
        if root.anchor is None or suffix is None:
            return real
        anchor = root.anchor if self._is_plain(root.anchor) else self._open(root.anchor).real
        if anchor is None:
            return None
        plain = "/".join((anchor.rstrip("/"), *suffix))
        managed = len(suffix) == 3 and suffix[0] == "projects"
        linked = managed and real != plain
        if linked and (sibling := self._linked_sibling(anchor, suffix[1])):
            return f"{sibling}/{suffix[2]}"
        return plain

    def _linked_sibling(self, anchor: str, key: str) -> str | None:
        """The one link that is followed: `projects/KEY` to a sibling directly in `projects`."""
        state = f"{anchor.rstrip('/')}/projects/{key}"
        if self._cached:
            raise WouldBlock
        if not os.path.islink(encode(state)):
            return None
        target = self._walk(state).real
        here = f"{anchor.rstrip('/')}/projects"
        return target if target and target.rpartition("/")[0] == here else None

    def _reserved(self, root: RootPath) -> Reserved:
        opened = self._open_root(root)
        self._require_known(opened)
        literal = f"{root.path.rstrip('/')}/{RESERVED}"
        anchor, missing = _anchor(opened)
        places = [] if anchor is None else [Place(anchor, (*missing, RESERVED))]
        if opened.target is None or opened.status is None:
            return Reserved(literal, (), tuple(places))
        folding = self._folds_names(opened)
        try:
            open_entry = platform.open_entry_here if self._cached else platform.open_entry
            handle = open_entry(opened.target, encode(RESERVED))
        except (FileNotFoundError, NotADirectoryError):
            return Reserved(literal, (), tuple(places), folding)
        except OSError:
            if self._scope.protect_pinned or self._marking:
                raise
            return Reserved(literal, (), tuple(places), folding)
        self._handles.append(handle)
        status = os.fstat(handle)
        if not stat.S_ISLNK(status.st_mode):
            places += _places(identity(status), ())
            return Reserved(literal, (), tuple(places), folding)
        real, target = self._where_it_leads(opened.target, handle, literal)
        return Reserved(literal, real, (*places, *target), folding)

    def _folds_names(self, root: Opened) -> bool:
        """Whether the root's volume folds names, whether `pinned` is there or not. Only a denial
        needs to know; and a look that must not wait does not list a directory."""
        if self._cached or not self._scope.protect_pinned:
            return False
        assert root.target is not None and root.status is not None
        is_directory = stat.S_ISDIR(root.status.st_mode)
        return is_directory and self._volumes.folds_names(root.target, identity(root.status))

    def _where_it_leads(
        self, root: int, link: int, literal: str
    ) -> tuple[tuple[str, ...], list[Place]]:
        """The target of a `pinned` that is a link, there or not yet."""
        target = self._walk(literal)
        self._require_known(target)
        if target.real is not None:
            return (target.real,), _places(*_anchor(target))
        # A loop, or `..` after what is missing: what it would mean as text is protected.
        text = decode(platform.link_text(root, encode(RESERVED), link))
        base = decode(platform.name_of(root))
        return (collapse(text if text.startswith("/") else f"{base}/{text}"),), []

    def _require_known(self, opened: Opened) -> None:
        """A deny-list must not fail open: only what is not there may count as not there."""
        if opened.problem not in _NOTHING_THERE and self._scope.protect_pinned:
            number = opened.problem or errno.EIO
            raise OSError(number, os.strerror(number), opened.literal)

    def for_change(
        self, opened: Opened, roots: tuple[RootFacts, ...], record: str | None = None
    ) -> Facts:
        """All that a change is decided on, of the `whole` roots: also hard links into a reserved
        directory, and first-level names that answer without being listed. An error while looking
        counts as pinned."""
        target = opened.as_target()
        if not self._scope.protect_pinned:
            return Facts(target, roots, record=record)
        aliases = [
            alias
            for root in roots
            if root.reserved is not None
            for alias in _aliases(self._opened[root.kind], root.kind, target, self._volumes)
        ]
        linked = self._hard_link(roots, opened.status)
        return Facts(target, roots, linked, tuple(aliases), record)

    def _hard_link(
        self, roots: tuple[RootFacts, ...], status: os.stat_result | None
    ) -> RootKind | None:
        if self._scope.hard_links != "deny" or status is None:
            return None
        if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
            return None
        guarded = (root for root in roots if root.reserved is not None)
        return next((r.kind for r in guarded if self._may_hold(r.reserved, status)), None)

    def _may_hold(self, reserved: Reserved | None, status: os.stat_result) -> bool:
        assert reserved is not None
        opened = self._open(reserved.literal)
        wanted = identity(status)
        if opened.target is None or opened.status is None:
            return opened.problem is not None
        try:
            is_directory = stat.S_ISDIR(opened.status.st_mode)
            return wanted is None or (is_directory and holds_file(opened.target, wanted))
        except (OSError, RecursionError):
            return True


def _anchor(opened: Opened) -> tuple[Identity | None, tuple[str, ...]]:
    """The nearest thing that exists, by identity, and the names that are missing from it."""
    if opened.status is not None:
        return identity(opened.status), ()
    return opened.parent_identity, opened.missing


def _places(anchor: Identity | None, missing: tuple[str, ...]) -> list[Place]:
    return [] if anchor is None else [Place(anchor, missing)]


def _aliases(root: Opened, kind: RootKind, target: Target, volumes: Volumes) -> list[Alias]:
    here = None if root.status is None else identity(root.status)
    if root.target is None or here is None:
        return []
    found = []
    for way in target.ways:
        index = next((i for i, step in enumerate(way) if step.identity == here), len(way))
        step = way[index + 1] if index + 1 < len(way) else None
        if step is None or step.identity is None:
            continue
        try:
            folding = volumes.folds_names(root.target, here)
            entries = entries_of(root.target, step.name, step.identity) if folding else None
        except OSError:
            entries = ()
        if entries is not None:
            found.append(Alias(kind, entries))
    return found


def report(roots: tuple[RootPath, ...], scope: Scope, volumes: Volumes) -> list[Root]:
    """The roots as `memory/roots` reports them."""
    with Look(
        roots, msgspec.structs.replace(scope, protect_pinned=False), volumes, trust=True
    ) as look:
        return [_reported(facts) for facts in look.whole()]


def _reported(facts: RootFacts) -> Root:
    reserved = facts.reserved
    return Root(
        kind=facts.kind,
        path=facts.path,
        real_path=_said(facts.real),
        write_path=_said(facts.write_path),
        exists=os.path.isdir(encode(facts.path)),
        included=facts.included,
        pinned=[] if reserved is None else [*filter(_said, (reserved.literal, *reserved.real))],
    )


def _said(path: str | None) -> str | None:
    """A path that no message can hold is left out."""
    return path if path is not None and is_sayable(path) else None
