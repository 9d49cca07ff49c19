"""Finding and replacing text: exact, unique, and touching nothing but what is named.

A `\\n` in the text to find matches the file's own line ending; `\\r\\n` and `\\r` match themselves
only. Lines that survive a replacement keep their endings, new ones take those around them.
"""

import re
from bisect import bisect_left

from pinfold.text.codec import Splice
from pinfold.text.lines import NormalizedView, endings, line_ending, normalize

Span = tuple[int, int]
_ENDING = re.compile(r"\r\n|\r|\n")
_LONE_NEWLINE = re.compile(r"(?<!\r)\n")
ENOUGH = 1000
"""How many matches are counted before it is said that there are many."""


def find(text: str, old: str) -> list[Span]:
    """Where `old` matches, overlaps included; at most `ENOUGH` spans."""
    return _find(text, old, overlapping=True, most=ENOUGH)


def find_all(text: str, old: str) -> list[Span]:
    """Where `old` matches from left to right, without overlaps."""
    return _find(text, old, overlapping=False, most=None)


def _find(text: str, old: str, *, overlapping: bool, most: int | None) -> list[Span]:
    view = NormalizedView(text)
    wanted = normalize(old)
    explicit = endings(old) if "\r" in old else []
    if explicit and "\r" not in text:
        return []
    spans: list[Span] = []
    at = view.text.find(wanted)
    while at >= 0 and (most is None or len(spans) < most):
        span = (view.original_index(at), view.original_index(at + len(wanted)))
        fits = not explicit or _same_endings(explicit, endings(text[span[0] : span[1]]))
        if fits:
            spans.append(span)
        at = view.text.find(wanted, at + (len(wanted) if fits and not overlapping else 1))
    return spans


def _same_endings(wanted: list[str], found: list[str]) -> bool:
    return len(wanted) == len(found) and all(
        want in ("\n", have) for want, have in zip(wanted, found, strict=True)
    )


def splice_for(text: str, span: Span, new: str) -> Splice:
    """The smallest splice that puts `new` in place of a span."""
    return splices_for(text, [span], new)[0]


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
