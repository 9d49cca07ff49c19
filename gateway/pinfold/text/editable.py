"""A text as an editor changes it: by ranges, line by line, without reading it all again."""

from pinfold.text.lines import split_lines
from pinfold.text.positions import Encoding, characters

Point = tuple[int, int]
"""A line, and a column in units of the editor's encoding; both from 0."""


def lines_of(text: str) -> list[str]:
    """The lines with their endings; the last one has none, and may be empty."""
    lines = split_lines(text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def without_ending(line: str) -> str:
    """A line without what ends it."""
    return line.rstrip("\r\n")


class EditableText:
    """Lines that are replaced by ranges. Not thread-safe."""

    def __init__(self, text: str) -> None:
        self._lines = lines_of(text)
        self._text: str | None = text

    @property
    def text(self) -> str:
        """All of it."""
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def replace(self, start: Point, end: Point, new: str, encoding: Encoding) -> None:
        """Put `new` in place of what is between two points. A point behind the end of its line, or
        of the text, is at that end; where `end` is before `start`, nothing is taken away."""
        first, head = self._place(start, encoding)
        last, tail = max(self._place(end, encoding), (first, head))
        # A CR at the edge may become one ending with a LF beside it: the neighbours are read again.
        above, below = max(first - 1, 0), min(last + 2, len(self._lines))
        before = "".join(self._lines[above:first]) + self._lines[first][:head]
        after = self._lines[last][tail:] + "".join(self._lines[last + 1 : below])
        lines = lines_of(before + new + after)
        if below < len(self._lines):
            lines.pop()  # what it stands for is the line that follows
        self._lines[above:below] = lines
        self._text = None

    def _place(self, point: Point, encoding: Encoding) -> tuple[int, int]:
        line, column = point
        if line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        return line, characters(without_ending(self._lines[line]), column, encoding)
