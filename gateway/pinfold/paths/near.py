"""Names that look like one that is not there: other blanks, another case, another normal form."""

import os

from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode
from pinfold.paths.opened import Opened
from pinfold.policy.facts import Spelling
from pinfold.policy.names import is_sayable
from pinfold.policy.spelling import look

_MOST = 2000


def near_names(opened: Opened) -> list[str]:
    """At most three names in the directory of a missing file that look like its name."""
    assert opened.parent is not None
    wanted = look(opened.missing[0])
    found: list[str] = []
    try:
        listing = platform.reopen(opened.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return found
    try:
        with os.scandir(listing) as entries:
            for _, entry in zip(range(_MOST), entries, strict=False):
                if look(entry.name) == wanted and is_sayable(entry.name):
                    found.append(entry.name)
    except OSError:
        return found
    finally:
        os.close(listing)
    return sorted(found)[:3]


def spelling_of(opened: Opened) -> Spelling:
    """How a path is written, for a process that will open it by itself.

    Raises OSError where the directory of a missing name cannot be listed.
    """
    if len(opened.missing) != 1 or opened.parent is None:
        return Spelling(opened.missing)
    wanted = look(opened.missing[0])
    listing = platform.reopen(opened.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listed = (decode(os.fsencode(name)) for name in os.listdir(listing))
        return Spelling(opened.missing, tuple(sorted(n for n in listed if look(n) == wanted)))
    finally:
        os.close(listing)
