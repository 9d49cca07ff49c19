"""What a format's reader fills in: calls, results, media, and what it could not make sense of.

A result without a name is taken for the result of the nearest call before it under its id, since
that is where every provider demands it. What was said by no call stays unknown, and alone.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pinfold.compaction.names import BRIDGE, Known, Tools
from pinfold.compaction.planner import Record
from pinfold_protocol.compaction import CLEARED_TEXT, HistoryRecord, LeftAlone
from pinfold_protocol.convert import structure
from pinfold_protocol.errors import RpcError
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag

_UNKNOWN = Known("", clearable=False)
_MIME_CHARS = 128
_BREAKS = re.compile(r"[\r\n\t]+")
_BRACKETS = re.compile(r"[\[\]]")
_META = ("_meta", "meta")
Decode = Callable[[Any], Any]


@attrs.define(eq=False)
class Found:
    """A record and where it stands. `mime` is of a piece of media, `tag` came with the result."""

    record: Record
    message: int
    part: int | None
    mime: str = ""
    tag: RetentionTag | None = None
    bridged: bool = False


@attrs.define(eq=False)
class _Call:
    tool: Known
    path: str | None


@attrs.frozen
class Evidence:
    """What is known of managed memory.

    `managed`: whether a path, as a call wrote it, is in it; asked once for each path. `tags`:
    retention tags by call id. `genuine`: whether a tag that stands in the history counts.
    `current`: digests by real path of what was last read or written.
    """

    managed: Callable[[str], bool] = lambda path: False
    tags: Mapping[str, RetentionTag] = attrs.Factory(dict)
    genuine: Callable[[RetentionTag], bool] = lambda tag: True
    current: Mapping[str, str] = attrs.Factory(dict)


class Scan:
    """One walk through a history. The reader sets `message` (and `pending`) as it goes."""

    def __init__(self, tools: Tools) -> None:
        self.found: list[Found] = []
        self.left_alone: list[LeftAlone] = []
        self.message = 0
        self.pending = False
        self._tools = tools
        self._calls: dict[str, list[_Call]] = {}

    def call(self, call_id: Any, name: Any, arguments: Any, decode: Decode | None = None) -> None:
        """A call. Its arguments are an object, or what `decode` makes one of when it is needed."""
        if type(call_id) is not str or not call_id:
            return
        tool = self._tools.look(name) if isinstance(name, str) else _UNKNOWN
        if tool.argument or tool.name == BRIDGE:
            arguments = decode(arguments) if decode else arguments
        if tool.name == BRIDGE:
            call = self._bridged(arguments)
        else:
            call = _Call(tool, _path(tool, arguments))
        self._calls.setdefault(call_id, []).append(call)

    def _bridged(self, arguments: Any) -> _Call:
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(name, str) or not name:
            return _Call(_UNKNOWN, None)
        tool = self._tools.look(name)
        return _Call(tool, _path(tool, arguments.get("arguments")))

    def result(
        self,
        part: int | None,
        call_id: Any,
        text: str | None,
        *,
        name: str | None = None,
        error: bool = False,
        media: int = 0,
        tag: RetentionTag | None = None,
    ) -> None:
        """A result. `text` is None where it has none that can be cleared."""
        known_id = call_id if isinstance(call_id, str) and call_id else None
        tool = self._tools.look(name) if name is not None else self._called(known_id)
        if tool is None:
            self.leave(part, "a result without a call before it")
            return
        cleared = text == CLEARED_TEXT
        record = Record(
            kind="tool",
            chars=0 if error or cleared or text is None else utf16(text),
            media=media,
            call_id=known_id,
            error=error,
            cleared=cleared,
            pending=self.pending,
        )
        _identify(record, tool)
        bridged = tool.name == BRIDGE
        if record.kind == "other" and record.role != "write" and not bridged:
            return
        self.found.append(Found(record, self.message, part, tag=tag, bridged=bridged))

    def _called(self, call_id: str | None) -> Known | None:
        calls = self._calls.get(call_id) if call_id is not None else None
        return calls[-1].tool if calls else None

    def recorded(self, given: HistoryRecord) -> None:
        """A record that a host made: a result with what its call would tell."""
        if given.tool is None:
            record = Record(kind="media", pending=self.pending, cleared=given.cleared)
            if not given.cleared:
                self.found.append(Found(record, self.message, None))
            return
        tool = self._tools.look(given.tool)
        call_id = given.call_id or None
        if call_id is not None and tool.argument is not None:
            self._calls.setdefault(call_id, []).append(_Call(tool, given.path or None))
        record = Record(
            kind="tool",
            chars=0 if given.error or given.cleared else given.chars,
            media=given.media,
            call_id=call_id,
            error=given.error,
            cleared=given.cleared,
            preserved=given.preserved,
            pending=self.pending,
        )
        _identify(record, tool)
        self.found.append(Found(record, self.message, None, tag=given.tag))

    def media(self, part: int, mime: Any) -> None:
        """A piece of media in a message."""
        record = Record(kind="media", pending=self.pending)
        self.found.append(Found(record, self.message, part, mime=clean_mime(mime)))

    def leave(self, part: int | None, problem: str) -> None:
        """Something whose shape is not known."""
        if not self.pending:
            self.left_alone.append(LeftAlone(self.message, part, problem))

    # What can be said only when all of the history is known

    def finish(self, evidence: Evidence) -> None:
        """Resolve bridged results, and decide what is preserved."""
        managed: dict[str, bool] = {}

        def is_managed(path: str) -> bool:
            if path not in managed:
                managed[path] = evidence.managed(path)
            return managed[path]

        tools_by_id = self._resolve_bridged()
        for each in self.found:
            record = each.record
            if record.kind == "media":
                continue
            if record.call_id is not None and not record.paths:
                record.paths = self._paths(record.call_id)
            by_path = record.role == "read" and record.paths and record.call_id is not None
            if not record.error:
                record.preserved = (
                    record.preserved
                    or _by_tag(each, evidence, is_managed, tools_by_id)
                    or bool(by_path and all(map(is_managed, record.paths)))
                )

    def _resolve_bridged(self) -> dict[str, set[str]]:
        """A bridged result takes the identity of its call, if all calls under its id agree. Gives
        the names of the tools that answered under each id."""
        answered: dict[str, set[str]] = {}
        kept = []
        for each in self.found:
            record = each.record
            if each.bridged:
                self._resolve(record)
                if record.kind == "other" and record.role != "write":
                    continue
            kept.append(each)
            if record.call_id is not None and record.tool is not None:
                answered.setdefault(record.call_id, set()).add(record.tool)
        self.found = kept
        return answered

    def _resolve(self, record: Record) -> None:
        calls = self._calls.get(record.call_id or "", [])
        names = {call.tool.name for call in calls}
        if len(names) == 1 and "" not in names:
            _identify(record, calls[-1].tool)

    def _paths(self, call_id: str) -> tuple[str, ...]:
        calls = self._calls.get(call_id, ())
        if len(calls) == 1:
            path = calls[0].path
            return () if path is None else (path,)
        return tuple(dict.fromkeys(call.path for call in calls if call.path is not None))


def _identify(record: Record, tool: Known) -> None:
    record.tool = tool.name
    record.role = tool.role
    if tool.clearable:
        record.kind = "tool"
    else:
        record.kind = "nested-media" if record.media else "other"


def _by_tag(
    found: Found,
    evidence: Evidence,
    is_managed: Callable[[str], bool],
    tools_by_id: Mapping[str, set[str]],
) -> bool:
    """A tag in the result itself speaks for the result; one by id for what the id stands for, and
    an id that also stands for an ordinary path or for another tool's result says nothing."""
    record = found.record
    if found.tag is not None and found.tag.preserve and evidence.genuine(found.tag):
        return True
    found.tag = evidence.tags.get(record.call_id) if record.call_id is not None else None
    tag = found.tag
    if tag is None or not tag.preserve:
        return False
    if len(tools_by_id.get(record.call_id or "", ())) > 1 and record.role != "read":
        return False
    others = [path for path in record.paths if path != tag.path]
    return len(record.paths) < 2 or all(map(is_managed, others))


def _path(tool: Known, arguments: Any) -> str | None:
    if tool.argument is None or not isinstance(arguments, dict):
        return None
    path = arguments.get(tool.argument)
    return path if isinstance(path, str) and path else None


def utf16(text: str) -> int:
    """The length of a text in UTF-16 units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clean_mime(mime: Any) -> str:
    """A media type as a placeholder names it: one line, no brackets, not long."""
    if not isinstance(mime, str) or not mime:
        return "application/octet-stream"
    return _BRACKETS.sub("", _BREAKS.sub(" ", mime)).strip()[:_MIME_CHARS]


def media_placeholder(mime: str) -> str:
    """What stands where a piece of media was."""
    return f"[Old inline media cleared: {mime}]"


def tag_in(*holders: Any) -> RetentionTag | None:
    """The retention tag that came with a result, in the `_meta` of one of these objects."""
    for holder in holders:
        if type(holder) is not dict:
            continue
        for key in _META:
            meta = holder.get(key)
            raw = meta.get(RETENTION_KEY) if isinstance(meta, dict) else None
            if raw is not None:
                return _as_tag(raw)
    return None


def _as_tag(raw: Any) -> RetentionTag | None:
    try:
        return structure(raw, RetentionTag)
    except RpcError:
        return None
