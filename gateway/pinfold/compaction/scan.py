"""What a format's reader fills in: calls, results, media, and what it could not make sense of.

A result without a name is taken for the result of the nearest call before it under its id, since
that is where every provider demands it. What was said by no call stays unknown, and alone.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pinfold.compaction.names import BRIDGE, UNKNOWN, Known, Tools
from pinfold.compaction.planner import Record
from pinfold_protocol.compaction import CLEARED_TEXT, HistoryRecord, LeftAlone
from pinfold_protocol.convert import structure
from pinfold_protocol.errors import RpcError
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag

_MIME_CHARS = 128
_BREAKS = re.compile(r"[\r\n\t]+")
_BRACKETS = re.compile(r"[\[\]]")
Decode = Callable[[Any], Any]


class Found(Record, eq=False):
    """A record, and where it stands. `mime` is of a piece of media, `tag` came with the result."""

    message: int = 0
    part: int | None = None
    tag: RetentionTag | None = None
    mime: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """What is known of managed memory.

    `managed`: whether a path, as a call wrote it, is in it; asked once for each path. `tags`:
    retention tags by call id. `genuine`: whether a tag that stands in the history counts.
    `current`: digests by real path of what was last read or written.
    """

    managed: Callable[[str], bool] = lambda path: False
    tags: Mapping[str, RetentionTag] = msgspec.field(default_factory=dict)
    genuine: Callable[[RetentionTag], bool] = lambda tag: True
    current: Mapping[str, str] = msgspec.field(default_factory=dict)


class Scan:
    """One walk through a history. The reader sets `message` (and `pending`) as it goes."""

    def __init__(self, tools: Tools) -> None:
        self.found: list[Found] = []
        self.left_alone: list[LeftAlone] = []
        self.message = 0
        self.pending = False
        self._tools = tools
        self._last: dict[str, Known] = {}  # by call id: the tool that was called last under it
        self._paths: dict[str, dict[str, None]] = {}
        self._answering: dict[str, str] = {}  # by call id: the tool of its first result
        self._several: set[str] = set()  # ids under which results of several tools stand
        self._mixed: set[str] = set()  # ids under which several tools were called

    def call(self, call_id: Any, name: Any, arguments: Any, decode: Decode | None = None) -> None:
        """A call. Its arguments are an object, or what `decode` makes one of when it is needed."""
        if type(call_id) is not str or not call_id:
            return
        tool = self._tools[name] if type(name) is str else UNKNOWN
        path = None
        if tool.looked_at:
            if decode is not None:
                arguments = decode(arguments)
            if tool.name == BRIDGE:
                tool, arguments = self._bridged(arguments)
            path = _path(tool, arguments)
        self._called(call_id, tool, path)

    def _bridged(self, arguments: Any) -> tuple[Known, Any]:
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(name, str) or not name:
            return UNKNOWN, None
        return self._tools[name], arguments.get("arguments")

    def _called(self, call_id: str, tool: Known, path: str | None) -> None:
        if self._last.setdefault(call_id, tool).name != tool.name:
            self._mixed.add(call_id)
        self._last[call_id] = tool
        if path is not None:
            self._paths.setdefault(call_id, {})[path] = None

    def result(
        self,
        part: int | None,
        call_id: Any,
        text: str | None,
        name: str | None = None,
        error: bool = False,
        media: int = 0,
        tag: RetentionTag | None = None,
    ) -> None:
        """A result. `text` is None where it has none that can be cleared."""
        if type(call_id) is not str or not call_id:
            call_id = None
        tool = self._last.get(call_id) if name is None else self._tools[name]
        if tool is None:
            self.leave(part, "a result without a call before it")
            return
        cleared = text == CLEARED_TEXT
        found = Found(tool.kind, 0, media, call_id, tool.name, tool.role)
        if not (error or cleared or text is None):
            found.chars = utf16(text)
        found.error, found.cleared, found.pending = error, cleared, self.pending
        found.message, found.part, found.tag = self.message, part, tag
        self._add(tool, found)

    def recorded(self, given: HistoryRecord) -> None:
        """A record that a host made: a result with what its call would tell."""
        if given.tool is None:
            if not given.cleared:
                self._media(None, "")
            return
        tool = self._tools[given.tool]
        call_id = given.call_id or None
        path = given.path or None if tool.arguments else None
        if call_id is not None:
            self._called(call_id, tool, path)
        record = Found(
            tool.kind,
            chars=0 if given.error or given.cleared else given.chars,
            media=given.media,
            call_id=call_id,
            tool=tool.name,
            role=tool.role,
            paths=() if path is None else (path,),  # it counts for others by its id only
            error=given.error,
            cleared=given.cleared,
            preserved=given.preserved and not given.error,
            pending=self.pending,
            message=self.message,
            tag=given.tag,
        )
        self._add(tool, record)

    def _add(self, tool: Known, found: Found) -> None:
        if found.call_id is not None:
            first = self._answering.setdefault(found.call_id, tool.name)
            if first != tool.name:
                self._several.add(found.call_id)
        if found.kind == "other" and found.media:
            found.kind = "nested-media"
        if found.kind != "other" or tool.role == "write" or tool.name == BRIDGE:
            self.found.append(found)

    def media(self, part: int, mime: Any) -> None:
        """A piece of media in a message."""
        self._media(part, clean_mime(mime))

    def _media(self, part: int | None, mime: str) -> None:
        self.found.append(
            Found(
                "media", media=1, pending=self.pending, message=self.message, part=part, mime=mime
            )
        )

    def leave(self, part: int | None, problem: str) -> None:
        """Something whose shape is not known."""
        if not self.pending:
            self.left_alone.append(LeftAlone(self.message, part, problem))

    # What can be said only when all of the history is known

    def finish(self, evidence: Evidence) -> None:
        """Give bridged results their identity, and decide what is preserved."""
        if any(each.tool == BRIDGE for each in self.found):
            self.found = [each for each in self.found if each.tool != BRIDGE or self._resolve(each)]
        judge = _Judge(self._paths, evidence)
        for each in self.found:
            paths = judge.paths.get(each.call_id or "")
            if paths is not None:
                each.paths = paths
            if each.error or each.kind == "media":
                continue
            if each.role == "read" and paths is not None and judge.all_managed(each):
                each.preserved = True
            if each.tag is not None or judge.has_tags:
                alone = each.call_id not in self._several or each.role == "read"
                each.preserved |= judge.by_tag(each, by_id=alone)

    def _resolve(self, found: Found) -> bool:
        """A bridged result takes the identity of its call, if all calls under its id agree.
        Whether it is of any interest then."""
        call_id = found.call_id
        if call_id in self._last and call_id not in self._mixed:
            tool = self._last[call_id]
            if tool is not UNKNOWN:
                found.tool, found.role = tool.name, tool.role
                found.kind = "nested-media" if tool.kind == "other" and found.media else tool.kind
        return found.kind != "other" or found.role == "write"


class _Judge:
    """What the evidence says of a result. Every path, and every id, is judged once."""

    def __init__(self, paths: Mapping[str, Mapping[str, None]], evidence: Evidence) -> None:
        self.paths = {call_id: tuple(each) for call_id, each in paths.items()}
        self.has_tags = bool(evidence.tags)
        self._evidence = evidence
        self._managed: dict[str, bool] = {}
        self._ids: dict[str, bool] = {}
        self._tagged: dict[str, bool] = {}

    def _is_managed(self, path: str) -> bool:
        if path not in self._managed:
            self._managed[path] = self._evidence.managed(path)
        return self._managed[path]

    def all_managed(self, found: Found) -> bool:
        """Whether every path under its id leads into managed memory."""
        call_id = found.call_id or ""
        if call_id not in self._ids:
            self._ids[call_id] = all(map(self._is_managed, found.paths))
        return self._ids[call_id]

    def by_tag(self, found: Found, *, by_id: bool) -> bool:
        """A tag in the result itself speaks for the result. One by id speaks for what the id
        stands for; an id that also stands for an ordinary path, or for another tool, says
        nothing."""
        evidence = self._evidence
        if found.tag is not None and found.tag.preserve and evidence.genuine(found.tag):
            return True
        found.tag = None
        if found.call_id is None or not by_id:
            return False
        found.tag = tag = evidence.tags.get(found.call_id)
        if tag is None or not tag.preserve:
            return False
        if len(found.paths) < 2:  # the tag tells what was read, whatever the path means by now
            return True
        return self._speaks_for(found.call_id, tag, found.paths)

    def _speaks_for(self, call_id: str, tag: RetentionTag, paths: tuple[str, ...]) -> bool:
        """Whether every path under an id is the tag's, or leads into memory now."""
        if call_id not in self._tagged:
            own = (path == tag.path or self._is_managed(path) for path in paths)
            self._tagged[call_id] = all(own)
        return self._tagged[call_id]


