"""In a file whose encoding nobody has named, no edit tears a character of another encoding."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pinfold.text.boundaries import is_sure
from pinfold.text.codec import decode
from pinfold.tools.edit import splices_of
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import Replacement
from support import Embedded, details, kind, read, write

CODECS = [
    *("big5", "big5hkscs", "cp950", "gbk", "gb18030", "gb2312", "cp932", "shift_jis"),
    *("shift_jis_2004", "shift_jisx0213", "cp949", "johab", "euc_kr", "euc_jp", "euc_jis_2004"),
    "latin-1",
]


@lru_cache
def characters(codec: str) -> list[bytes]:
    """Characters of a codec: all that have a byte of ASCII in them, and some of the others."""
    pairs = [bytes((a, b)) for a in range(0x80, 256) for b in range(0x30, 256, 3)]
    singles = [bytes((a,)) for a in range(0x80, 256)]
    fours = [bytes((0x81, a, b, c)) for a in b"0159" for b in b"\x81\xa9\xbf" for c in b"0159"]
    return [each for each in (*singles, *pairs, *fours) if _is_character(each, codec)]


def _is_character(data: bytes, codec: str) -> bool:
    try:
        return len(data.decode(codec)) == 1
    except UnicodeDecodeError:
        return False


ASCII = [bytes((each,)) for each in b"ab01l\\@~: \n"]


@pytest.mark.parametrize("codec", CODECS)
@given(draw=st.data())
def test_an_edit_is_refused_or_changes_whole_characters(codec: str, draw: st.DataObject) -> None:
    pieces = draw.draw(
        st.lists(st.sampled_from(characters(codec)) | st.sampled_from(ASCII), min_size=2)
    )
    decoded = decode(b"".join(pieces))
    assume(decoded.unknown)
    for _ in range(2):  # the second as in a batch: to the outcome of the first
        starts, at = {0}, 0
        for each in pieces:
            at += len(each)
            starts.add(at)
        first = draw.draw(st.integers(0, len(decoded.text)))
        last = draw.draw(st.integers(first, min(len(decoded.text), first + 3)))
        old = decoded.text[first:last]
        new = draw.draw(st.text("ax1", max_size=3))
        assume(old and old != new)
        change = Replacement(old, new, draw.draw(st.booleans()))
        try:
            splices = splices_of(decoded, change)
            outcome = decoded.spliced(splices)
        except ToolError as error:
            assert error.kind in ("undecodable", "ambiguous-match")
            return
        for splice in splices:
            for index in (splice.start, splice.end):
                head = decoded.text[:index].encode("utf-8", "surrogateescape")
                assert len(head) in starts, (pieces, change)
        pieces = _spliced(pieces, decoded.text, splices)
        assert b"".join(pieces) == outcome.data
        assert all(_is_character(each, codec) for each in pieces)
        decoded = outcome


def _spliced(pieces: list[bytes], text: str, splices: list[Any]) -> list[bytes]:
    """The characters after splices that begin and end between them."""
    at, parts, done = 0, [], 0
    offsets = [
        tuple(len(text[:i].encode("utf-8", "surrogateescape")) for i in (each.start, each.end))
        for each in splices
    ]
    for (start, end), splice in zip(offsets, splices, strict=True):
        while at < start:
            parts.append(pieces[done])
            at, done = at + len(pieces[done]), done + 1
        while at < end:
            at, done = at + len(pieces[done]), done + 1
        parts += [bytes((byte,)) for byte in splice.insert.encode("ascii")]
    return parts + pieces[done:]


# (before, index, whether a character surely begins there)
PLACES: list[tuple[bytes, int, bool]] = [
    (b"\xa9x", 0, True),
    (b"\xa9x", 1, False),
    (b"\xa9x", 2, True),
    (b"\xa9\n", 1, True),
    (b"\xa9 x", 2, True),
    (b"\xe9\xe9", 1, False),
    (b"\xe90", 1, False),
    (b"\xe9/", 1, True),
    (b"\xe9\x7f", 1, True),
    (b"x\xa9", 1, True),
    (b"\x810\x810 ", 2, False),  # GB18030, the four bytes of one character
    (b"\x810\x81 ", 2, True),
    (b"x0\x810", 2, True),
    (b"\xd5\xc4\xa3l", 2, False),  # U+0123 by chance, and l: in GBK two characters
]


@pytest.mark.parametrize(("data", "index", "sure"), PLACES)
def test_where_a_character_begins(data: bytes, index: int, sure: bool) -> None:
    assert is_sure(data.decode("utf-8", "surrogateescape"), index) is sure


# (codec or the bytes' own, text, arguments, kind, text after)
BIG5 = "官方 x = 1\n功能 y\n"
EDITS: list[tuple[str, str, dict[str, Any], str | None, str]] = [
    ("big5", BIG5, {"old_string": "y", "new_string": "z"}, None, "官方 x = 1\n功能 z\n"),
    ("big5", BIG5, {"old_string": "x =", "new_string": "t ="}, None, "官方 t = 1\n功能 y\n"),
    ("big5", "官方\n", {"old_string": "x", "new_string": "t"}, "undecodable", ""),
    ("big5", BIG5, {"old_string": "x", "new_string": "t", "replace_all": True}, "undecodable", ""),
    ("big5", "功能\n", {"old_string": "\\", "new_string": "/"}, "undecodable", ""),
    ("big5", BIG5, {"old_string": "\n", "new_string": "!\n", "replace_all": True}, None,
     "官方 x = 1!\n功能 y!\n"),
    ("big5", BIG5, {"edits": [{"old_string": " = 1", "new_string": ""}, {"old_string": "\\", "new_string": "/"}]},
     "undecodable", ""),
    ("big5", "a功b\n", {"edits": [{"old_string": "a", "new_string": "A"}, {"old_string": "b", "new_string": "B"}]},
     None, "A功B\n"),
    ("gbk", "誰 = [x]\n乣 x\n", {"old_string": "l", "new_string": "L"}, "undecodable", ""),
    ("cp932", "表示\n", {"old_string": "\\", "new_string": "/"}, "undecodable", ""),
    ("gb18030", "\u00f1 1\n", {"old_string": "0", "new_string": "9", "replace_all": True}, "undecodable", ""),
    ("johab", "괴=1\n", {"old_string": "1", "new_string": "2"}, None, "괴=2\n"),
    ("latin-1", "café 1\n", {"old_string": " 1", "new_string": " 2"}, None, "café 2\n"),
    ("latin-1", "café, 1\n", {"old_string": ", 1", "new_string": "; 1"}, None, "café; 1\n"),
    ("latin-1", "déjà\n", {"old_string": "j", "new_string": "J"}, "undecodable", ""),
    ("latin-1", "port=1 # é\n", {"old_string": "port=1", "new_string": "port=2"}, None, "port=2 # é\n"),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "before", "change", "error", "after"), EDITS)
def test_edits_without_the_encoding(
    tmp_path: Path, codec: str, before: str, change: dict[str, Any], error: str | None, after: str
) -> None:
    place = Embedded(tmp_path)
    path = write(f"{place.project}/f", before.encode(codec))
    session = place.open()
    result = place.call(session, "edit", file_path=path, **change)
    assert kind(result) == error, result
    assert read(path) == (after or before).encode(codec)
    if error:
        assert "Name the encoding" in result["content"][0]["text"]
        assert path in details(result)["error"]["message"]
        assert details(result)["error"].get("index") == (1 if "edits" in change else None)
        named = place.call(session, "edit", file_path=path, encoding=codec, **change)
        assert kind(named) in (None, "no-match")
        read(path).decode(codec)
    elif "edits" not in change:  # with a mark it is UTF-8, whatever its bytes
        write(path, b"\xef\xbb\xbf\xff" + b"x")
        assert (
            kind(place.call(session, "edit", file_path=path, old_string="x", new_string="y"))
            is None
        )
