"""What a host's agent has read of managed memory, so that it can be loaded again.

No host keeps a tool result because a tag says so. So after a read the hook notes the document, and
after a compaction it says which ones there were: the pinned ones first, and what has changed since.
One small file for each session of a host, in the user's state directory; paths and digests, never
contents.
"""

import os
import stat
from contextlib import suppress

from pinfold.doors.hook import events
from pinfold.doors.hook.events import Event
from pinfold.doors.hook.flags import Flags
from pinfold.doors.hook.hosts import HOSTS
from pinfold.doors.hook.lightly import load
from pinfold.doors.scanning import loads, quoted
from pinfold.places import user_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pinfold.doors.hook.judge import Bench
    from pinfold_protocol.retention import RetentionTag

MOST_DOCUMENTS = 500
MOST_SESSIONS = 200
_MOST_BYTES = 256 * 1024
_MOST_CHARS = 9000
"""Claude Code takes 10,000 characters of context."""
_LARGEST = 64 << 20


class Document:
    """A document that was read. `sha256` (hex) is None where it was too large; `at` in seconds."""

    def __init__(self, path: str, scope: str, pinned: bool, sha256: str | None, at: int) -> None:
        self.path = path
        self.scope = scope
        self.pinned = pinned
        self.sha256 = sha256
        self.at = at


def directory() -> str:
    """Where they are: on Linux `~/.local/state/pinfold/hooks`."""
    return user_path("state", "hooks")


