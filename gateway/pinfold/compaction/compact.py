"""From a history to a smaller one: read it, see what is preserved, plan, clear."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from pinfold.compaction.formats import FORMATS
from pinfold.compaction.names import Tools
from pinfold.compaction.planner import plan
from pinfold.compaction.scan import Evidence, Found, Scan
from pinfold_protocol.compaction import (
    Cleared,
    CompactReport,
    CompactResult,
    CompactSettings,
    Format,
    ResultsTrigger,
    Superseded,
    Trigger,
)


def compact(
    history: Sequence[Any],
    style: Format,
    trigger: Trigger,
    settings: CompactSettings | None = None,
    evidence: Evidence | None = None,
) -> CompactResult:
    """Clear old tool results in a history of that style, and keep those of managed memory.

    The new history has the same messages in the same order, and shares what was not changed.
    Raises RpcError (-32602) for records that are none.
    """
    evidence = evidence or Evidence()
    settings = settings or CompactSettings()
    scan = Scan(Tools(settings))
    FORMATS[style].read(history, scan)
    if isinstance(trigger, ResultsTrigger) and trigger.pending is not None:
        _read_pending(trigger.pending, style, scan)
    scan.finish(evidence)
    made = plan([each.record for each in scan.found], trigger, settings)
    chosen = [scan.found[index] for index in made.cleared]
    return CompactResult(
        history=_cleared_history(history, style, chosen),
        cleared=[_cleared(each) for each in chosen],
        meta=made.meta,
        report=_report(scan, evidence.current),
    )


def _read_pending(pending: Any, style: Format, scan: Scan) -> None:
    scan.pending = True
    FORMATS[style].read(pending if isinstance(pending, list) else [pending], scan)


def _cleared_history(history: Sequence[Any], style: Format, chosen: Sequence[Found]) -> list[Any]:
    cleared = list(history)
    in_order = sorted(chosen, key=lambda each: each.message)
    for message, found in groupby(in_order, key=lambda each: each.message):
        cleared[message] = FORMATS[style].clear(history[message], list(found))
    return cleared


def _cleared(found: Found) -> Cleared:
    record = found.record
    assert record.kind != "other"
    path = record.paths[0] if len(record.paths) == 1 else None
    return Cleared(found.message, found.part, record.kind, record.call_id, path)


def _report(scan: Scan, current: Mapping[str, str]) -> CompactReport:
    preserved = [
        each
        for each in scan.found
        if each.record.preserved and not each.record.cleared and not each.record.pending
    ]
    return CompactReport(
        preserved=len(preserved),
        preserved_chars=sum(each.record.chars for each in preserved),
        superseded=_superseded(preserved, current),
        left_alone=scan.left_alone,
    )


def _superseded(preserved: Sequence[Found], current: Mapping[str, str]) -> list[Superseded]:
    """Reads whose bytes are not the newest that is known of their file."""
    newest = {
        each.tag.path: each.tag.sha256
        for each in preserved
        if each.tag is not None and each.tag.sha256 is not None
    } | dict(current)
    return [
        Superseded(each.message, each.part, tag.path, tag.sha256, newest[tag.path])
        for each in preserved
        if (tag := each.tag) is not None and tag.sha256 is not None
        if newest[tag.path] != tag.sha256
    ]
