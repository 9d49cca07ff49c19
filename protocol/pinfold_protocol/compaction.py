"""Compaction: what a host asks for and what it gets back (section 6 of the contract).

Lengths are UTF-16 units, as the hosts count that this was observed of.
"""

from typing import Any, ClassVar, Literal

from pinfold_protocol.retention import RetentionTag
from pinfold_protocol.wire import Wire

Format = Literal["gemini", "openai", "anthropic", "records"]
ClearedKind = Literal["tool", "nested-media", "media"]
Reason = Literal["idle", "force", "size"]
Names = list[str] | Literal["*"]

CLEARED_TEXT = "[Old tool result content cleared]"


class TurnTrigger(Wire, frozen=True):
    """Before a user message: the idle rule, else the size rule.

    `idle_seconds`: since the last request to the model was answered; null if none was yet.
    """

    idle_seconds: float | None = None
    kind: Literal["turn"] = "turn"


class ResultsTrigger(Wire, frozen=True):
    """Before tool results are sent back: the size rule. `pending` is what is about to be sent, one
    message or a list of them, in the format of the history; it counts, and is never cleared."""

    pending: Any = None
    kind: Literal["results"] = "results"


class ForceTrigger(Wire, frozen=True):
    """On request: everything that is not recent goes, whatever the thresholds."""

    kind: Literal["force"] = "force"


class PressureTrigger(Wire, frozen=True):
    """The host is short of memory: the idle rule at any gap, else the size rule."""

    kind: Literal["pressure"] = "pressure"


Trigger = TurnTrigger | ResultsTrigger | ForceTrigger | PressureTrigger


class CompactSettings(Wire, frozen=True):
    """What to keep. A null member has its default; a threshold of -1 is disabled.

    `keep_recent` (5): how many results stay whatever happens. `idle_threshold_minutes` (60).
    `size_threshold_chars` (500,000; disabled where it is null and the idle threshold is negative).
    `clear_at_least_chars` (0): do nothing unless that much goes, 6,400 for each piece of media.
    `preserved_counts` (false): whether preserved text counts toward the size threshold and its low
    watermark. `clearable`: the names of the tools whose results may go, `"*"` for all. `reads`: the
    tools that read a file, and the argument that holds its path.
    """

    keep_recent: int | None = None
    idle_threshold_minutes: float | None = None
    size_threshold_chars: float | None = None
    clear_at_least_chars: int | None = None
    preserved_counts: bool | None = None
    clearable: Names | None = None
    reads: dict[str, str] | None = None


class HistoryRecord(Wire, frozen=True):
    """One item of a history in the format `"records"`: one tool result, or one piece of media.

    `tool` is null for media in a message. `chars` is the length of the text, `media` the number of
    media parts in a result. `tag` is the retention tag that came with the result.
    """

    tool: str | None = None
    call_id: str | None = None
    path: str | None = None
    chars: int = 0
    media: int = 0
    error: bool = False
    cleared: bool = False
    preserved: bool = False
    tag: RetentionTag | None = None


class CompactParams(Wire, frozen=True):
    """`context/compact`. `history` is a list in the given format; `tags` maps the ids of calls to
    the retention tags that came with their results."""

    format: Format
    history: list[Any]
    trigger: Trigger
    session_id: str | None = None
    settings: CompactSettings | None = None
    tags: dict[str, RetentionTag] | None = None


class Cleared(Wire, frozen=True):
    """One thing that was cleared, by index in the history; `part` is null where a message is one
    result. `path` is there where the history records exactly one for it."""

    omitted: ClassVar[tuple[str, ...]] = ("call_id", "path")

    message: int
    part: int | None
    kind: ClearedKind
    call_id: str | None = None
    path: str | None = None


class CompactMeta(Wire, frozen=True):
    """What the rule did. `evicted_paths` lists files of which a result went, as the calls wrote
    them, but for those that a kept write of the whole file still shows; `unresolved_evictions`
    counts results whose path is not known. `tokens_saved` is an estimate: a quarter of the
    characters, and 1600 for a piece of media.

    Only the size rule has the characters: of all that counts, before (with what is pending) and
    after (without it), and of what is pending.
    """

    omitted: ClassVar[tuple[str, ...]] = ("chars_before", "chars_after", "chars_pending")

    reason: Reason
    tools_cleared: int
    tools_kept: int
    media_cleared: int
    media_kept: int
    keep_recent: int
    tokens_saved: int
    evicted_paths: list[str]
    unresolved_evictions: int
    chars_before: int | None = None
    chars_after: int | None = None
    chars_pending: int | None = None


class Superseded(Wire, frozen=True):
    """A preserved read that is no longer what its file holds, as far as is known: `sha256` is of
    what was read, `current` of what was read or written last."""

    message: int
    part: int | None
    path: str
    sha256: str
    current: str


class LeftAlone(Wire, frozen=True):
    """Something in the history whose shape is not known, and what about it."""

    message: int
    part: int | None
    problem: str


class CompactReport(Wire, frozen=True):
    """For whoever wants to know: how many results were preserved and how long their text is, which
    of them are out of date, and what was left alone because its shape is not known."""

    preserved: int
    preserved_chars: int
    superseded: list[Superseded]
    left_alone: list[LeftAlone]


class CompactResult(Wire, frozen=True):
    """The answer to `context/compact`. `meta` is null where no rule triggered."""

    history: list[Any]
    cleared: list[Cleared]
    meta: CompactMeta | None
    report: CompactReport


class Reread(Wire, frozen=True):
    """A document of managed memory that the session had read. `path` is the real path."""

    path: str
    scope: Literal["project", "user", "team"]
    pinned: bool


class ResetResult(Wire, frozen=True):
    """The answer to `context/reset`: what the session had read of managed memory, oldest first."""

    reread: list[Reread]
