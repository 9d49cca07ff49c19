"""Frontmatter, line by line: which keys stand where. Whether it makes a valid topic is said by
`text.frontmatter`, and by nobody else."""

from collections.abc import Sequence

import msgspec

from pinfold.language.model import Span

_FENCE = "---"
_MOST_LINES = 2000


class Entry(msgspec.Struct, frozen=True):
    """One `key: value`, each at the beginning of its line."""

    key: str
    at: Span
    value: str
    value_at: Span


class Matter(msgspec.Struct, frozen=True):
    """The lines between two fences. `end` is the line of the second one, None where there is
    none."""

    entries: tuple[Entry, ...]
    end: int | None

    def first(self, *keys: str) -> Entry | None:
        """The first entry with one of these keys, the first key first."""
        for key in keys:
            for entry in self.entries:
                if entry.key == key:
                    return entry
        return None


def read_matter(lines: Sequence[str]) -> Matter | None:
    """The frontmatter of a document's lines (without endings); None where it does not begin with a
    fence."""
    if not lines or lines[0] != _FENCE:
        return None
    entries: list[Entry] = []
    for number, line in enumerate(lines[1:_MOST_LINES], 1):
        if line.startswith(_FENCE):
            return Matter(tuple(entries), number)
        if entry := _entry(number, line):
            entries.append(entry)
    return Matter(tuple(entries), None)


def _entry(number: int, line: str) -> Entry | None:
    key, colon, rest = line.partition(":")
    if not colon or not key or key[0].isspace() or key.startswith(("#", "- ")):
        return None
    value = rest.strip()
    start = len(key) + 1 + (len(rest) - len(rest.lstrip()) if value else len(rest))
    return Entry(key, Span(number, 0, len(key)), value, Span(number, start, start + len(value)))
