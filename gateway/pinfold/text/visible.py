"""Text that came from elsewhere, for people to look at."""

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})


def visible(text: str) -> str:
    """The same with everything invisible written out: an agent chooses paths, and a terminal or a
    dialogue obeys some of them."""
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _HIDDEN else char
        for char in text
    )
