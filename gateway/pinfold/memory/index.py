"""`memory/index`: the documents below the roots of a session, in order, under a limit."""

import stat
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby

import msgspec

from pinfold.memory.documents import MOST_NAMES, Found, Scanner
from pinfold.memory.marks import Marks
from pinfold.memory.roots import Look, RootPath
from pinfold.paths.errors import describe
from pinfold.paths.opened import Opened, identity
from pinfold.policy.decide import decide
from pinfold.policy.facts import Answers, Call, Effective, Facts, Identity, RootFacts, Target
from pinfold.text.collation import code_units, collation_key
from pinfold_protocol.decision import RootKind, Verdict
from pinfold_protocol.memory import MemoryDocument, MemoryIndexResult, SkippedDocument

MOST_TEXT = 16 * 1024 * 1024
"""Characters of all titles and descriptions of one root."""
MOST_SKIPPED = 1000
"""How many skipped ones of one root are named; of the others only their number is told."""

_READS = (Call("read_memory", "read", managed_only=True), Call("read_file", "read"))
_LISTS = Call("list_directory", "read")
_ROOM = 1000
_EPOCH = datetime(1970, 1, 1)


def index(
    look: Look,
    paths: tuple[RootPath, ...],
    policy: "Readable",
    kinds: Collection[RootKind] | None,
    limit: int,
) -> MemoryIndexResult:
    """The documents of the roots of `kinds` (None: of all) that a session may read, at most
    `limit` of each. Never raises for what lies there."""
    roots = look.marked()
    marks = Marks(roots)
    result = MemoryIndexResult([], False, [])
    truncated = False
    seen: set[Identity | None] = set()
    for path, root in zip(paths, roots, strict=True):
        opened = look.opened(path)
        found = None if opened.status is None else identity(opened.status)
        twice = found is not None and found in seen  # two roots that are one: it is the first's
        seen.add(found)
        if twice or (kinds is not None and root.kind not in kinds):
            continue
        kept = _Kept(root, limit)
        _scan(kept, opened, roots, _others(look, paths, root.kind), policy)
        result.documents.extend(kept.documents(marks))
        result.skipped.extend(kept.named())
        truncated = truncated or kept.truncated
    return msgspec.structs.replace(result, truncated=truncated)


def _others(look: Look, paths: tuple[RootPath, ...], kind: RootKind) -> frozenset[Identity]:
    statuses = [look.opened(path).status for path in paths if path.kind != kind]
    found = [None if status is None else identity(status) for status in statuses]
    return frozenset(each for each in found if each is not None)


def _scan(
    kept: "_Kept",
    opened: Opened,
    roots: tuple[RootFacts, ...],
    elsewhere: frozenset[Identity],
    policy: "Readable",
) -> None:
    root = kept.root
    if opened.problem is not None and policy.covers(root):
        kept.skipped("", f"the root cannot be looked at: {describe(opened.problem)}")
    if opened.status is None or policy.confined(Target(root.path, root.real), roots):
        return
    if not stat.S_ISDIR(opened.status.st_mode):
        kept.skipped("", "the root is not a directory")
        return
    readable: Callable[[Target, bool], bool] | None = None
    if policy.has_rules:
        readable = lambda target, directory: policy.may(target, roots, directory)  # noqa: E731
    scanner = Scanner(root, roots, elsewhere, readable, kept)
    scanner.run(opened)
    if scanner.full:
        kept.truncated = True
        kept.skipped("", f"only the first {MOST_NAMES} names below it were looked at")


class Readable:
    """What the session may read, by the policy's own decisions. `answers`: what was allowed for
    the session."""

    def __init__(self, effective: Effective, answers: Answers) -> None:
        self._effective = effective
        self._answers = answers
        calls = (*_READS, _LISTS)
        self.has_rules = any(rule.names(c.name) for rule in effective.rules for c in calls)

    def may(self, target: Target, roots: tuple[RootFacts, ...], directory: bool = False) -> bool:
        """Whether a file may be read by one tool and is denied to none, and a directory listed as
        well. What would have to be asked for is neither."""
        facts = Facts(target, roots)
        if directory and self._verdict(_LISTS, facts) != "allow":
            return False
        verdicts = [self._verdict(call, facts) for call in _READS]
        return "allow" in verdicts and "deny" not in verdicts

    def _verdict(self, call: Call, facts: Facts) -> Verdict:
        return decide(call, facts, self._effective, self._answers).decision

    def covers(self, root: RootFacts) -> bool:
        """Whether a root is in the scope of reads, as far as its kind tells."""
        return root.included or not self._effective.scope.confine_reads

    def confined(self, root: Target, roots: tuple[RootFacts, ...]) -> bool:
        """Whether a root is out of the scope, and so is everything in it: only rules tell one
        document of a root from another."""
        decision = decide(_READS[0], Facts(root, roots), self._effective, self._answers)
        return decision.decision == "deny" and decision.rule == "outside-memory"


