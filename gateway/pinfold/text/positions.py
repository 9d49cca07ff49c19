"""Where an index of a text stands in an editor's words: a line, and a column in its units."""

import re
from bisect import bisect_right

from pinfold.text.columns import Encoding, units

_ENDING = re.compile(r"\r\n|\r|\n")


def splits_ending(text: str, index: int) -> bool:
    """Whether an index stands between the CR and the LF of one ending, where no position is."""
    return text[max(0, index - 1) : index + 1] == "\r\n"


class Positions:
    """The positions of one text. Lines end at LF, CRLF and CR, and nothing else."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._text = text
        self._encoding = encoding
        self._starts = [0, *(ending.end() for ending in _ENDING.finditer(text))]

    def at(self, index: int) -> tuple[int, int]:
        """The line and the column (both from 0) of the character at an index, or of the end.
        Raises ValueError inside of a CRLF."""
        if splits_ending(self._text, index):
            raise ValueError(index)
        line = bisect_right(self._starts, index) - 1
        return line, units(self._text[self._starts[line] : index], self._encoding)