def _path(tool: Known, arguments: Any) -> str | None:
    if type(arguments) is not dict:
        return None
    given = (arguments.get(name) for name in tool.arguments)
    return next((path for path in given if type(path) is str and path), None)


def utf16(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text) if text.isascii() else len(_as_utf16(text)) // 2


def _as_utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def clean_mime(mime: Any) -> str:
    """A media type as a placeholder names it: one line, no brackets, not long."""
    if not isinstance(mime, str):
        return "application/octet-stream"
    line = _BRACKETS.sub("", _BREAKS.sub(" ", mime)).strip()
    return _as_utf16(line)[: 2 * _MIME_CHARS].decode("utf-16-le", "ignore")


def media_placeholder(mime: str) -> str:
    """What stands where a piece of media was."""
    return f"[Old inline media cleared: {mime}]"


def tag_in(*holders: Any) -> RetentionTag | None:
    """The retention tag that came with a result, in the `_meta` of one of these objects."""
    for holder in holders:
        if type(holder) is dict and "_meta" in holder:
            meta = holder["_meta"]
            if isinstance(meta, dict) and RETENTION_KEY in meta:
                return _as_tag(meta[RETENTION_KEY])
    return None


def _as_tag(raw: Any) -> RetentionTag | None:
    try:
        return structure(raw, RetentionTag)
    except RpcError:
        return None
