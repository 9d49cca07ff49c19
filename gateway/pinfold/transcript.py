"""`pinfold compact`: a history in a file, in the shapes that people have on their disks."""

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pinfold.compaction import Verdict
    from pinfold_protocol.compaction import CompactResult

_MEMBERS = ("messages", "contents", "input", "history")
_WRAPPERS = ("message", "payload")
_SHOWN = 400
"""How many lines of a summary are drawn."""


class Unreadable(Exception):
    """The file holds no history; the text says why, and where."""


class Transcript(msgspec.Struct, frozen=True):
    """A history, and what it stood in: `envelope` is the object around the list and `member` the
    list's name in it; `lines` are the objects of JSON Lines, whose messages may be wrapped once
    more (`{message: {…}}`, `{payload: {…}}`); `at` says which lines had one."""

    history: list[Any]
    envelope: dict[str, Any] | None = None
    member: str = ""
    lines: list[Any] | None = None
    at: tuple[int, ...] = ()

    def dump(self, history: Sequence[Any]) -> str:
        """The file's text with this history in place of its own."""
        if self.lines is None:
            whole = history if self.envelope is None else {**self.envelope, self.member: history}
            return _text(whole, indent=2) + "\n"
        lines = list(self.lines)
        for line, message in zip(self.at, history, strict=True):
            wrap = _wrapper(lines[line])
            lines[line] = {**lines[line], wrap: message} if wrap else message
        return "".join(f"{_text(line)}\n" for line in lines)


def load(path: str) -> Transcript:
    """Read a file, or standard input for `-`: a list of messages, an object that holds one as
    `messages`, `contents`, `input` or `history`, or JSON Lines. Raises Unreadable."""
    try:
        if path == "-":
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        else:
            with open(path, "rb") as file:
                text = file.read().decode("utf-8-sig")
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: not UTF-8 (byte {error.start})") from None
    return _parse(path, text)


def _parse(path: str, text: str) -> Transcript:
    try:
        value = _loads(text)
    except (ValueError, RecursionError) as error:
        return _parse_lines(path, text, error)
    if isinstance(value, list):
        return Transcript(value)
    for member in _MEMBERS:
        if isinstance(value, dict) and isinstance(value.get(member), list):
            return Transcript(value[member], envelope=value, member=member)
    return _from_lines(path, [value])


def _parse_lines(path: str, text: str, error: Exception) -> Transcript:
    lines: list[Any] = []
    for number, row in enumerate(text.split("\n"), 1):
        if not row.strip():
            continue
        try:
            lines.append(_loads(row))
        except (ValueError, RecursionError) as inner:
            # One value over several lines is meant as JSON, and then the first error tells more.
            raise Unreadable(_where(path, error if not lines else inner, number)) from None
    if not lines:
        raise Unreadable(f"{path}: empty")
    return _from_lines(path, lines)


def _from_lines(path: str, lines: list[Any]) -> Transcript:
    at = tuple(i for i, line in enumerate(lines) if _wrapper(line) or _is_message(line))
    if not at:
        names = ", ".join(_MEMBERS)
        raise Unreadable(
            f"{path}: no list of messages, no object with one ({names}), no lines of messages"
        )
    history = [lines[i][wrap] if (wrap := _wrapper(lines[i])) else lines[i] for i in at]
    return Transcript(history, lines=lines, at=at)


def _loads(text: str) -> Any:
    """JSON, and nothing that is not: a number that no double holds would come back as Infinity."""
    return json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is no number that can be written again")
    return value


def _where(path: str, error: Exception, line: int) -> str:
    if isinstance(error, json.JSONDecodeError):
        line = error.lineno if error.lineno > 1 else line
        return f"{path}: not JSON: {error.msg} (line {line}, column {error.colno})"
    problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"{path}: not usable: {problem} (line {line})"


def _wrapper(line: Any) -> str | None:
    """The member of a transcript's line that holds the message, where it is not one itself."""
    if not isinstance(line, dict) or "role" in line:
        return None
    return next((name for name in _WRAPPERS if isinstance(line.get(name), dict)), None)


def _is_message(line: Any) -> bool:
    return isinstance(line, dict) and bool({"role", "parts", "call_id", "tool"} & set(line))


def _text(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate is JSON only when it is escaped
        text = json.dumps(value, indent=indent)
    return text


# What people see

_MARKS = {
    "cleared": ("✂", "red"),
    "memory": ("●", "bold green"),
    "recent": ("·", "cyan"),
}
_WHY = {
    "cleared": "cleared",
    "memory": "kept: managed memory",
    "recent": "kept: recent",
    "failed": "kept: a failure",
    "cleared before": "cleared before",
    "nothing to clear": "kept: nothing to clear",
    "not due": "kept: not due",
}


def draw(result: "CompactResult", verdicts: Sequence["Verdict"]) -> None:
    """What goes, what stays, and why."""
    from rich.table import Table
    from rich.text import Text

    from pinfold.terminal import console, shown

    out = console()
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim")
    for overflow in ("fold", "fold"):
        table.add_column(overflow=overflow)
    table.add_column(justify="right", style="dim")
    table.add_column()
    for verdict in verdicts[:_SHOWN]:
        found = verdict.found
        mark, style = _MARKS.get(verdict.why, ("·", "dim"))
        place = str(found.message) if found.part is None else f"{found.message}.{found.part}"
        size = f"{found.chars:,}" if found.kind == "tool" else (found.mime or "media")
        table.add_row(
            f"  {place}",
            Text(mark + " ", style) + shown(found.tool or "media"),
            shown(", ".join(found.paths)),
            shown(size),
            Text(_WHY[verdict.why], style if verdict.why in _MARKS else "dim"),
        )
    out.print(table)
    if len(verdicts) > _SHOWN:
        out.print(f"  … and {len(verdicts) - _SHOWN:,} more")
    out.print(Text("  " + summary(result), "bold"))
    if doubt := doubts(result, verdicts):
        out.print(Text("  " + doubt, "yellow"))
    for each in result.report.superseded:
        out.print(shown(f"  message {each.message}: {each.path} has changed since", "yellow"))
    for alone in result.report.left_alone[:_SHOWN]:
        out.print(shown(f"  message {alone.message}: left alone: {alone.problem}", "yellow"))


def summary(result: "CompactResult") -> str:
    """One line: what was done."""
    report, meta = result.report, result.meta
    kept = f"{report.preserved:,} kept as memory ({report.preserved_chars:,} characters)"
    alone = f"; {len(report.left_alone):,} left alone" if report.left_alone else ""
    if meta is None:
        return f"Nothing to clear; {kept}{alone}."
    cleared = f"{meta.tools_cleared:,} results cleared"
    media = f", {meta.media_cleared:,} pieces of media" if meta.media_cleared else ""
    return f"{cleared}{media}, {kept}; saves about {meta.tokens_saved:,} tokens{alone}."


def doubts(result: "CompactResult", verdicts: Sequence["Verdict"]) -> str | None:
    """Where nothing was found to decide on: what the reason may be."""
    if verdicts or not result.history:
        return None
    return "No result of a tool that may be cleared is in it: are --format and --host right?"
