"""The values that the language service is made of. Lines and columns count characters from 0."""

from typing import Literal

import attrs

Severity = Literal["error", "warning", "information", "hint"]


@attrs.frozen(order=True)
class Span:
    """A part of one line, `end` exclusive."""

    line: int
    start: int
    end: int

    def holds(self, line: int, column: int) -> bool:
        """Whether a cursor is in it, or right behind it."""
        return line == self.line and self.start <= column <= self.end


@attrs.frozen
class Finding:
    """One diagnostic. `code` is a row in docs/language.md."""

    code: str
    severity: Severity
    span: Span
    message: str


@attrs.frozen
class Change:
    """New text in place of a span."""

    span: Span
    text: str


@attrs.frozen
class Symbol:
    """Something to jump to: `depth` 1 is outermost, and it reaches to line `last`."""

    name: str
    kind: Literal["heading", "frontmatter", "topic"]
    span: Span
    last: int
    depth: int = 1


@attrs.frozen
class Proposal:
    """One completion: `text` in place of the span."""

    label: str
    kind: Literal["key", "value", "file"]
    change: Change
    detail: str = ""
    documentation: str = ""
