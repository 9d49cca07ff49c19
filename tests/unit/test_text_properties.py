"""Whatever bytes a file has: an edit changes the named span, and reading shows what is there."""

from hypothesis import assume, given
from hypothesis import strategies as st

from pinfold.text.codec import Decoded, decode
from pinfold.text.diff import unified_diff
from pinfold.text.edit import find, find_all, splices_for
from pinfold.text.hints import no_match_hint
from pinfold.text.lines import Window, endings, line_ending, normalize, select, split_lines
from support import texts

RAW = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xff", b"\xc3", b"\xa9", b"\xef\xbb\xbf", b"\xed\xa0\x80"]),
    max_size=30,
).map(b"".join)  # fmt: skip


@given(RAW)
def test_decoding_loses_nothing(data: bytes) -> None:
    decoded = decode(data)
    assert decoded.data == data and decoded.spliced([]).data == data


@given(RAW, st.data())
def test_an_edit_of_bytes_replaces_exactly_the_span(data: bytes, draw: st.DataObject) -> None:
    decoded = decode(data)
    text = decoded.text
    assume(text)
    start = draw.draw(st.integers(0, len(text) - 1))
    end = draw.draw(st.integers(start + 1, len(text)))
    old = normalize(text[start:end])
    spans = find(text, old)
    assume(len(spans) == 1)
    start, end = spans[0]
    assert normalize(text[start:end]) == old
    new = draw.draw(st.text("xy", max_size=5))
    outcome = decoded.spliced(splices_for(text, spans[:1], new))
    assert outcome.text == text[:start] + new + text[end:]
    head = decoded.mark + text[:start].encode("utf-8", "surrogateescape")
    tail = text[end:].encode("utf-8", "surrogateescape")
    assert outcome.data == head + new.encode() + tail


@given(texts(), texts(), st.data())
def test_surviving_lines_keep_their_endings(text: str, new: str, draw: st.DataObject) -> None:
    new = normalize(new)
    assume(not new.startswith("\ufeff"))  # a mark, at the very beginning: test_edit_cases.py
    shown = normalize(text)
    start = draw.draw(st.integers(0, len(shown)))
    end = draw.draw(st.integers(start, len(shown)))
    assume(start < end)
    spans = find(text, shown[start:end])
    assume(len(spans) == 1)
    (splice,) = splices_for(text, spans[:1], new)
    outcome = Decoded(text.encode(), text).spliced([splice]).text
    assert outcome.startswith(text[: spans[0][0]]) and outcome.endswith(text[spans[0][1] :])
    # Endings never come from nowhere; CRLF is made of both where a CR and an LF must not meet.
    known = set(endings(text)) or {"\n"}
    assert set(endings(splice.insert)) <= known | ({"\r\n"} if known >= {"\r", "\n"} else set())
    at = splice.start
    merged = not splice.insert and at and outcome[at - 1 : at + 1] == "\r\n"
    if not merged:  # what stood between a CR and an LF was taken out: they are one ending now
        assert normalize(outcome) == shown[:start] + new + shown[end:]


@given(texts(), st.text("ab\n", min_size=1, max_size=3))
def test_all_matches_are_found_and_do_not_overlap(text: str, old: str) -> None:
    shown = normalize(text)
    spans = find_all(text, old)
    assert len(spans) == shown.count(old)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert all(normalize(text[start:end]) == old for start, end in spans)


@given(texts(), st.integers(1, 5), st.integers(1, 20))
def test_following_the_notes_reads_the_whole_file(text: str, lines: int, size: int) -> None:
    shown = normalize(text)
    parts: list[str] = []
    offset: int | None = 0
    column: int | None = 0
    for _ in range(len(shown) + 2):
        assert offset is not None
        window = Window(offset, None, column or 0, lines, size)
        selection = select(shown, window)
        parts.append(selection.text)
        assert selection.start_line <= selection.end_line <= (selection.total_lines or 0)
        if not selection.truncated:
            break
        assert selection.text
        offset, column = selection.next_offset, selection.next_column
    assert "".join(parts) == shown


@given(texts(), st.integers(0, 12), st.integers(1, 12))
def test_a_range_is_exactly_its_lines(text: str, offset: int, limit: int) -> None:
    shown = normalize(text)
    lines = split_lines(shown)
    selection = select(shown, Window(offset, limit, 0, 1, 1))
    assert selection.text == "".join(lines[offset : offset + limit])
    assert selection.total_lines == len(lines)
    assert selection.end_line == min(max(offset, 0) + limit, len(lines)) or offset >= len(lines)
    assert (selection.next_offset is None) is (offset + limit >= len(lines))


@given(texts(), texts())
def test_a_diff_is_empty_only_for_equal_texts(before: str, after: str) -> None:
    assert bool(unified_diff(before, after, "/f")) is (before != after)


@given(texts(), texts())
def test_hints_never_fail(text: str, old: str) -> None:
    assume(old and not find(text, old))
    sentence, where = no_match_hint(text, old)
    if where:
        assert 0 <= where["line"] <= normalize(text).count("\n") and sentence


@given(texts())
def test_the_line_ending_is_the_uniform_one(text: str) -> None:
    found = set(endings(text))
    expected = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}
    assert line_ending(text) == (
        None if not found else expected[found.pop()] if len(found) == 1 else "mixed"
    )
