"""Which old results go. Pure, over neutral records; where they stand is the formats' affair.

Observed rules, with their edge cases: a result that failed, was cleared before or is preserved is
never cleared; the most recent ones stay; the size rule clears from the oldest on, down to half of
its threshold. Two things differ from what was observed, and can be had as observed: preserved
text does not count (`preserved_counts`), and a gain may be demanded (`clear_at_least_chars`).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from pinfold_protocol.compaction import (
    CompactMeta,
    CompactSettings,
    ForceTrigger,
    PressureTrigger,
    Reason,
    ResultsTrigger,
    Trigger,
    TurnTrigger,
)

KEEP_RECENT = 5
IDLE_MINUTES = 60.0
SIZE_CHARS = 500_000.0
MEDIA_TOKENS = 1600
_CHARS_A_TOKEN = 4

Kind = Literal["tool", "nested-media", "media", "other"]
Role = Literal["read", "edit", "write"]


class Record(msgspec.Struct, eq=False):
    """One result or piece of media of a history, in the history's order.

    `kind`: a clearable tool's result; another result with media in it; media in a message; or a
    result that is never cleared and is only here because a write of it keeps its path's text.
    `chars`: UTF-16 units of its text; 0 where there is none to clear, and of a failure or what was
    cleared before. `media`: media parts inside; 1 for a piece of media.
    `paths`: all that the history records under its id. `role`: what its tool does with a path.
    """

    kind: Kind
    chars: int = 0
    media: int = 0
    call_id: str | None = None
    tool: str | None = None
    role: Role | None = None
    paths: tuple[str, ...] = ()
    error: bool = False
    cleared: bool = False
    preserved: bool = False
    pending: bool = False


class Plan(msgspec.Struct, frozen=True):
    """`cleared` are indices into the records, ascending; `meta` is None where no rule triggered."""

    cleared: tuple[int, ...]
    meta: CompactMeta | None


class _Rules(msgspec.Struct, frozen=True):
    """The settings with their defaults."""

    keep: int
    idle_minutes: float
    size: float
    at_least: int
    preserved_counts: bool


_NOTHING = Plan((), None)


def plan(records: Sequence[Record], trigger: Trigger, settings: CompactSettings) -> Plan:
    """What to clear. Planning the outcome again under the same trigger clears nothing more."""
    rules = _rules(settings)
    reason = _reason(trigger, rules)
    return _by_size(records, rules) if reason == "size" else _by_age(records, rules, reason)


def _rules(given: CompactSettings) -> _Rules:
    idle = IDLE_MINUTES if given.idle_threshold_minutes is None else given.idle_threshold_minutes
    size = given.size_threshold_chars
    if size is None:  # whoever switches off the one means both
        size = -1.0 if idle < 0 else SIZE_CHARS
    keep = KEEP_RECENT if given.keep_recent is None else given.keep_recent
    return _Rules(
        keep=max(1, keep),
        idle_minutes=idle,
        size=size,
        at_least=given.clear_at_least_chars or 0,
        preserved_counts=bool(given.preserved_counts),
    )


def _reason(trigger: Trigger, rules: _Rules) -> Reason:
    """There is no way from idle to size: an idle turn with nothing to clear ends there."""
    match trigger:
        case ForceTrigger():
            return "force"
        case ResultsTrigger():
            return "size"
        case PressureTrigger():
            return "idle" if rules.idle_minutes >= 0 else "size"
        case TurnTrigger(idle_seconds=seconds):
            if seconds is None or rules.idle_minutes < 0:
                return "size"
            # In milliseconds, as observed: no rounding may decide.
            return "idle" if seconds * 1000 >= rules.idle_minutes * 60_000 else "size"


# By age: idle, force, pressure


def _by_age(records: Sequence[Record], rules: _Rules, reason: Reason) -> Plan:
    """Three windows of recent ones; what fails or was cleared uses a slot only with media in it."""
    windows: dict[Kind, list[int]] = {"tool": [], "nested-media": [], "media": [], "other": []}
    for index, record in enumerate(records):
        if not (record.preserved or record.pending) and (record.chars or record.media):
            windows[record.kind].append(index)
    tools, nested, media = windows["tool"], windows["nested-media"], windows["media"]
    old = [index for window in (tools, nested, media) for index in window[: -rules.keep]]
    cleared = sorted(index for index in old if not (records[index].error or records[index].cleared))
    if not _worth_it(records, cleared, rules):
        return _NOTHING
    media_kept = min(len(media) + len(nested), rules.keep)
    return Plan(
        tuple(cleared),
        _meta(records, cleared, rules, reason, (tools[-rules.keep :], media_kept)),
    )


# By size


def _by_size(records: Sequence[Record], rules: _Rules) -> Plan:
    if rules.size < 0:
        return _NOTHING
    counting = [
        index
        for index, record in enumerate(records)
        if record.kind == "tool" and record.chars
        if rules.preserved_counts or not record.preserved
    ]
    before = sum(records[index].chars for index in counting)
    if before <= rules.size:
        return _NOTHING
    pending = sum(records[index].chars for index in counting if records[index].pending)
    ours = [index for index in counting if not (records[index].preserved or records[index].pending)]
    cleared = _down_to(records, ours[: -rules.keep], before, math.floor(rules.size / 2))
    if not _worth_it(records, cleared, rules):
        cleared = []
    gained = sum(records[index].chars for index in cleared)
    meta = msgspec.structs.replace(
        _meta(records, cleared, rules, "size", (ours[-rules.keep :], 0)),
        chars_before=before,
        chars_after=before - gained - pending,
        chars_pending=pending,
    )
    return Plan(tuple(cleared), meta)


def _down_to(
    records: Sequence[Record], candidates: Iterable[int], total: int, watermark: int
) -> list[int]:
    """From the oldest on, until the total is at the watermark."""
    cleared = []
    for index in candidates:
        if total <= watermark:
            break
        total -= records[index].chars
        cleared.append(index)
    return cleared


# Both


def _worth_it(records: Sequence[Record], cleared: Sequence[int], rules: _Rules) -> bool:
    if not rules.at_least:
        return bool(cleared)
    chars = sum(records[index].chars for index in cleared if records[index].kind == "tool")
    media = sum(records[index].media for index in cleared)
    return bool(cleared) and chars + media * MEDIA_TOKENS * _CHARS_A_TOKEN >= rules.at_least


def _meta(
    records: Sequence[Record],
    cleared: Sequence[int],
    rules: _Rules,
    reason: Reason,
    kept: tuple[Sequence[int], int],
) -> CompactMeta:
    gone = [records[index] for index in cleared]
    tools = sum(record.kind == "tool" for record in gone)
    evicted, unresolved = _evictions(records, cleared, kept[0])
    return CompactMeta(
        reason=reason,
        tools_cleared=tools,
        tools_kept=len(kept[0]),
        media_cleared=len(gone) - tools,
        media_kept=kept[1],
        keep_recent=rules.keep,
        tokens_saved=sum(_tokens(record) for record in gone),
        evicted_paths=evicted,
        unresolved_evictions=unresolved,
    )


def _tokens(record: Record) -> int:
    """An estimate of what it takes in a request; as observed, also where the text stays."""
    return -(-record.chars // _CHARS_A_TOKEN) + MEDIA_TOKENS * record.media


def _evictions(
    records: Sequence[Record], cleared: Sequence[int], kept: Sequence[int]
) -> tuple[list[str], int]:
    """Paths whose text went, and how many results went that have none. A write that stays still
    has the text of its path."""
    stays = set(kept)
    written = {
        record.paths[0]
        for index, record in enumerate(records)
        if record.role == "write" and len(record.paths) == 1
        if index in stays or record.kind == "other"
        if not (record.error or record.cleared or record.pending)
    }
    evicted: dict[str, None] = {}
    unresolved = 0
    seen: set[int] = set()  # results under one id have the same, perhaps many, paths
    for index in cleared:
        record = records[index]
        if record.role is None or record.kind != "tool":
            continue
        unresolved += not record.paths
        if id(record.paths) not in seen:
            seen.add(id(record.paths))
            evicted.update((path, None) for path in record.paths if path not in written)
    return list(evicted), unresolved
