"""Which documents of a listing are pinned: the policy's own test, asked once for each directory.

Below a directory the answer for a file differs from the directory's only where the file's own name
or identity is what is reserved. Those files are asked about one by one.
"""

from pinfold.policy import names
from pinfold.policy.facts import Facts, Identity, RootFacts, Target
from pinfold.policy.pinned import find_pinned


class Marks:
    """The marks below the roots that are given, with their reserved directories."""

    def __init__(self, roots: tuple[RootFacts, ...]) -> None:
        self._roots = roots
        reserved = [root.reserved for root in roots if root.reserved is not None]
        places = [place for each in reserved for place in each.places]
        self._files = {place.anchor for place in places if not place.names}
        lasts = [place.names[-1] for place in places if place.names]
        lasts += [path.rpartition("/")[2] for each in reserved for path in each.real]
        self._lasts = tuple({names.RESERVED, *lasts})

    def pinned(self, target: Target) -> bool:
        """Whether a target is pinned, in full."""
        return find_pinned(Facts(target, self._roots)) is not None

    def own(self, name: str, found: Identity | None) -> bool:
        """Whether a file has to be asked about by itself, whatever its directory is."""
        if found in self._files:
            return True
        for each in self._lasts:  # noqa: SIM110 - asked of every document
            if names.same(name, each):
                return True
        return False
