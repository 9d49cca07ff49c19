"""Framing, sans I/O: whole, byte by byte, and with whatever follows."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold_protocol import framing
from pinfold_protocol.framing import (
    EDGE,
    AnyFramer,
    Body,
    Framer,
    FramingError,
    LineFramer,
    Oversized,
    frame,
)

BODIES = st.lists(st.binary(max_size=40), max_size=5)


def events(framer: Framer | LineFramer | AnyFramer) -> list[Body | Oversized]:
    found = []
    while event := framer.next_event():
        found.append(event)
    return found


@given(BODIES, st.lists(st.integers(1, 9), max_size=60))
def test_bodies_come_back_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(body) + body for body in bodies)
    framer = Framer(1000)
    found: list[Body | Oversized] = []
    for cut in cuts:
        framer.receive(stream[:cut])
        stream = stream[cut:]
        found += events(framer)
    framer.receive(stream)
    found += events(framer)
    assert found == [Body(body) for body in bodies]
    assert not framer.mid_message


@given(
    st.integers(11, 3 * EDGE),
    st.lists(st.integers(1, EDGE + 7), max_size=30),
    st.binary(max_size=9),
)
def test_an_oversized_body_is_drained_and_its_edges_kept(
    size: int, cuts: list[int], following: bytes
) -> None:
    body = bytes(index % 251 for index in range(size))
    stream = frame(body) + body + frame(following) + following
    framer = Framer(10)
    found: list[Body | Oversized] = []
    for cut in cuts:
        framer.receive(stream[:cut])
        stream = stream[cut:]
        found += events(framer)
        assert len(framer._buffer) <= max(cuts) + 2 * EDGE
    framer.receive(stream)
    found += events(framer)
    assert found == [Oversized(size, body[:EDGE], body[-EDGE:]), Body(following)]


@pytest.mark.parametrize(
    "header",
    ["content-LENGTH:5\n\n", "X: 1\r\nContent-Length: 5\r\nY\r\n\r\n", "Content-Length:\t5 \r\n\n"],
)
def test_header_variants(header: str) -> None:
    framer = Framer(10)
    framer.receive(header.encode() + b"12345rest")
    assert framer.next_event() == Body(b"12345")
    assert framer.mid_message


@pytest.mark.parametrize(
    "header", ["\n\n", "X: 5\n\n", "Content-Length: \u0665\n\n", "Content-Length: 5,5\n\n", "Content-Length: 1073741825\n\n"]
)  # fmt: skip
def test_a_header_without_a_valid_length(header: str) -> None:
    framer = Framer(10)
    framer.receive(header.encode())
    with pytest.raises(FramingError):
        framer.next_event()


def test_a_header_that_does_not_end() -> None:
    framer = Framer(10)
    framer.receive(b"a: b\r\n" * 20_000)
    with pytest.raises(FramingError):
        framer.next_event()


_PIECES = (
    b"Content-Length",
    b"content-length",
    b": ",
    b":",
    b"5",
    b"0",
    b"77",
    b" ",
    b"x",
    b"\r",
    b"\n",
)


@given(st.lists(st.sampled_from([*_PIECES, b"\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n"])))
def test_a_short_header_is_read_as_any_other(pieces: list[bytes]) -> None:
    def told(shortcut: int) -> object:
        with mock.patch.object(framing, "_SHORT", shortcut):
            framer = Framer(50)
            framer.receive(b"".join(pieces))
            try:
                return events(framer), framer.mid_message
            except FramingError as error:
                return str(error)

    assert told(framing._SHORT) == told(0)


# One message a line, and either framing

BOM = b"\xef\xbb\xbf"


def cut_up(
    framer: LineFramer | AnyFramer, stream: bytes, cuts: list[int]
) -> list[Body | Oversized]:
    """What comes out when the stream goes in by pieces of these lengths, and then the rest."""
    found: list[Body | Oversized] = []
    for cut in cuts:
        framer.receive(stream[:cut])
        stream = stream[cut:]
        found += events(framer)
    framer.receive(stream)
    return found + events(framer)


STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "lines": (b'{"a":1}\n[2]\n', [b'{"a":1}', b"[2]"]),
    "CRLF": (b"{}\r\n[]\r\n", [b"{}", b"[]"]),
    "blank lines": (b"\n \t\n\r\n{}\n\n\n{}\n\r\n", [b"{}", b"{}"]),
    "a byte-order mark": (BOM + b"{}\n{}\n", [b"{}", b"{}"]),
    "a mark before each": (BOM + b"{}\n" + BOM + b"{}\n", [b"{}", b"{}"]),
    "a mark alone": (BOM + b"\n{}\n", [b"{}"]),
    "blanks around": (b"{} \r\n\t{}\n", [b"{} ", b"\t{}"]),
    "a header in a line": (b"{}\nContent-Length: 2\n\n{}\n", [b"{}", b"Content-Length: 2", b"{}"]),
    "CR inside": (b"{\r}\n", [b"{\r}"]),
    "what is no JSON": (b"{\n}\n", [b"{", b"}"]),
}
HEADERS: dict[str, tuple[bytes, list[bytes]]] = {
    "headers": (frame(b"{}") + b"{}" + frame(b"\n") + b"\n", [b"{}", b"\n"]),
    "headers after blanks": (BOM + b"\r\n\n " + frame(b"{}") + b"{}", [b"{}"]),
    "headers, LF only": (b"content-length:2\n\n{}", [b"{}"]),
    "another header first": (b"X: {\r\nContent-Length: 2\r\n\r\n[]", [b"[]"]),
}


@pytest.mark.parametrize("name", STREAMS | HEADERS)
def test_every_cut_of_a_stream(name: str) -> None:
    """Into two, into three, and into single bytes; told by its first byte, or known before."""
    stream, bodies = (STREAMS | HEADERS)[name]
    wanted = [Body(body) for body in bodies]
    size = len(stream)
    pairs = [[first, second] for first in range(size + 1) for second in range(size - first + 1)]
    for cuts in [*pairs, [1] * size]:
        framer = AnyFramer(1000)
        assert cut_up(framer, stream, cuts) == wanted, cuts
        assert not framer.mid_message
        assert framer.encode(b"x")[2] == (b"\n" if name in STREAMS else b"")
        if name in STREAMS:
            assert cut_up(LineFramer(1000), stream, cuts) == wanted, cuts


TEXTS = st.text(st.sampled_from('a{}[]\\" é😀\r\t\ufeff'), max_size=12).map(str.encode)


@given(st.lists(TEXTS, max_size=5), st.lists(st.integers(1, 9), max_size=60))
def test_lines_come_back_however_they_are_cut(texts: list[bytes], cuts: list[int]) -> None:
    bodies = [b"{" + text + b"}" for text in texts]
    stream = b"".join(body + b"\n" for body in bodies)
    assert cut_up(AnyFramer(1000), stream, cuts) == [Body(body) for body in bodies]


@given(
    st.integers(11, 4 * EDGE),
    st.lists(st.integers(1, EDGE + 7), max_size=30),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_an_oversized_line_is_dropped_and_its_edges_kept(
    size: int, cuts: list[int], end: bytes
) -> None:
    body = b"{" + bytes(48 + index % 10 for index in range(size - 1))
    stream = body + end + b"[1]\n"
    framer = LineFramer(10)
    found: list[Body | Oversized] = []
    for cut in cuts:
        framer.receive(stream[:cut])
        stream = stream[cut:]
        found += events(framer)
        assert len(framer._buffer) <= 10 + 2 * EDGE
    framer.receive(stream)
    oversized, following = found + events(framer)
    assert following == Body(b"[1]")
    assert isinstance(oversized, Oversized)
    assert oversized.length - size in (0, len(end) - 1)
    assert oversized.head == body[:EDGE]
    tail = oversized.tail.rstrip(b"\r")
    assert body.endswith(tail) and len(tail) >= min(size, EDGE) - 1
    assert not framer.mid_message


@pytest.mark.parametrize("limit", [3, 4, 5])
def test_the_limit_counts_the_line_without_its_end(limit: int) -> None:
    for end in (b"\n", b"\r\n"):
        framer = AnyFramer(limit)
        framer.receive(b"{12}" + end)
        event = framer.next_event()
        assert event == (Body(b"{12}") if limit >= 4 else Oversized(4, b"{12}", b"{12}"))


def test_the_limit_may_change_between_lines() -> None:
    framer = AnyFramer(100)
    framer.receive(b"{}\n{23}\n")
    assert framer.next_event() == Body(b"{}")
    framer.max_body = 3
    assert framer.max_body == 3
    assert framer.next_event() == Oversized(4, b"{23}", b"{23}")
    framer.max_body = 4
    framer.receive(b"{23}\n")
    assert framer.next_event() == Body(b"{23}")


@pytest.mark.parametrize(
    ("stream", "inside"),
    [
        (b"", False),
        (b"\n", False),
        (b" \r\n\t", False),
        (BOM, False),
        (b"{", True),
        (b"{}", True),
        (b"{}\r", True),
        (b"{}\n", False),
        (b"{}\n  ", False),
        (b"{}\n[", True),
        (b"C", True),
        (b"Content-Length: 2\r\n\r\n", True),
        (b"Content-Length: 2\r\n\r\n{", True),
        (b"Content-Length: 2\r\n\r\n{}", False),
        (b"{" + b"a" * 3 * EDGE, True),
        (b"{" + b"a" * 3 * EDGE + b"\n", False),
    ],
)
def test_whether_the_end_would_cut_a_message(stream: bytes, inside: bool) -> None:
    framer = AnyFramer(100)
    framer.receive(stream)
    events(framer)
    assert framer.mid_message is inside


def test_nothing_but_blanks_is_not_kept() -> None:
    framer = AnyFramer(10)
    for _ in range(1000):
        framer.receive(b" \n" * 1000)
        assert framer._framer is None
        assert framer.next_event() is None
        assert not framer.mid_message
    framer.receive(b"{}\n")
    assert framer.next_event() == Body(b"{}")
