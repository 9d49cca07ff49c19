"""Where a diagnostic's page is. The project has no public address, so it is the page that came
along: in the package, or in the checkout that it is installed from."""

import os
from functools import lru_cache

from pinfold.paths.uri import to_uri

_HERE = os.path.dirname(os.path.abspath(__file__))
_PAGES = (
    f"{_HERE}/language.md",
    os.path.normpath(f"{_HERE}/../../../../docs/language.md"),
)


@lru_cache(maxsize=1)
def _page() -> str | None:
    found = next((each for each in _PAGES if os.path.isfile(each)), None)
    return None if found is None else to_uri(found)


def page_of(code: str) -> str | None:
    """The URI of the section about a code; None where no page came along."""
    page = _page()
    return None if page is None else f"{page}#{code}"
