"""UTF-16 and UTF-32 with units that are none: shown when asked for, edited around, never lost."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.text.codec import Splice, decode, escaping
from pinfold.text.lines import Window, normalize, select
from pinfold.text.stream import select_from
from support import Embedded, details, kind, read, write

LE, BE, WIDE = b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0"


def le(text: str) -> bytes:
    return text.encode("utf-16-le")


# (what is wrong, the bytes, the encoding, what is shown, the bad bytes' place, after b -> B)
DAMAGED: list[tuple[str, bytes, str, str, int, bytes]] = [
    ("an odd last byte", LE + le("a\r\nb\r\n") + b"A", "utf-16-le", "a\nb\n\ufffd", 14, LE + le("a\r\nB\r\n") + b"A"),
    ("a lone high surrogate", LE + b"\x3d\xd8" + le("ab"), "utf-16-le", "\ufffd\ufffdab", 2, LE + b"\x3d\xd8" + le("aB")),
    ("a lone low one", BE + b"\xdc\x00\0b", "utf-16-be", "\ufffd\ufffdb", 2, BE + b"\xdc\x00\0B"),
    ("a high one at the end", LE + le("b") + b"\x3d\xd8", "utf-16-le", "b\ufffd\ufffd", 4, LE + le("B") + b"\x3d\xd8"),
    ("that and an odd byte", LE + le("😀b") + b"\x3d\xd8\x01", "utf-16-le", "😀b\ufffd\ufffd\ufffd", 8,
     LE + le("😀B") + b"\x3d\xd8\x01"),
    ("over 10FFFF", WIDE + b"\0\0\x11\0b\0\0\0", "utf-32-le", "\ufffd\ufffd\ufffd\ufffdb", 4, WIDE + b"\0\0\x11\0B\0\0\0"),
    ("a surrogate in UTF-32", b"\0\0\xfe\xff\0\0\xd8\0\0\0\0b", "utf-32-be", "\ufffd\ufffd\ufffd\ufffdb", 4,
     b"\0\0\xfe\xff\0\0\xd8\0\0\0\0B"),
    ("a cut last unit", WIDE + b"b\0\0\0\0\n", "utf-32-le", "b\ufffd\ufffd", 8, WIDE + b"B\0\0\0\0\n"),
    ("UTF-8 behind a mark", b"\xef\xbb\xbf\xffb", "utf-8", "\ufffdb", 3, b"\xef\xbb\xbf\xffB"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "encoding", "shown", "at", "after"), [pytest.param(*r[1:], id=r[0]) for r in DAMAGED]
)
def test_a_damaged_file_is_shown_edited_and_replaced(
    tmp_path: Path, data: bytes, encoding: str, shown: str, at: int, after: bytes
) -> None:
    place = Embedded(tmp_path)
    path = write(f"{place.project}/f", data)
    session = place.open()

    def call(name: str, **arguments: Any) -> dict[str, Any]:
        return place.call(session, name, file_path=path, **arguments)

    refused = call("read_file")
    assert kind(refused) == "undecodable" and details(refused)["error"]["byteOffset"] == at
    assert repr(encoding) in refused["content"][0]["text"]
    assert details(refused)["error"]["guess"] is None
    change = {"old_string": "b", "new_string": "B"}
    assert kind(call("edit", **change)) is None and read(path) == after
    mixed = call("edit", old_string="B", new_string="é")
    assert kind(mixed) == "undecodable" and read(path) == after
    write(path, data)
    named = call("read_file", encoding=encoding)
    assert named["content"][0]["text"] == shown
    assert details(named)["bom"] is True and details(named)["encoding"] == encoding
    assert kind(call("edit", **change)) is None and read(path) == after
    assert kind(call("edit", old_string="B", new_string="Bé")) is None
    mark = data[: 4 if encoding.startswith("utf-32") else 3 if encoding == "utf-8" else 2]
    session = place.open()
    whole = call("write_file", content="x\n")
    assert kind(whole) is None and read(path)[: len(mark)] == mark
    assert read(path)[len(mark) :].decode(encoding) == ("x\r\n" if "\n" in shown else "x\n")


WIDE_CODECS = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
RAW = st.lists(
    st.sampled_from([b"a", b"\0", b"\n", b"\xd8", b"\xdc", b"\x3d", b"\x11"]), max_size=24
).map(b"".join)


@pytest.mark.parametrize("codec", [*WIDE_CODECS, "gbk", "gb18030", "utf-8", "cp424", "ascii"])
@given(data=RAW | st.binary(max_size=24), draw=st.data())
def test_no_byte_is_lost_whatever_they_are(codec: str, data: bytes, draw: st.DataObject) -> None:
    decoded = decode(data, codec)
    assert decoded.data == data and decoded.spliced([]).data == data
    text = decoded.text
    if "gb" in codec:
        return  # test_boundaries.py and test_encodings.py splice those
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, len(text)))
    insert = "xy".encode(codec)
    outcome = decoded.spliced([Splice(start, end, "xy")])
    body = decoded.data[len(decoded.mark) :]
    sizes = [_size(char, codec) for char in text]
    assert sum(sizes) == len(body)
    head, tail = sum(sizes[:start]), sum(sizes[:end])
    assert outcome.data == decoded.mark + body[:head] + insert + body[tail:]


def _size(char: str, codec: str) -> int:
    return 1 if "\udc00" <= char <= "\udcff" else len(char.encode(codec))


@pytest.mark.parametrize("codec", [*WIDE_CODECS, "utf-8", "cp424", "gbk", "latin-1"])
@given(data=RAW | st.binary(max_size=24), size=st.integers(1, 5))
def test_a_damaged_file_streams_as_it_is_shown(codec: str, data: bytes, size: int) -> None:
    whole = decode(data, codec)
    window = Window(0, 100, 0, 100, 10**6)
    chunks = [data[:4], *(data[i : i + size] for i in range(4, len(data), size))]
    streamed = select_from(chunks, codec, window)
    assert streamed.selection.text == select(normalize(whole.shown), window).text


def test_python_s_own_handler_is_used_where_it_does() -> None:
    assert [escaping(each) for each in ("utf-8", "ascii", "cp1252", "gbk", "big5")] == [
        "surrogateescape"
    ] * 5
