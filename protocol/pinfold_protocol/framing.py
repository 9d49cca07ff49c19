"""Bytes ↔ message bodies, sans I/O: the Language Server Protocol's base framing, and lines.

Feed what was read to `receive`, take events with `next_event` until it answers None. In the base
framing header names count without regard to case, blanks around the value are optional, a bare LF
ends a line, unknown headers are ignored, and `Content-Length` counts bytes. MCP's framing is one
message a line; blank lines are ignored.
"""

from collections.abc import Callable

import msgspec

MAX_LENGTH = 1 << 30
MAX_HEADER = 64 * 1024
EDGE = 4096
"""How much of a drained body's beginning and end is kept, in bytes."""


_SHORT = 32
"""Within so many bytes a header block ends that has one line."""
_BLANKS = b" \t\r\n\xef\xbb\xbf"
"""Also a byte-order mark: some shells put one before what they pipe."""


class FramingError(Exception):
    """The stream cannot be trusted any more; the message says why."""


class Body(msgspec.Struct, frozen=True):
    """One whole message body."""

    data: bytes


class Oversized(msgspec.Struct, frozen=True):
    """A body above the limit was drained: its length, its first and its last `EDGE` bytes."""

    length: int
    head: bytes
    tail: bytes


def frame(body: bytes) -> bytes:
    """The header block that goes before `body`."""
    return b"Content-Length: %d\r\n\r\n" % len(body)


class Framer:
    """A stream of bytes cut into bodies. `max_body` may be changed at any time."""

    def __init__(self, max_body: int) -> None:
        self.max_body = max_body
        self._buffer = bytearray()
        self._scanned = 0
        self._length: int | None = None
        self._drained = 0
        self._head = b""

    def receive(self, data: bytes) -> None:
        """Take more bytes in."""
        self._buffer += data

    @property
    def mid_message(self) -> bool:
        """Whether the end of input now would cut a message."""
        return bool(self._buffer) or self._length is not None

    def next_event(self) -> Body | Oversized | None:
        """The next message, or None where more bytes are needed.

        Raises FramingError where a header block has no valid length.
        """
        if self._length is None and not (self._buffer and self._take_header()):
            return None
        length = self._length or 0
        if length > self.max_body or self._drained:
            return self._drain(length)
        if len(self._buffer) < length:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[:length])
        self._consume(length)
        return Body(body)

    def _consume(self, count: int) -> None:
        del self._buffer[:count]
        self._length = None
        self._scanned = 0

    def _take_header(self) -> bool:
        name, colon, rest = bytes(self._buffer[:_SHORT]).partition(b": ")
        text, blank, _ = rest.partition(b"\r\n\r\n")
        if blank and name == b"Content-Length" and text.isdigit():  # as nearly all are
            end: int | None = len(name) + len(colon) + len(text) + len(blank)
        elif (end := self._end_of_header()) is not None:
            text = _content_length(bytes(self._buffer[:end]))
        elif len(self._buffer) > MAX_HEADER:
            raise FramingError("a header block that does not end")
        else:
            return False
        self._length = _checked_length(text)
        del self._buffer[:end]
        self._scanned = 0
        return True

    def _end_of_header(self) -> int | None:
        """The index after the blank line; each line ends in LF, with or without CR."""
        buffer = self._buffer
        start = self._scanned
        while (newline := buffer.find(b"\n", start)) >= 0:
            if buffer[start:newline].rstrip(b"\r") == b"":
                return newline + 1
            start = self._scanned = newline + 1
        return None

    def _drain(self, length: int) -> Oversized | None:
        take = min(len(self._buffer), length - self._drained)
        whole = self._drained + take == length
        if not self._head and (whole or take >= EDGE):
            self._head = bytes(self._buffer[: min(take, EDGE)])
        if not whole:
            # The last EDGE bytes so far stay: what follows decides whether they are the tail.
            spare = max(0, take - EDGE)
            self._drained += spare
            del self._buffer[:spare]
            return None
        tail = bytes(self._buffer[max(0, take - EDGE) : take])
        event = Oversized(length, self._head, tail)
        self._consume(take)
        self._drained, self._head = 0, b""
        return event


class LineFramer:
    """The same for one message a line, each ended by LF, with or without CR."""

    def __init__(self, max_body: int) -> None:
        self.max_body = max_body
        self._buffer = bytearray()
        self._scanned = 0
        self._dropped = 0
        self._head = b""

    def receive(self, data: bytes) -> None:
        """Take more bytes in."""
        self._buffer += data

    @property
    def mid_message(self) -> bool:
        """Whether the end of input now would cut a message."""
        return bool(self._buffer.strip()) or self._dropped > 0

    def next_event(self) -> Body | Oversized | None:
        """The next message, or None where more bytes are needed."""
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            body = bytes(self._buffer[:end]).rstrip(b"\r")
            del self._buffer[: end + 1]
            self._scanned = 0
            if self._dropped or len(body) > self.max_body:
                return self._oversized(body)
            if body.strip(_BLANKS):
                return Body(body.removeprefix(b"\xef\xbb\xbf"))
        self._scanned = len(self._buffer)
        if self._scanned > self.max_body + EDGE:
            self._drop()
        return None

    def _drop(self) -> None:
        """A line that is too long already: its end is kept, for what may stand there."""
        self._head = self._head or bytes(self._buffer[:EDGE])
        spare = len(self._buffer) - EDGE
        self._dropped += spare
        del self._buffer[:spare]
        self._scanned = len(self._buffer)

    def _oversized(self, rest: bytes) -> Oversized:
        event = Oversized(
            self._dropped + len(rest), self._head or rest[:EDGE], rest[-EDGE:] if rest else b""
        )
        self._dropped, self._head = 0, b""
        return event


class AnyFramer:
    """Either framing, told by the first byte that is no blank: a line begins with `{` or `[`, a
    header block with a letter. `receive` and `next_event` are then those of that framing."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._framer: Framer | LineFramer | None = None
        self.receive: Callable[[bytes], None] = self._receive_first
        self.next_event: Callable[[], Body | Oversized | None] = lambda: None

    @property
    def max_body(self) -> int:
        """The limit, in bytes. It may be changed at any time."""
        return self._max_body

    @max_body.setter
    def max_body(self, value: int) -> None:
        self._max_body = value
        if self._framer is not None:
            self._framer.max_body = value

    def _receive_first(self, data: bytes) -> None:
        data = data.lstrip(_BLANKS)
        if data:
            framer = (LineFramer if data[:1] in b"{[" else Framer)(self._max_body)
            self._framer, self.receive, self.next_event = framer, framer.receive, framer.next_event
            framer.receive(data)

    @property
    def mid_message(self) -> bool:
        """Whether the end of input now would cut a message."""
        return self._framer is not None and self._framer.mid_message

    def encode(self, body: bytes) -> tuple[bytes, bytes, bytes]:
        """What goes out for a body, in pieces, in the framing that came in."""
        if isinstance(self._framer, LineFramer):
            return b"", body, b"\n"
        return frame(body), body, b""


def _content_length(block: bytes) -> bytes:
    found: set[bytes] = set()
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-length":
            found.add(value.strip())
    if len(found) != 1:
        raise FramingError("a header block without one Content-Length")
    return found.pop()


def _checked_length(text: bytes | bytearray) -> int:
    if not text.isdigit() or len(text) > 10 or int(text) > MAX_LENGTH:
        raise FramingError("a header block without a valid Content-Length")
    return int(text)
