"""Would another process open the file that was decided on? A path that it may read differently is
not handed to it: it may trim, unquote, normalise or fold names, and it follows links by itself.

This errs on the side of refusing: what is refused is a path nobody needs (docs/upstream.md).
"""

import unicodedata

from pinfold.policy import names
from pinfold.policy.facts import Spelling, Target

_QUOTES = frozenset("\"'`\u00b4\uff02\uff07")
_BLANK = frozenset("\ufeff\u180e\u200b\u2060")
"""What some programs trim that Python does not count as white space."""


def look(name: str) -> str:
    """What a name looks like: compatibility forms, blanks and case put aside."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def doubt(target: Target, spelling: Spelling) -> str | None:
    """Why another process may open something else, in words; None if there is no doubt."""
    if target.real is None:
        return f"it cannot be resolved ({target.problem})"
    if target.real != target.literal or target.walked is not None:
        return f"it leads through a link, to {target.real}"
    for name in names.split(target.real):
        if problem := _problem(name):
            return f"its name {name!r} {problem}"
    if len(spelling.missing) > 1:
        return f"the directory {names.split(target.real)[-2]!r} that it is in does not exist yet"
    if spelling.twins:
        return f"it does not exist, and {spelling.twins[0]!r}, which looks like it, does"
    return None


def _problem(name: str) -> str | None:
    tests = (
        (_trimmed(name[0]) or _trimmed(name[-1]), "begins or ends in white space"),
        (_quote(name[0]) or _quote(name[-1]), "begins or ends in a quote"),
        (any(_control(char) for char in name), "holds a control character"),
        ("\\" in name, "holds a backslash"),
    )
    return next((problem for holds, problem in tests if holds), None)


def _trimmed(char: str) -> bool:
    return char.isspace() or char in _BLANK


def _quote(char: str) -> bool:
    return char in _QUOTES or unicodedata.category(char) in ("Pi", "Pf")


def _control(char: str) -> bool:
    """Also a byte that is no UTF-8, which no message can hold, and marks that turn text round."""
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _TURNING


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
