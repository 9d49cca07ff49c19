"""A unified diff for people and models, bounded in time and size. Not meant for `patch`."""

import difflib
import re
from collections import Counter

from pinfold.text.codec import printable
from pinfold.text.edit import common_prefix, common_suffix
from pinfold.text.lines import normalize, split_lines

_ENDING = re.compile(r"\r\n|\r|\n")
_MOST_COMPARED = 1 << 20
MOST_EFFORT = 400_000
"""What may be spent on a comparison; two texts of 2,000 lines are just below."""
_MOST_CHARACTERS = 32_768


def unified_diff(before: str, after: str, path: str) -> str:
    """The change from `before` to `after`; empty if there is none. A CR is shown as `␍`.

    Only what lies between the first and the last difference is looked at line by line; where that
    is long it is counted instead of shown.
    """
    if before == after:
        return ""
    head = _line_start(before, common_prefix(before, after), context=3)
    tail = common_suffix(before[head:], after[head:])
    end = _line_end(before, len(before) - tail, context=3)
    left, right = before[head:end], after[head : len(after) - (len(before) - end)]
    if max(len(left), len(right)) > _MOST_COMPARED:
        return _counted(before[:head], left, right)
    old, new = split_lines(left), split_lines(right)
    if effort(old, new) > MOST_EFFORT:
        return _counted(before[:head], left, right)
    names = (f"a{path}", f"b{path}")
    body = [_shown(line) for line in difflib.unified_diff(old, new, *names, n=3)]
    skipped = _lines_in(before[:head])
    body[2:] = [_shift(line, skipped) if line.startswith("@@") else line for line in body[2:]]
    text = printable("".join(body))
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "\n…\n"


def _counted(before: str, left: str, right: str) -> str:
    first = _lines_in(before) + 1
    return f"@@ from line {first} on: {_lines_in(left)} lines -> {_lines_in(right)} @@\n"


def effort(old: list[str], new: list[str]) -> int:
    """How long the comparison may take: pairs of equal lines, and how often it may divide."""
    counts = Counter(new)
    return len(old) * len(new) // 10 + sum(counts[line] for line in old)


def _lines_in(text: str) -> int:
    return normalize(text).count("\n")


def _line_start(text: str, index: int, context: int) -> int:
    """The beginning of the line `context` lines before the one that `index` is in."""
    if text[index - 1 : index + 1] == "\r\n":
        index -= 1
    for _ in range(context + 1):
        index = max(text.rfind("\n", 0, index), text.rfind("\r", 0, index))
        if index < 0:
            return 0
    return index + 1


def _line_end(text: str, index: int, context: int) -> int:
    """The end of the line `context` lines after the one that `index` is in."""
    for _ in range(context + 1):
        ending = _ENDING.search(text, index)
        if ending is None:
            return len(text)
        index = ending.end()
    return index


def _shown(line: str) -> str:
    body = line.rstrip("\r\n")
    ending = line[len(body) :].replace("\r", "␍").replace("\n", "")
    missing = "" if line.endswith(("\n", "\r")) else "\n\\ No newline at end of file"
    return f"{body}{ending}{missing}\n"


def _shift(header: str, by: int) -> str:
    """`@@ -1,2 +1,3 @@` counted from the file's first line, not from the compared part's."""
    parts = header.split(" ")
    for index in (1, 2):
        sign, (start, comma, count) = parts[index][0], parts[index][1:].partition(",")
        parts[index] = f"{sign}{int(start) + by}{comma}{count}"
    return " ".join(parts)
