"""Names that look like one that is not there: other blanks, another case, another normal form."""

import os
import unicodedata

from pinfold.paths.kernel import platform
from pinfold.paths.opened import Opened

_MOST = 2000


def near_names(opened: Opened) -> list[str]:
    """At most three names in the directory of a missing file that look like its name."""
    assert opened.parent is not None
    wanted = _look(opened.missing[0])
    found: list[str] = []
    try:
        listing = platform.reopen(opened.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return found
    try:
        with os.scandir(listing) as entries:
            for _, entry in zip(range(_MOST), entries, strict=False):
                if _look(entry.name) == wanted:
                    found.append(entry.name)
    except OSError:
        return found
    finally:
        os.close(listing)
    return sorted(found)[:3]


def _look(name: str) -> str:
    """What a name looks like: compatibility forms, blanks and case put aside."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
