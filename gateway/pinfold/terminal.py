"""What people look at: a console that does not cut paths, and text that cannot play tricks."""

import os
import sys
from typing import TYPE_CHECKING

from pinfold.text.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_WIDE = 400


def console() -> "Console":
    """To a terminal as wide as it is; to a file or a pipe so wide that nothing is folded."""
    from rich.console import Console

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    plain = bool(os.environ.get("NO_COLOR"))  # of which rich would leave bold and dim
    width = None if sys.stdout.isatty() else _WIDE
    return Console(highlight=False, width=width, color_system=None if plain else "auto")


def shown(text: str, style: str = "") -> "Text":
    """The same, for rich."""
    from rich.text import Text

    return Text(visible(text), style)
