"""Lines: LF, CRLF and CR end one, and nothing else does. A line includes its ending."""

import re
from bisect import bisect_left

import msgspec

from pinfold_protocol.tools import LineEnding

_ENDING = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BLOCK = 4096
_ENDINGS: tuple[LineEnding, ...] = ("lf", "crlf", "cr")


def split_lines(text: str) -> list[str]:
    """The lines of a text, with their endings."""
    return _LINE.findall(text)


def endings(text: str) -> list[str]:
    """The line endings of a text, in order."""
    return _ENDING.findall(text)


def line_ending(text: str) -> LineEnding | None:
    """What ends the lines of a text; None where nothing does."""
    if "\r" not in text:
        return "lf" if "\n" in text else None
    both = text.count("\r\n")
    counts = {"crlf": both, "cr": text.count("\r") - both, "lf": text.count("\n") - both}
    found: list[LineEnding] = [name for name in _ENDINGS if counts[name]]
    if not found:
        return None
    return found[0] if len(found) == 1 else "mixed"


def normalize(text: str) -> str:
    """Every ending as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def number_of(text: str, index: int) -> int:
    """The number (from 0) of the line that character `index` is in."""
    return normalize(text[:index]).count("\n")


class NormalizedView:
    """A text with every ending as `\\n`, and the way back to the original's indices."""

    def __init__(self, original: str) -> None:
        self.text = normalize(original)
        self._double: list[int] = []
        if "\r\n" in original:
            hits = re.finditer("\r\n", original)
            self._double = [hit.start() - count for count, hit in enumerate(hits)]

    def original_index(self, index: int) -> int:
        """Where character `index` of the view stands in the original."""
        return index + bisect_left(self._double, index)


class Selection(msgspec.Struct, frozen=True):
    """A part of a text for reading; numbers as in `pinfold/details` of a read. `line_length`: how
    many characters the first line has, where there are too few for the column that was asked for.
    """

    text: str
    start_line: int
    end_line: int
    total_lines: int | None
    truncated: bool
    next_offset: int | None
    next_column: int | None
    line_length: int | None = None


class Window(msgspec.Struct, frozen=True):
    """What to read: lines from `offset`, `limit` of them, from `column` of the first."""

    offset: int
    limit: int | None
    column: int
    max_lines: int
    max_bytes: int


def select(text: str, window: Window) -> Selection:
    """Cut `window` out of a normalized text (only `\\n` ends lines)."""
    total = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    if _shows_all(window, len(text), total):
        return Selection(text, 0, total, total, False, None, None)
    first = min(window.offset, total)
    start = _line_start(text, 0, first)
    line_end = _line_start(text, start, 1)
    if text[start:line_end].endswith("\n"):
        line_end -= 1
    length = line_end - start
    start = min(start + window.column, line_end)
    count = window.max_lines if window.limit is None else window.limit
    end = len(text) if first + count >= total else _line_start(text, start, count)
    if window.limit is None:
        end = _fit(text, start, end, window.max_bytes)
    shown = text[start:end]
    breaks = shown.count("\n")
    last = first + breaks + (1 if shown and not shown.endswith("\n") else 0)
    short = too_short(window, length, shown)
    if end >= len(text):
        return Selection(shown, first, last, total, False, None, None, short)
    inside = 0 if shown.endswith("\n") or not shown else end - (text.rfind("\n", 0, end) + 1)
    following = first + breaks
    cut = window.limit is None
    return Selection(shown, first, last, total, cut, following, inside, short)


def too_short(window: Window, length: int, shown: str) -> int | None:
    """The `length` of the first line if it has no such column. Right behind its last character its
    ending can be read, where it has one. None as well where there is no such line."""
    there = length or shown or not window.offset
    past = window.column > length or (window.column == length > 0 and not shown)
    return length if there and past else None


def _shows_all(window: Window, length: int, lines: int) -> bool:
    """Whether a window surely shows a text of so many characters and lines whole."""
    if window.offset or window.column:
        return False
    if window.limit is not None:
        return lines <= window.limit
    return lines <= window.max_lines and length * 4 <= window.max_bytes


def _line_start(text: str, index: int, lines: int) -> int:
    """Where the line `lines` after the one at `index` begins; the end if there are not so many."""
    while lines > _BLOCK:  # whole blocks at the speed of counting
        end = index + _BLOCK
        lines -= text.count("\n", index, end)
        index = end
        if index >= len(text):
            return len(text)
    for _ in range(lines):
        newline = text.find("\n", index)
        if newline < 0:
            return len(text)
        index = newline + 1
    return index


def _fit(text: str, start: int, end: int, max_bytes: int) -> int:
    """Shorten to whole lines of at most `max_bytes` in UTF-8; a longer first line is cut inside."""
    if (end - start) * 4 <= max_bytes or len(text[start:end].encode()) <= max_bytes:
        return end
    fitting = text[start:end].encode()[:max_bytes].decode("utf-8", "ignore")
    newline = fitting.rfind("\n")
    return start + (newline + 1 if newline >= 0 else max(1, len(fitting)))
