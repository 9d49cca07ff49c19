"""From a history to a smaller one: read it, see what is preserved, plan, clear."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from pinfold.compaction.formats import FORMATS, Reader
from pinfold.compaction.names import Tools
from pinfold.compaction.planner import Plan, plan
from pinfold.compaction.scan import Evidence, Found, Scan
from pinfold_protocol.compaction import (
    Cleared,
    CompactParams,
    CompactReport,
    CompactResult,
    CompactSettings,
    ResultsTrigger,
    Superseded,
)
from pinfold_protocol.convert import wire_names
from pinfold_protocol.errors import invalid_params

_THRESHOLDS = ("idle_threshold_minutes", "size_threshold_chars", "clear_at_least_chars")
Why = Literal[
    "cleared", "memory", "failed", "cleared before", "nothing to clear", "recent", "not due"
]


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of one item of a history, and why."""

    found: Found
    why: Why


def compact(params: CompactParams, evidence: Evidence | None = None) -> CompactResult:
    """Clear old tool results in a history, and keep those of managed memory.

    `params` as `context/compact` has them; its session and its tags are the caller's to turn into
    evidence. The new history has the same messages in the same order, and shares what was not
    changed. Raises RpcError (-32602) for records that are none, and for a threshold that is none.
    """
    with _no_collections():
        return _result(params, evidence or Evidence())[0]


def examine(
    params: CompactParams, evidence: Evidence | None = None
) -> tuple[CompactResult, list[Verdict]]:
    """The same, with what becomes of each result and piece of media, for people."""
    result, scan, made = _result(params, evidence or Evidence())
    gone = set(made.cleared)
    recent = _recent(scan.found, made)
    return result, [
        Verdict(each, "cleared" if index in gone else _why(each, recent=index in recent))
        for index, each in enumerate(scan.found)
        if each.kind != "other" and not each.pending
    ]


def _recent(found: Sequence[Found], made: Plan) -> set[int]:
    """What stands after the last that was cleared, or would have been."""
    if made.meta is None:
        return set()
    keep = made.meta.keep_recent
    kinds: dict[str, list[int]] = {}
    for index, each in enumerate(found):
        if not (each.preserved or each.pending) and (each.chars or each.media):
            kinds.setdefault(each.kind, []).append(index)
    return {index for window in kinds.values() for index in window[-keep:]}


def _why(found: Found, *, recent: bool) -> Why:
    tests: list[tuple[bool, Why]] = [
        (found.preserved, "memory"),
        (found.error, "failed"),
        (found.cleared, "cleared before"),
        (not (found.chars or found.media), "nothing to clear"),
        (recent, "recent"),
    ]
    return next((why for holds, why in tests if holds), "not due")


@contextmanager
def _no_collections() -> Iterator[None]:
    """Nothing here makes a cycle; but a collector that walks through the whole history each time
    it has grown by some objects makes the time grow faster than the history."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _result(params: CompactParams, evidence: Evidence) -> tuple[CompactResult, Scan, Plan]:
    settings = params.settings or CompactSettings()
    _require_thresholds(settings)
    style = FORMATS[params.format]
    scan = Scan(Tools(settings))
    style.read(params.history, scan)
    if isinstance(params.trigger, ResultsTrigger) and params.trigger.pending is not None:
        _read_pending(params.trigger.pending, style, scan)
    scan.finish(evidence)
    made = plan(scan.found, params.trigger, settings)
    chosen = [scan.found[index] for index in made.cleared]
    result = CompactResult(
        history=_cleared_history(params.history, style, chosen),
        cleared=[_cleared(each) for each in chosen],
        meta=made.meta,
        report=_report(scan, evidence.current),
    )
    return result, scan, made


def _require_thresholds(settings: CompactSettings) -> None:
    """A number that means nothing is a mistake, and would silently switch something off."""
    for name, wire in wire_names(CompactSettings).items():
        value = getattr(settings, name)
        if name in _THRESHOLDS and value is not None and value < 0 and value != -1:
            raise invalid_params(f"settings.{wire}", "must be at least 0, or -1 to switch it off")


def _read_pending(pending: Any, style: Reader, scan: Scan) -> None:
    scan.pending = True
    style.read(pending if isinstance(pending, list) else [pending], scan)


def _cleared_history(history: Sequence[Any], style: Reader, chosen: Sequence[Found]) -> list[Any]:
    cleared = list(history)
    by_message: dict[int, list[Found]] = {}
    for each in chosen:
        by_message.setdefault(each.message, []).append(each)
    for message, found in by_message.items():
        cleared[message] = style.clear(history[message], found)
    return cleared


def _cleared(found: Found) -> Cleared:
    assert found.kind != "other"
    path = found.paths[0] if len(found.paths) == 1 else None
    return Cleared(found.message, found.part, found.kind, found.call_id, path)


def _report(scan: Scan, current: Mapping[str, str]) -> CompactReport:
    preserved = [
        each for each in scan.found if each.preserved and not each.cleared and not each.pending
    ]
    return CompactReport(
        preserved=len(preserved),
        preserved_chars=sum(each.chars for each in preserved),
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
