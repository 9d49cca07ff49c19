"""Where a character surely ends and another begins, in bytes whose encoding nobody has named.

In the double-byte encodings (Big5, GBK, GB18030, Shift JIS, Johab, …) a byte above 0x7F may be the
first half of a character whose second half looks like ASCII. Taken for ASCII, that half would be
torn away.
"""

from collections.abc import Iterable

_ASCII = "\x7f"
_SECOND_HALVES = frozenset(map(chr, range(0x30, 0x7F)))
"""All that any encoding that Python knows has as an ASCII byte inside of a character."""
_DIGITS = frozenset("0123456789")


def is_sure(text: str, index: int) -> bool:
    """Whether in every such encoding a character begins at `index`, or the text ends there.
    `text`: the bytes read as UTF-8, those that are none as lone surrogates."""
    before, after = text[max(0, index - 1) : index], text[index : index + 1]
    if not before or not after:
        return True
    if before > _ASCII:
        return after <= _ASCII and after not in _SECOND_HALVES
    # GB18030 has characters of four bytes: a high one, a digit, a high one, a digit.
    first, last = text[max(0, index - 2) : index - 1], text[index + 1 : index + 2]
    halved = first > _ASCII and before in _DIGITS and after > _ASCII and last in _DIGITS
    return not halved


def first_unsure(text: str, places: Iterable[tuple[int, int]]) -> int | None:
    """The first index, of all where a place begins or ends, that may be inside of a character."""
    return next((at for place in places for at in place if not is_sure(text, at)), None)
