"""Documents of managed memory as those see them who list, open and move them: `memory/index`, and
what an editor's language service asks. Everything is decided as a call of the session is."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from pinfold.backends.local import require_regular
from pinfold.memory import index as listing
from pinfold.memory.index import Readable
from pinfold.memory.roots import Look
from pinfold.memory.survey import Survey
from pinfold.paths.opened import check
from pinfold.paths.walk import glance
from pinfold.policy.confinement import managed
from pinfold.session import Session
from pinfold.text.codec import Decoded, decode
from pinfold.text.lines import normalize
from pinfold.tools.registry import as_call
from pinfold_protocol.decision import RootKind
from pinfold_protocol.errors import ToolError, invalid_params
from pinfold_protocol.memory import DEFAULT_LIMIT, MemoryIndexResult
from pinfold_protocol.session import MemoryDidChangeParams
from pinfold_protocol.tools import ToolsCallParams

if TYPE_CHECKING:
    from pinfold.app import Gateway


def index(
    gateway: "Gateway",
    session: Session,
    kinds: Collection[RootKind] | None = None,
    limit: int | None = None,
) -> MemoryIndexResult:
    """`memory/index`: the documents that the session may read, of the roots of `kinds` (None: of
    all), at most `limit` of each (None: 200).

    Raises RpcError (-32602) for a limit below 1.
    """
    most = DEFAULT_LIMIT if limit is None else limit
    if most < 1:
        raise invalid_params("limit", "must be at least 1")
    while True:
        effective = session.effective
        # Only a denial of a change must fail closed where a reserved directory cannot be seen.
        scope = msgspec.structs.replace(effective.scope, protect_pinned=False)
        with Look(session.roots, scope, gateway.volumes, trust=True) as look:
            readable = Readable(effective, session.answers)
            result = listing.index(look, session.roots, readable, kinds, most)
        if session.effective is effective:  # else it was listed under a scope that is gone
            return result


@contextmanager
def survey(gateway: "Gateway", session: Session) -> Iterator[Survey]:
    """A look at where documents stand in the roots of a session, and what links lead to: with what
    is pinned, whether the session protects that or not."""
    scope = msgspec.structs.replace(session.scope, protect_pinned=True, hard_links="deny")
    readable = Readable(session.effective, session.answers)
    with Look(session.roots, scope, gateway.volumes, trust=True) as look:
        yield Survey(look, readable.may)


def document(gateway: "Gateway", session: Session, path: str) -> str:
    """The real path of a document of managed memory that the session may read.

    Raises ToolError: `not-found` also for what is no managed memory.
    """
    with gateway.calls.decided(session, as_call("read_memory"), path) as found:
        real = found.opened.real
        if found.decision.root is None or real is None:
            message = f"{path}: it is no document of managed memory; resources/list has those."
            raise ToolError("not-found", message)
        if found.decision.decision != "allow":
            raise ToolError("denied", f"Denied: {found.decision.reason}")
        require_regular(found.opened, path)
        return real


def text_of(gateway: "Gateway", session: Session, path: str) -> str | None:
    """The text of a file that the session may read, decoded without loss; None for any other, and
    where there is none."""
    found = _decoded(gateway, session, path)
    return None if found is None or found.undecodable else found.text


def rewrite(
    gateway: "Gateway", session: Session, path: str, before: str, change: Callable[[str], str]
) -> bool:
    """Change the text of a file, as a call of the session, if it still is `before` but for its
    line endings, which not every editor tells: whether that was done."""
    found = _decoded(gateway, session, path)
    if found is None or found.undecodable or normalize(found.text) != normalize(before):
        return False
    digest = hashlib.sha256(found.data).hexdigest()
    arguments = {
        "file_path": path,
        "content": change(found.text),
        "expected_sha256": digest,
    }
    params = ToolsCallParams(session.session_id, "write_file", arguments)
    return not gateway.call(params, session=session).is_error


def move(gateway: "Gateway", session: Session, old: str, new: str) -> None:
    """Move a file to a name that is free, both ends decided as changes, and tell of it. Raises
    ToolError; then nothing was moved."""
    told: list[tuple[str, Literal["created", "deleted"]]] = [(old, "deleted"), (new, "created")]
    with gateway.records.recording(session.session_id, "move") as trace:
        trace.path = old
        with gateway.calls.decided(session, as_call("write_file"), old) as decided:
            trace.decision = decided.decision
        gateway.calls.move(session, old, new)
    for path, kind in told:
        with (
            glance(path) as opened,
            Look(session.roots, session.scope, gateway.volumes, trust=False) as look,
        ):
            root = managed(opened.real, look.names_only())
        if root is not None:
            real = opened.real or path
            gateway.on_memory_change(MemoryDidChangeParams(session.session_id, root, real, kind))


def _decoded(gateway: "Gateway", session: Session, path: str) -> Decoded | None:
    try:
        with gateway.calls.decided(session, as_call("read_file"), path) as decided:
            if decided.decision.decision != "allow":
                return None
            checked = check(decided.opened, decided.decision)
            data = gateway.calls.backend.read(checked, gateway.limits.max_file_bytes).data
        return decode(data)
    except ToolError:
        return None
