"""Fenced code, in which nothing is a heading or a link."""

import re
from collections.abc import Iterator, Sequence

# What follows backticks has none itself: else they are code in a line of text.
_FENCE = re.compile(r" {0,3}(?:(`{3,}+)([^`]*)|(~{3,}+)(.*))$")


def outside_fences(lines: Sequence[str], start: int = 0) -> Iterator[tuple[int, str]]:
    """The lines that are not in fenced code, nor a fence, with their numbers, from `start` on."""
    fence = ""
    for number in range(start, len(lines)):
        line = lines[number]
        hit = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if hit is None:
            if not fence:
                yield number, line
            continue
        run, rest = hit[1] or hit[3], hit[2] or hit[4] or ""
        if not fence:
            fence = run
        elif run[0] == fence[0] and len(run) >= len(fence) and not rest.strip():
            fence = ""
