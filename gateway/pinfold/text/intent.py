"""An edit that somebody else is to make, and whether a text shows that it was made."""

from typing import Literal

import msgspec

from pinfold.text.codec import Splice
from pinfold.text.edit import common_prefix, common_suffix
from pinfold.text.lines import normalize
from pinfold.text.minimal import minimal, spliced

Shown = Literal["made", "missing", "unclear"]
_Span = tuple[int, int]


class Intent(msgspec.Struct, frozen=True):
    """From `before` to `after` by `splices`."""

    before: str
    after: str
    splices: tuple[Splice, ...]

    def shown_by(self, text: str) -> Shown:
        """What a later text shows: the edit was made, and nothing else, or other changes that do
        not touch it; the same with the edit missing; or neither, where it cannot be said."""
        if text == self.after:
            return "made"
        if text == self.before:
            return "missing"
        if self.as_kept(text) is not None:
            return "made"
        if _apart(self.after, text, self._inserted()):
            return "made"
        replaced = [(each.start, each.end) for each in self.splices]
        if _apart(self.before, text, replaced) and not self._may_be_misplaced(text):
            return "missing"
        return "unclear"

    def as_kept(self, text: str) -> str | None:
        """A text that is the one that was meant, as an editor keeps it: with other line endings, or
        another end of the last line. None if it is not that."""
        kept = _kept(text) == _kept(self.after)
        return text if kept and _kept(self.before) != _kept(self.after) else None

    def _may_be_misplaced(self, text: str) -> bool:
        """Whether what is new in a text could be this edit, at another place."""
        first, last = _changed(self.before, text)
        new = text[first : len(text) - (len(self.before) - last)]
        fewer = last - first - len(new)
        return any(
            each.insert in new if each.insert else fewer >= each.end - each.start
            for each in self.splices
        )

    def _inserted(self) -> list[_Span]:
        spans: list[_Span] = []
        moved = 0
        for each in self.splices:
            start = each.start + moved
            spans.append((start, start + len(each.insert)))
            moved += len(each.insert) - (each.end - each.start)
        return spans


def intend(before: str, after: str) -> Intent:
    """By the smallest edits."""
    splices = minimal(before, after)
    assert spliced(before, splices) == after
    return Intent(before, after, splices)


def _kept(text: str) -> str:
    """Many editors have one kind of ending in all of a file, and always one at its end."""
    return normalize(text).removesuffix("\n")


def _changed(text: str, later: str) -> _Span:
    """The one place in `text` where `later` differs from it."""
    first = common_prefix(text, later)
    return first, len(text) - common_suffix(text[first:], later[first:])


def _apart(text: str, later: str, spans: list[_Span]) -> bool:
    """Whether the one place where `later` differs from `text` touches none of the spans."""
    first, last = _changed(text, later)
    return all(end < first or start > last for start, end in spans)
