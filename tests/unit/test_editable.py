"""A text changed by ranges, beside a plain model that reads all of it again each time."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinfold.text.editable import EditableText, lines_of
from pinfold.text.positions import Encoding, characters, units
from support import texts

ENCODINGS: list[Encoding] = ["utf-8", "utf-16", "utf-32"]
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def plain_units(text: str, encoding: Encoding) -> int:
    name, size = CODECS[encoding]
    return len(text.encode(name, "surrogatepass")) // size


def plain_offset(text: str, line: int, column: int, encoding: Encoding) -> int:
    """Where a point is, found by walking through the text."""
    starts = [0, *(hit.end() for hit in re.finditer(r"\r\n|\r|\n", text))]
    if line >= len(starts):
        return len(text)
    at = starts[line]
    while at < len(text) and text[at] not in "\r\n":
        if plain_units(text[starts[line] : at + 1], encoding) > column:
            break
        at += 1
    return at


POINTS = st.tuples(st.integers(0, 10), st.integers(0, 12))


@settings(deadline=None)
@given(
    texts(), st.lists(st.tuples(POINTS, POINTS, texts()), max_size=6), st.sampled_from(ENCODINGS)
)
def test_it_is_what_the_editor_shows(
    text: str, changes: list[tuple[tuple[int, int], tuple[int, int], str]], encoding: Encoding
) -> None:
    edited = EditableText(text)
    for start, end, new in changes:
        edited.replace(start, end, new, encoding)
        first = plain_offset(text, *start, encoding)
        last = max(first, plain_offset(text, *end, encoding))
        text = text[:first] + new + text[last:]
        assert edited.text == text
        assert edited._lines == lines_of(text)


@settings(deadline=None)
@given(st.text("aé→😀\ud800", max_size=6), st.integers(0, 20), st.sampled_from(ENCODINGS))
def test_columns_go_both_ways(line: str, column: int, encoding: Encoding) -> None:
    before = characters(line, column, encoding)
    assert units(line[:before], encoding) <= column
    assert before == len(line) or units(line[: before + 1], encoding) > column
    assert units(line, encoding) == plain_units(line, encoding)


@pytest.mark.parametrize(
    ("text", "start", "end", "new", "after"),
    [
        ("a\u2028b\nc", (1, 0), (1, 1), "C", "a\u2028b\nC"),  # a separator that ends no line
        ("ab", (0, 2), (0, 2), "!", "ab!"),  # at the end of a line that has no ending
        ("ab", (0, 9), (0, 9), "!", "ab!"),  # behind it
        ("ab\r\ncd", (0, 9), (0, 9), "!", "ab!\r\ncd"),  # not behind what ends the line
        ("a\r", (1, 0), (1, 0), "\nb", "a\r\nb"),  # CR and LF become one ending
        ("a\rb", (1, 0), (1, 1), "\n", "a\r\n"),
        ("x\ny\n", (2, 0), (2, 0), "z", "x\ny\nz"),
        ("x", (7, 0), (9, 0), "z", "xz"),
        ("abc", (0, 2), (0, 1), "-", "ab-c"),  # backwards: nothing is taken away
    ],
)
def test_edges(
    text: str, start: tuple[int, int], end: tuple[int, int], new: str, after: str
) -> None:
    edited = EditableText(text)
    edited.replace(start, end, new, "utf-16")
    assert edited.text == after
    assert edited._lines == lines_of(after)
