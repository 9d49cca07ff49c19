"""Topics that are kept for a moment."""

from collections.abc import Sequence
from typing import Any

from pinfold.doors.lsp.listings import KEPT_SECONDS, Listings
from pinfold_protocol.memory import MemoryDocument


class Desk:
    def __init__(self) -> None:
        self.now = 0.0
        self.looks = 0
        self.listings = Listings(lambda: self.now)

    def look(self) -> Sequence[MemoryDocument]:
        self.looks += 1
        return []

    def find(self, scope: Any, kind: Any = "project") -> int:
        """How many looks there were after this one."""
        self.listings.find(scope, kind, self.look)
        return self.looks


def test_a_listing_is_kept_for_one_scope_and_one_root_and_a_moment() -> None:
    desk, scope, other = Desk(), object(), object()
    assert [desk.find(scope), desk.find(scope)] == [1, 1]
    assert [desk.find(other), desk.find(other)] == [2, 2]
    assert [desk.find(other, "user"), desk.find(other, "user")] == [3, 3]
    desk.now += KEPT_SECONDS
    assert desk.find(other, "user") == 4
    desk.listings.forget()
    assert desk.find(other, "user") == 5


def test_a_listing_that_was_begun_before_a_change_is_not_kept() -> None:
    desk = Desk()
    scope: Any = object()

    def look() -> Sequence[MemoryDocument]:
        desk.listings.forget()
        return desk.look()

    desk.listings.find(scope, "project", look)
    assert desk.find(scope) == 2
