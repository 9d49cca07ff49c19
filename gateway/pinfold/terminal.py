"""What people look at: a console that does not cut paths, and text that cannot play tricks."""

import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_WIDE = 400
_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})


def console() -> "Console":
    """To a terminal as wide as it is; to a file or a pipe so wide that nothing is folded."""
    from rich.console import Console

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def plain(text: str) -> str:
    """Text that came from elsewhere, with everything invisible written out: an agent chooses
    paths, and a terminal obeys some of them."""
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


def shown(text: str, style: str = "") -> "Text":
    """The same, for rich."""
    from rich.text import Text

    return Text(plain(text), style)