class _Kept:
    """The first documents of one root, in its order."""

    def __init__(self, root: RootFacts, limit: int) -> None:
        self.root = root
        self.truncated = False
        self._limit = limit
        self._found: list[Found] = []
        self._oldest = -(1 << 63)  # nanoseconds: what is older cannot be among the first
        self._text = 0
        self._skipped: list[tuple[str, str]] = []
        self._unnamed = 0

    def found(self, document: Found) -> None:
        """A valid topic."""
        if document.modified < self._oldest:
            self.truncated = True
            return
        self._found.append(document)
        self._text += len(document.topic.title) + len(document.topic.description)
        if len(self._found) > 2 * self._limit + _ROOM or self._text > MOST_TEXT:
            self._cut()

    def skipped(self, relative: str, reason: str) -> None:
        """Something that is none."""
        if len(self._skipped) < MOST_SKIPPED:
            self._skipped.append((relative, reason))
        else:
            self._unnamed += 1

    def _cut(self) -> None:
        """Keep the first ones, under the limit and as long as there is room for their text."""
        ordered = _by_path(self._found) if self.root.kind == "team" else _newest(self._found)
        kept, text = ordered[: self._limit], 0
        for count, each in enumerate(kept):
            text += _text(each)
            if text > MOST_TEXT // 2 and count:
                kept, text = kept[:count], text - _text(each)
                break
        self.truncated = self.truncated or len(kept) < len(ordered)
        self._found, self._text = kept, text
        if len(kept) < len(ordered) and self.root.kind != "team":
            self._oldest = kept[-1].modified

    def documents(self, marks: Marks) -> list[MemoryDocument]:
        """The documents, marked."""
        self._cut()
        return [_document(self.root, each, marks) for each in self._found]

    def named(self) -> list[SkippedDocument]:
        """The skipped ones, by path."""
        kind, path = self.root.kind, self.root.path
        named = [
            SkippedDocument(kind, _valid(f"{path}/{relative}" if relative else path), reason)
            for relative, reason in sorted(self._skipped)
        ]
        if self._unnamed:
            named.append(SkippedDocument(kind, path, f"{self._unnamed} more were skipped in it"))
        return named


def _text(document: Found) -> int:
    return len(document.topic.title) + len(document.topic.description)


def _newest(found: list[Found]) -> list[Found]:
    """Newest first; those of one moment by name, as people sort names, then by path."""
    by_time = sorted(found, key=lambda each: -each.modified)
    if len({each.modified for each in found}) == len(found):
        return by_time
    ordered: list[Found] = []
    for _, group in groupby(by_time, key=lambda each: each.modified):
        same = list(group)
        if len(same) > 1:
            same.sort(key=lambda each: (collation_key(each.name), code_units(each.relative)))
        ordered += same
    return ordered


def _by_path(found: list[Found]) -> list[Found]:
    return sorted(found, key=lambda each: code_units(each.relative))


def _document(root: RootFacts, found: Found, marks: Marks) -> MemoryDocument:
    relative, topic = found.relative, found.topic
    return MemoryDocument(
        root.kind,
        f"{root.path.rstrip('/')}/{relative}",
        relative,
        topic.type,
        topic.title,
        topic.description,
        _pinned(found, marks),
        found.size,
        _rfc3339(found.modified),
    )


def _pinned(found: Found, marks: Marks) -> bool:
    level = found.level
    if level.pinned is None:
        level.pinned = marks.pinned(level.target)
    if found.linked is not None or marks.own(found.name, found.identity):
        return marks.pinned(found.target)
    return level.pinned


def _valid(path: str) -> str:
    """A byte that is no UTF-8 becomes U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _rfc3339(nanoseconds: int) -> str:
    """Nanoseconds since the epoch → UTC with milliseconds."""
    minutes, rest = divmod(nanoseconds // 1_000_000, 60_000)
    return f"{_minute(minutes)}:{rest // 1000:02}.{rest % 1000:03}Z"


@lru_cache(maxsize=1024)
def _minute(minutes: int) -> str:
    """Minutes since the epoch; one that RFC 3339 cannot say is the nearest that it can."""
    try:
        moment = _EPOCH + timedelta(minutes=minutes)
    except OverflowError:
        moment = datetime.max if minutes > 0 else datetime.min
    return moment.isoformat(timespec="minutes")
