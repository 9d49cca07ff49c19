"""The values that the language service is made of. Lines and columns count characters from 0."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "information", "hint"]


class Span(msgspec.Struct, frozen=True, order=True):
    """A part of one line, `end` exclusive."""

    line: int
    start: int
    end: int

    def holds(self, line: int, column: int) -> bool:
        """Whether a cursor is in it, or right behind it."""
        return line == self.line and self.start <= column <= self.end


class Finding(msgspec.Struct, frozen=True):
    """One diagnostic. `code` is a row in docs/language.md."""

    code: str
    severity: Severity
    span: Span
    message: str


class Change(msgspec.Struct, frozen=True):
    """New text in place of a span."""

    span: Span
    text: str


class Symbol(msgspec.Struct, frozen=True):
    """Something to jump to: `depth` 1 is outermost, and it reaches to line `last`."""

    name: str
    kind: Literal["heading", "frontmatter", "topic"]
    span: Span
    last: int
    depth: int = 1


class Proposal(msgspec.Struct, frozen=True):
    """One completion: `text` in place of the span."""

    label: str
    kind: Literal["key", "value", "file"]
    change: Change
    detail: str = ""
    documentation: str = ""
