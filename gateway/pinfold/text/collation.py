"""Names in the order that people expect, close to Unicode's root order, which breaks ties."""

import unicodedata

_BEFORE_LETTERS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_RANKS = {char: rank for rank, char in enumerate(_BEFORE_LETTERS)}
_LETTERS = len(_RANKS)


def collation_key(name: str) -> tuple[object, ...]:
    """A key to sort names by: marks, digits, letters whatever their case; of names that are then
    equal, those without accents first; of those, small letters before capital ones."""
    plain: list[str] = []
    accents: list[str] = []
    for char in unicodedata.normalize("NFKD", name):
        (accents if unicodedata.combining(char) else plain).append(char)
    folded = "".join(plain).casefold()
    ranks = [_RANKS.get(char, _LETTERS + ord(char)) for char in folded]
    return ranks, accents, [char.isupper() for char in plain], name


def code_units(text: str) -> bytes:
    """A key that sorts by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
