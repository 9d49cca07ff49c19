"""Columns as editors count them, in units of UTF-8, UTF-16 or UTF-32, and in characters."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""What a unit is; an editor and a server agree on one when they meet."""


def _utf8(character: str) -> int:
    code = ord(character)
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)


def _utf16(character: str) -> int:
    return 1 + (ord(character) > 0xFFFF)


_WIDTHS: dict[Encoding, Callable[[str], int]] = {"utf-8": _utf8, "utf-16": _utf16}


_CODECS: dict[Encoding, tuple[str, int]] = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}
"""The codec that counts, and how many bytes its unit has."""


def units(text: str, encoding: Encoding) -> int:
    """How many units a text has. A lone surrogate counts as a character of its own."""
    if encoding not in _CODECS or text.isascii():
        return len(text)
    codec, size = _CODECS[encoding]
    try:
        return len(text.encode(codec)) // size
    except UnicodeEncodeError:  # a lone surrogate
        return sum(map(_WIDTHS[encoding], text))


def characters(line: str, column: int, encoding: Encoding) -> int:
    """How many characters of a line stand before a column in units; at most all of them. A column
    inside of a character is before it."""
    head = line[:column]  # no character is less than a unit
    if encoding not in _CODECS or head.isascii():
        return len(head)
    codec, size = _CODECS[encoding]
    try:
        before = head.encode(codec)[: column * size]
    except UnicodeEncodeError:  # a lone surrogate
        return bisect_right(list(accumulate(map(_WIDTHS[encoding], head))), column)
    return len(before.decode(codec, "ignore"))