class Reads:
    """What one session of a host has read."""

    def __init__(self, host: str, session: str, at: str | None = None) -> None:
        import hashlib

        self._host = host
        self._session = session
        self._directory = directory() if at is None else at
        name = hashlib.sha256(f"{host}\0{session}".encode("utf-8", "backslashreplace")).hexdigest()
        self.path = os.path.join(self._directory, f"{name[:32]}.jsonl")

    def add(self, document: Document) -> None:
        """Note a document. Raises OSError."""
        self._append(
            f'{{"path": {quoted(document.path)}, "scope": {quoted(document.scope)}, '
            f'"pinned": {str(document.pinned).lower()}, '
            f'"sha256": {quoted(document.sha256) if document.sha256 else "null"}, '
            f'"at": {document.at}}}'
        )

    def since_compaction(self) -> "list[Document]":
        """The documents that were read after the compaction before the last, each once, the last
        read first. A compaction is noted. Raises OSError."""
        groups = [{}, *_groups(_lines(self.path))][-2:]
        self._append('{"compacted": true}')
        found: dict[str, Document] = {}
        for group in groups:
            for path, document in group.items():
                found.pop(path, None)
                found[path] = document
        return list(found.values())[::-1]

    def forget(self) -> None:
        """The session has begun anew."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return

    def _append(self, line: str) -> None:
        import fcntl

        os.makedirs(self._directory, 0o700, exist_ok=True)
        handle = self._open()
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            if size == 0:
                head = f'{{"host": {quoted(self._host)}, "session": {quoted(self._session)}}}'
                line = f"{head}\n{line}"
            elif size > _MOST_BYTES:
                self._shorten(handle)
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self.path, flags)
        except FileNotFoundError:
            _make_room(self._directory)
            return os.open(self.path, flags | os.O_CREAT, 0o600)

    def _shorten(self, handle: int) -> None:
        """The head, and the last half of what fits; a line that is cut is no line."""
        data = os.pread(handle, 2 * _MOST_BYTES, 0)
        head = data.partition(b"\n")[0]
        rest = data[-_MOST_BYTES // 2 :].partition(b"\n")[2]
        os.ftruncate(handle, 0)
        os.write(handle, head + b"\n" + rest)


def _make_room(where: str) -> None:
    """Before another session is noted, the oldest go."""
    with os.scandir(where) as entries:
        files = [entry.path for entry in entries if entry.name.endswith(".jsonl")]
    if len(files) >= MOST_SESSIONS:
        for path in sorted(files, key=_modified)[: len(files) - MOST_SESSIONS + 1]:
            with suppress(OSError):  # another hook was faster
                os.unlink(path)


def _modified(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _lines(path: str) -> "Iterator[dict[str, Any]]":
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return
    with open(handle, "rb") as file:
        for line in file.read(2 * _MOST_BYTES).splitlines():
            try:
                value = loads(line.decode())
            except (ValueError, RecursionError):  # a writer was killed
                continue
            if isinstance(value, dict):
                yield value


def _groups(lines: "Iterator[dict[str, Any]]") -> "list[dict[str, Document]]":
    """The documents between compactions, by path, the last read last."""
    groups: list[dict[str, Document]] = [{}]
    for line in lines:
        if "compacted" in line:
            groups.append({})
        elif document := _document(line):
            groups[-1].pop(document.path, None)
            groups[-1][document.path] = document
            if len(groups[-1]) > MOST_DOCUMENTS:
                del groups[-1][next(iter(groups[-1]))]
    return groups


def _document(line: "dict[str, Any]") -> Document | None:
    path, scope, sha256, at = (line.get(name) for name in ("path", "scope", "sha256", "at"))
    if scope not in ("project", "user", "team") or not isinstance(at, int) or not 0 <= at < 1 << 40:
        return None
    if not isinstance(path, str) or not path.startswith("/"):
        return None
    digest = sha256 if isinstance(sha256, str) else None
    return Document(path, scope, line.get("pinned") is True, digest, at)


def sessions(at: str | None = None) -> "list[tuple[str, str, list[Document]]]":
    """Everything that is noted: host, session, and the documents since the compaction before the
    last; the session that was noted last is the last."""
    where = directory() if at is None else at
    try:
        with os.scandir(where) as entries:
            files = [entry.path for entry in entries if entry.name.endswith(".jsonl")]
    except FileNotFoundError:
        return []
    found = []
    for path in sorted(files, key=_modified):
        lines = list(_lines(path))
        head = lines[0] if lines else {}
        documents: dict[str, Document] = {}
        for group in _groups(iter(lines))[-2:]:
            documents |= group
        session = head.get("host"), head.get("session")
        if isinstance(session[0], str) and isinstance(session[1], str):
            found.append((session[0], session[1], list(documents.values())))
    return found


# Events


def heard(flags: Flags, event: Event) -> str:
    """The answer to an event after a tool, or at the start of a session; "" for none."""
    if event.name == events.AFTER:
        _after(flags, event)
    elif event.source == "clear":
        Reads(flags.host, event.session).forget()
    elif event.source == "compact":
        return _compacted(flags, event)
    return ""


def _bench(flags: Flags, event: Event) -> "Bench":
    load("pinfold.doors.hook.judge", "pinfold.memory.retention")
    from pinfold.doors.hook.judge import bench

    return bench(flags, event)


def _after(flags: Flags, event: Event) -> None:
    tool = HOSTS[flags.host].tools.get(event.tool)
    if tool is None or tool.kind != "read" or _failed(event.response):
        return
    if not event.session or event.agent:  # what a sub-agent reads is not in this conversation
        return
    bench = _bench(flags, event)
    from pinfold_protocol.errors import ToolError

    try:
        tag = _look(bench, bench.read_path(tool, event.arguments))
    except (ToolError, events.NotUnderstood, OSError):
        return
    if tag is not None:
        import time

        document = Document(tag.path, tag.scope, tag.pinned, tag.sha256, int(time.time()))
        Reads(flags.host, event.session).add(document)


def _failed(response: "Any") -> bool:
    """Whether a host says that nothing was read."""
    if not isinstance(response, dict):
        return False
    return any(response.get(name) for name in ("error", "isError", "is_error"))


def _look(bench: "Bench", path: str) -> "RetentionTag | None":
    """The tag that a read of this path would carry now; None for what is not managed, or may not
    be read. Raises ToolError, OSError."""
    from pinfold.deciding import decided
    from pinfold.memory.retention import tag_for
    from pinfold.policy.facts import Call

    with decided(bench.ground, Call("read_file", "read"), path) as found:
        decision = found.decision
        if decision.root is None or decision.decision == "deny" or found.opened.target is None:
            return None
        sha256 = _digest(found.opened.target, found.opened.status)
        return tag_for(found.opened, decision.root, found.look, sha256, complete=True)


def _digest(target: int, status: "os.stat_result | None") -> str | None:
    import hashlib

    from pinfold.paths.kernel import platform

    if status is None or not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError
    if status.st_size > _LARGEST:
        return None
    handle = platform.reopen(target, os.O_RDONLY | os.O_NONBLOCK)
    digest = hashlib.sha256()
    try:
        while chunk := os.read(handle, 1 << 20):
            digest.update(chunk)
    finally:
        os.close(handle)
    return digest.hexdigest()


def _compacted(flags: Flags, event: Event) -> str:
    documents = Reads(flags.host, event.session).since_compaction()
    if not documents:
        return ""
    bench = _bench(flags, event)
    lines = [
        f"- {_shown(document.path)} ({', '.join(_about(bench, document))})"
        for document in sorted(documents, key=lambda document: not document.pinned)
    ]
    reading = HOSTS[flags.host].reader
    head = (
        "The conversation was compacted, and what you had read of managed memory is no longer in "
        f"it. Before you rely on one of these documents, read it again with {reading}:"
    )
    return events.context("\n".join((head, *_fitting(lines))))


def _about(bench: "Bench", document: Document) -> "Iterator[str]":
    from pinfold_protocol.errors import ToolError

    if document.pinned:
        yield "pinned"
    yield f"{document.scope} memory"
    try:
        now = _look(bench, document.path)
    except (ToolError, OSError):
        now = None
    if now is None:
        yield "not there any more"
    elif now.sha256 != document.sha256:
        yield "changed since you read it"


def _fitting(lines: "list[str]") -> "list[str]":
    """As many as a host takes; how many more there are is said."""
    kept: list[str] = []
    room = _MOST_CHARS
    for index, line in enumerate(lines):
        room -= len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1
        if room < 0:
            return [*kept, f"- and {len(lines) - index} more"]
        kept.append(line)
    return kept


def _shown(path: str) -> str:
    """A name with a line break in it must not look like a line of ours."""
    return path if path.isprintable() else quoted(path)
