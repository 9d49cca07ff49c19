"""JSON on the wire: what comes in goes out as it was, and what is none is said to be none."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.doors.codec import parse, serialize

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, categories=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None, categories=None), max_size=4), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_what_is_written_is_json_and_reads_as_it_was(value: Any) -> None:
    body = serialize(value)
    assert repr(json.loads(body)) == repr(value)
    assert repr(parse(body)) == repr(value)


@given(JSON, st.booleans())
def test_it_reads_what_others_write(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        body = text.encode("utf-8")
    except UnicodeEncodeError:  # half a character is JSON when it is escaped
        body = json.dumps(value).encode("ascii")
    assert repr(parse(body)) == repr(value)


@pytest.mark.parametrize("body", [
    b"", b"{", b"[1,]", b"NaN", b"-Infinity", b"1e999", b"\xff", b'"\xed\xa0\x80"', b"'a'", b"{1:2}",
    b'{"a":1', b'"a\x00"', b"01", b"1 2", b"\xef\xbb\xbf1", b"[" * 2000 + b"]" * 2000,
    b"[" * 50_000, b"1" * 5000, b'["\\ud800", NaN]', b'["\\ud800", "\xff"]', b'["\\ud800"' + b",[" * 1500 + b"]" * 1501,
])  # fmt: skip
def test_what_is_none_is_refused_without_any_of_it(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"^[^'\"]{3,80}$"):
        parse(body)


def test_no_number_becomes_another_one() -> None:
    for number in (2**53 + 1, 2**63, 2**64, -(2**64), 10**40):
        assert parse(serialize([number])) == [number]
    assert math.isclose(parse(b"0.1"), 0.1)
