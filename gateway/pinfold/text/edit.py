"""Finding and replacing text: exact, unique, and touching nothing but what is named.

A `\\n` in the text to find matches the file's own line ending; `\\r\\n` and `\\r` match themselves
only. Lines that survive a replacement keep their endings, new ones take those around them.
"""

import re
from bisect import bisect_left
from collections.abc import Callable

from pinfold.text.codec import Splice
from pinfold.text.lines import NormalizedView, endings, line_ending, normalize

Span = tuple[int, int]
_ENDING = re.compile(r"\r\n|\r|\n")
_LONE_NEWLINE = re.compile(r"(?<!\r)\n")
ENOUGH = 1000
"""How many matches are counted before it is said that there are many."""
_MOST_TRIES = 2_000_000
"""How many places may look right until their line endings are compared."""
MANY = 100_000
"""How many places one call may replace."""


def find(text: str, old: str) -> list[Span]:
    """Where `old` matches, overlaps included; at most `ENOUGH` spans, fewer of a long text."""
    most = max(2, min(ENOUGH, 10_000_000 // (len(old) + 1)))
    return _find(text, old, overlapping=True, most=most)


def find_all(text: str, old: str) -> list[Span]:
    """Where `old` matches from left to right, without overlaps; at most `MANY` and one spans."""
    return _find(text, old, overlapping=False, most=MANY + 1)


def _find(text: str, old: str, *, overlapping: bool, most: int) -> list[Span]:
    view = NormalizedView(text)
    wanted = normalize(old)
    if "\r" in old and "\r" not in text:
        return []
    same_endings = _same_endings(view.text, text, old) if "\r" in old else None
    spans: list[Span] = []
    at = view.text.find(wanted)
    tries = _MOST_TRIES
    while at >= 0 and len(spans) < most and tries:
        tries -= 1
        fits = same_endings is None or same_endings(at)
        if fits:
            spans.append((view.original_index(at), view.original_index(at + len(wanted))))
        at = view.text.find(wanted, at + (len(wanted) if fits and not overlapping else 1))
    return spans


_LETTERS = {"\n": "n", "\r": "r", "\r\n": "c"}


def _same_endings(shown: str, text: str, old: str) -> Callable[[int], bool]:
    """Whether the endings at an index of the normalized text are those that `old` asks for: an
    ending is a letter, so that comparing many of them is one step."""
    have = "".join(_LETTERS[each] for each in endings(text))
    want = "".join("." if each == "\n" else _LETTERS[each] for each in endings(old))
    pattern = re.compile(want) if "." in want else None
    counted = [0, 0]  # endings before an index, which only grows

    def same(at: int) -> bool:
        counted[0] += shown.count("\n", counted[1], at)
        counted[1] = at
        first = counted[0]
        return have.startswith(want, first) if pattern is None else bool(pattern.match(have, first))

    return same


def splices_for(text: str, spans: list[Span], new: str) -> list[Splice]:
    """The smallest splices that put `new` in place of each span."""
    around = _Endings(text)
    return [_splice(text, span, new, around) for span in spans]


def _splice(text: str, span: Span, new: str, around: "_Endings") -> Splice:
    start, end = span
    if "\r" in new:  # it says itself what its endings are
        own = endings(text[start:end]) or [around.at(start)]
        return Splice(start, end, _LONE_NEWLINE.sub(own[-1], new))
    view = NormalizedView(text[start:end])
    head = common_prefix(view.text, new)
    tail = common_suffix(view.text[head:], new[head:])
    first = start + view.original_index(head)
    last = start + view.original_index(len(view.text) - tail)
    middle = new[head : len(new) - tail]
    meeting = text[max(0, first - 1) : first] + text[last : last + 1]
    if new and not middle and meeting == "\r\n":
        # Taken out alone, what stood between a CR and an LF would make one ending of both.
        return Splice(start, end, _with_endings(new, text, span, around))
    return Splice(first, last, _with_endings(middle, text, (first, last), around))


def _with_endings(new: str, text: str, span: Span, around: "_Endings") -> str:
    """Line by line the endings that were there, then the last of them, else those around.

    Where a CR and an LF would meet by chance and become one ending, another one is taken.
    """
    *lines, rest = new.split("\n")
    if not lines:
        return new
    start, end = span
    available = endings(text[start:end]) or [around.at(start)]
    parts: list[str] = []
    before = text[max(0, start - 1) : start]
    for index, line in enumerate(lines):
        ending = available[min(index, len(available) - 1)]
        if ending == "\n" and not line and before.endswith("\r"):
            ending = "\r"
        before += line + ending
        parts.append(line + ending)
    if not rest and before.endswith("\r") and text[end : end + 1] == "\n":
        parts[-1] = parts[-1][:-1] + ("\r\n" if before.endswith("\r\r") else "\n")
    return "".join((*parts, rest))


class _Endings:
    """Which ending a new line takes at some place of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[re.Match[str]] | None = None
        self._starts: list[int] = []

    def at(self, index: int) -> str:
        """The ending of the line before, if `index` begins a line; else of its own, else of any."""
        if "\r" not in self._text:
            return "\n"
        if self._found is None:
            self._found = list(_ENDING.finditer(self._text))
            self._starts = [match.start() for match in self._found]
        following = bisect_left(self._starts, index)
        before = self._found[following - 1] if following else None
        if before is not None and (before.end() == index or following == len(self._found)):
            return before.group()
        return self._found[following].group()


def common_prefix(a: str, b: str) -> int:
    """How many characters two texts have in common at the beginning."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: str, b: str) -> int:
    """How many characters two texts have in common at the end."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def fit_endings(content: str, existing: str) -> str:
    """Whole new content for a file: it keeps a uniform ending, unless it brings CRLF itself."""
    ending = {"crlf": "\r\n", "cr": "\r"}.get(line_ending(existing) or "")
    if ending is None or "\r\n" in content:
        return content
    return content.replace("\n", ending)
