"""A unified diff for people and models, bounded in time and size. Not meant for `patch`."""

import difflib

from pinfold.text.codec import printable
from pinfold.text.lines import split_lines

_MOST_LINES = 2000
_MOST_CHARACTERS = 32_768


def unified_diff(before: str, after: str, path: str) -> str:
    """The change from `before` to `after`; empty if there is none. A CR is shown as `␍`.

    Only the part between the first and the last changed line is compared; where that is longer
    than 2,000 lines it is counted instead of shown.
    """
    old, new = split_lines(before), split_lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    skip = max(0, head - 3)
    keep = max(0, tail - 3)
    left, right = old[skip : len(old) - keep], new[skip : len(new) - keep]
    if not left and not right:
        return ""
    if max(len(left), len(right)) > _MOST_LINES:
        return f"@@ from line {head + 1} on: {len(left)} lines become {len(right)} @@\n"
    names = (f"a{path}", f"b{path}")
    body = [_shown(line) for line in difflib.unified_diff(left, right, *names, n=3)]
    if len(body) > 2:
        body[2:] = [_shift(line, skip) if line.startswith("@@") else line for line in body[2:]]
    text = printable("".join(body))
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "\n…\n"


def _common(a: list[str], b: list[str]) -> int:
    most = min(len(a), len(b))
    return next((i for i in range(most) if a[i] != b[i]), most)


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
