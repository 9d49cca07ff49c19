"""What a gateway knows of what was read, for compaction: `context/compact`, `context/reset`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pinfold.compaction import Evidence
from pinfold.compaction import compact as compacted
from pinfold.memory.roots import Look
from pinfold.paths.literal import expand
from pinfold.paths.walk import glance
from pinfold.policy.confinement import managed
from pinfold.policy.facts import RootFacts
from pinfold.session import Session
from pinfold_protocol.compaction import CompactParams, CompactResult, Reread, ResetResult
from pinfold_protocol.errors import ToolError
from pinfold_protocol.retention import RetentionTag

if TYPE_CHECKING:
    from pinfold.app import Gateway


def compact(
    gateway: "Gateway", params: CompactParams, session: Session | None = None
) -> CompactResult:
    """With a session, the paths that the history records are judged by its roots; and where the
    params name it, only tags that it issued count. Without one there are no roots to judge by, and
    the tags are taken as the host gives them.

    Raises RpcError for an unknown session, or a record that is none.
    """
    if session is None and params.session_id is not None:
        session = gateway.sessions.get(params.session_id)
    with evidence(gateway, params, session) as found:
        return compacted(params, found)


@contextmanager
def evidence(
    gateway: "Gateway", params: CompactParams, session: Session | None
) -> Iterator[Evidence]:
    """What is known of managed memory, for `pinfold.compaction`."""
    tags = params.tags or {}
    current = gateway.digests.now()
    if session is None:
        yield Evidence(tags=tags, current=current)
        return
    by_call, issued = session.tags_now()

    def genuine(tag: RetentionTag) -> bool:
        return params.session_id is None or tag in issued

    tags = {name: tag for name, tag in tags.items() if genuine(tag)} | by_call
    with Look(session.roots, session.scope, gateway.volumes, trust=False) as look:
        roots = look.names_only()
        yield Evidence(
            managed=lambda path: _is_managed(gateway, session, path, roots),
            tags=tags,
            genuine=genuine,
            current=current,
        )


def _is_managed(
    gateway: "Gateway", session: Session, raw: str, roots: tuple[RootFacts, ...]
) -> bool:
    """Whether a path, as a call wrote it, leads into managed memory now; what can not be looked at
    does not."""
    try:
        with glance(expand(raw, session.project_root, gateway.home)) as opened:
            return managed(opened.real, roots) is not None
    except (ToolError, OSError):
        return False


def reset(gateway: "Gateway", session_id: str) -> ResetResult:
    """The session forgets what was read and tagged, and says what it was. Raises RpcError for an
    unknown session."""
    session = gateway.sessions.get(session_id)
    return ResetResult([Reread(tag.path, tag.scope, tag.pinned) for tag in session.reset()])
