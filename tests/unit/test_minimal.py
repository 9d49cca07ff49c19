"""Minimal edits: exactly the new text, by an applier of its own, and nothing else is touched."""

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pinfold.doors.lsp.buffers import text_edits
from pinfold.text.codec import Splice
from pinfold.text.intent import intend
from pinfold.text.minimal import minimal, spliced
from pinfold.text.positions import Encoding, Positions
from support import texts
from typist import applied, offset

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")

CASES = [
    ("", "", []),
    ("", "a\n", [(0, 0, "a\n")]),
    ("a\n", "", [(0, 2, "")]),
    ("one two three\n", "one 2 three\n", [(4, 7, "2")]),
    ("a\nb\nc\nd\n", "a\nB\nc\nD\n", [(2, 3, "B"), (6, 7, "D")]),
    ("x = old + old\n", "x = new + new\n", [(4, 7, "new"), (10, 13, "new")]),
    ("😀a😀\n", "😀b😀\n", [(1, 2, "b")]),
    ("e\u0301x", "e\u0301y", [(2, 3, "y")]),
    ("a\n", "a\nb\n", [(1, 1, "\nb")]),  # for many editors no line is behind the last ending
    ("a\nb\n", "a\n", [(1, 3, "")]),
    ("a\r\n", "a\r\nb\r\n", [(1, 1, "\r\nb")]),
    ("no end", "no end\n", [(6, 6, "\n")]),
    ("a\r\nb", "a\nb", [(1, 3, "\n")]),  # a CRLF is never cut in two
    ("a\nb", "a\r\nb", [(1, 2, "\r\n")]),
    ("a\rb", "a\r\nb", [(1, 2, "\r\n")]),
    ("a\rx\nb", "a\r\nb", [(1, 4, "\r\n")]),
    ("a\r\r\nb", "a\r\nb", [(1, 4, "\r\n")]),
    ("k: 1\nm: 2\n", "k: 1\nl: 3\nm: 2\n", [(5, 5, "l: 3\n")]),
]


@pytest.mark.parametrize(("before", "after", "edits"), CASES)
def test_only_what_differs_is_touched(
    before: str, after: str, edits: list[tuple[int, int, str]]
) -> None:
    found = minimal(before, after)
    assert spliced(before, found) == after
    if "\r" not in before:
        assert list(found) == [Splice(*each) for each in edits]
    else:
        assert sum(each.end - each.start for each in found) <= sum(e - s for s, e, _ in edits)


@settings(deadline=None)
@given(texts(), texts(), st.sampled_from(ENCODINGS))
def test_an_editor_makes_exactly_the_new_text(before: str, after: str, encoding: Encoding) -> None:
    splices = minimal(before, after)
    edits = text_edits(before, splices, encoding)
    assert applied(before, edits, encoding) == after
    for each in splices:
        old = before[each.start : each.end]
        assert old != each.insert
        assert not _cut(before, each.start) and not _cut(before, each.end)
        alone = before[: each.start], each.insert, before[each.end :]
        assert sum(map(_crlfs, alone)) == _crlfs("".join(alone))
        if "\r" not in old + each.insert:  # at a CRLF it may begin or end with what stays
            assert not (old and each.insert and old[0] == each.insert[0])
            assert not (old and each.insert and old[-1] == each.insert[-1])


@settings(deadline=None)
@given(texts(), texts(), texts())
def test_two_changes_far_apart_leave_what_is_between(a: str, b: str, middle: str) -> None:
    kept = "=" + middle.replace("\r", "") + "=\n" * 3
    splices = minimal(f"{a}x\n{kept}{b}x", f"{a}y\n{kept}{b}y")
    assert all(each.end - each.start <= 1 and len(each.insert) <= 1 for each in splices)


@settings(deadline=None)
@given(texts(), st.sampled_from(ENCODINGS), st.data())
def test_positions_are_where_an_editor_finds_them(
    text: str, encoding: Encoding, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(text)))
    if _cut(text, index):
        with pytest.raises(ValueError):
            Positions(text, encoding).at(index)
        return
    line, character = Positions(text, encoding).at(index)
    assert offset(text, {"line": line, "character": character}, encoding) == index


def test_long_texts_that_differ_everywhere_are_one_edit_soon() -> None:
    before = "".join(f"line {n}\n" for n in range(60_000))
    after = "".join(f"LINE {n} x\n" for n in range(60_000))
    begun = time.process_time()
    (only,) = minimal(before, after)
    assert spliced(before, (only,)) == after
    assert time.process_time() - begun < 10


SHOWN = [
    # before, after, what the editor shows then, what that means
    ("a b c\n", "a B c\n", "a B c\n", "made"),
    ("a b c\n", "a B c\n", "a b c\n", "missing"),
    ("a\n", "b", "b\n", "made"),  # an editor that ends every last line
    ("a\n", "", "\n", "made"),
    ("a\r\n", "a\r\nb\n", "a\r\nb\r\n", "made"),  # or has one ending for all
    ("a\n", "a", "a\n", "missing"),
    ("a\nb", "a\r\nb", "a\nb\n", "missing"),
    ("a b c\n", "a B c\n", "a B c\nmore", "made"),
    ("a b c\n", "a B c\n", "more\na B c\n", "made"),
    ("a b c\n", "a B c\n", "a b c\nmore", "missing"),
    ("a b c\n", "a B c\n", "a c\n", "unclear"),
    ("a b c\n", "a B c\n", "a bB c\n", "unclear"),
    ("1\n2\n3\n4\n", "1\nX\n3\nY\n", "1\nX\n3!\nY\n", "made"),  # typed between two
    ("1\n2\n3\n4\n", "1\nX\n3\nY\n", "1\n2\n3!\n4\n", "missing"),
    ("1\n2\n3\n4\n", "1\nX\n3\nY\n", "1\nX\n3\n4\n", "unclear"),  # half of it
    ("ab\n", "a\n", "a\nc", "made"),  # something was taken out
    ("ab\n", "a\n", "ab\nc", "missing"),
    ("ab\n", "a\n", "", "unclear"),
    ("aaa", "aaaa", "aaaaa", "unclear"),  # whose it was cannot be told
    ("a b c\nd\n", "a B c\nd\n", "a b c\nB d\n", "unclear"),  # made at another place
    ("a b c\nd\n", "a  c\nd\n", "a b c\n\n", "unclear"),
    ("x\n", "x\ny\n", "x\ny\nz\n", "made"),
    ("x", "xy", "xyz", "unclear"),  # typed right where it ends
]


@pytest.mark.parametrize(("before", "after", "later", "shown"), SHOWN)
def test_what_a_later_text_shows(before: str, after: str, later: str, shown: str) -> None:
    assert intend(before, after).shown_by(later) == shown


@settings(deadline=None)
@given(texts(), texts(), texts())
def test_typing_elsewhere_never_turns_a_yes_into_a_no(before: str, after: str, typed: str) -> None:
    assume(before != after)
    intent = intend(before, after)
    more = "\n=" + typed
    assert intent.shown_by(after + more) != "missing"
    assert intent.shown_by(before + more) != "made" or after == before + more


def _crlfs(text: str) -> int:
    return text.count("\r\n")


def _cut(text: str, index: int) -> bool:
    return text[max(0, index - 1) : index + 1] == "\r\n"
