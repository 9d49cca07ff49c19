"""Framing, sans I/O: whole, byte by byte, and with whatever follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold_protocol.framing import EDGE, Body, Framer, FramingError, Oversized, frame

BODIES = st.lists(st.binary(max_size=40), max_size=5)


def events(framer: Framer) -> list[Body | Oversized]:
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
