"""A part of a text that is too large to hold: decoded and counted chunk by chunk."""

import codecs
from collections.abc import Iterable, Iterator

import msgspec

from pinfold.text.codec import encoding_of, escaping, printable
from pinfold.text.lines import Selection, Window, normalize, too_short
from pinfold_protocol.errors import ToolError


class Streamed(msgspec.Struct, frozen=True):
    """What was cut out, and what is known of the file without having read it all."""

    selection: Selection
    encoding: str
    mark: bytes


def select_from(chunks: Iterable[bytes], encoding: str | None, window: Window) -> Streamed:
    """Cut `window` out of a file's bytes. Needs no more memory than `window.max_bytes` and two
    chunks; reads no further than it must.

    Raises ToolError `binary` or `invalid-arguments`, as decoding a whole file does, and
    `undecodable` where the encoding was not named.
    """
    source = iter(chunks)
    first = next(source, b"")
    mark, name, lenient = encoding_of(first, encoding)
    pieces = _normalized(_decoded(first[len(mark) :], source, name, lenient, len(mark)))
    return Streamed(_select(pieces, window), name, mark)


def _decoded(
    first: bytes, rest: Iterator[bytes], name: str, lenient: bool, offset: int
) -> Iterator[str]:
    """What cannot be decoded is U+FFFD if that is wanted, byte by byte, as of a whole file."""
    decoder = codecs.getincrementaldecoder(name)(escaping(name) if lenient else "strict")
    chunk: bytes | None = first
    while chunk is not None:
        following = next(rest, None)
        try:
            text = decoder.decode(chunk, following is None)
            yield printable(text) if lenient else text
        except UnicodeDecodeError as error:
            at = offset + max(0, error.start)
            message = f"It is not valid {name}, near byte {at}. Name its encoding if you know it."
            raise ToolError("undecodable", message, byteOffset=at) from None
        offset += len(chunk)
        chunk = following


def _normalized(pieces: Iterator[str]) -> Iterator[str]:
    """Only `\\n` ends lines; a CR at the end of a piece waits for what follows."""
    held = ""
    for piece in pieces:
        text = held + piece
        held = "\r" if text.endswith("\r") else ""
        yield normalize(text[: len(text) - len(held)])
    if held:
        yield "\n"


def _select(pieces: Iterator[str], window: Window) -> Selection:
    rest = _skip_lines(pieces, window.offset)
    if isinstance(rest, int):
        return Selection("", rest, rest, None, False, None, None)
    length, rest = _skip_characters(rest, window.column)
    gathered = _Gathered(window)
    for piece in rest:
        if gathered.take(piece):
            break
    found = gathered.selection()
    short = too_short(window, length, found.text)
    return msgspec.structs.replace(found, line_length=short)


def _skip_lines(pieces: Iterator[str], lines: int) -> Iterator[str] | int:
    """The text from that line on, or how many lines there are if there are not so many."""
    left, last = lines, ""
    for piece in pieces:
        count = piece.count("\n") if left else 0
        if count < left:
            left -= count
            last = piece or last
            continue
        index = 0
        for _ in range(left):
            index = piece.find("\n", index) + 1
        return _chain(piece[index:], pieces)
    unended = bool(last) and not last.endswith("\n")
    return lines - left + unended if left else _chain("", pieces)


def _skip_characters(pieces: Iterator[str], count: int) -> tuple[int, Iterator[str]]:
    """How many characters were skipped, not beyond the end of the line, and the text from there."""
    skipped = 0
    for piece in pieces:
        left = count - skipped
        newline = piece.find("\n", 0, left)
        step = min(left, len(piece) if newline < 0 else newline)
        skipped += step
        if newline >= 0 or skipped == count:
            return skipped, _chain(piece[step:], pieces)
    return skipped, pieces


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


class _Gathered:
    """Text up to a number of lines and of bytes, and whether there is more."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._lines_left = window.limit or 1
        self._bytes_left = window.max_bytes
        self._parts: list[str] = []
        self._full = False
        self._cut = False
        self._more = False

    def take(self, piece: str) -> bool:
        """Take what fits. True when enough is known."""
        if self._full:
            self._more = self._more or bool(piece)
            return self._more
        index, lines = 0, 0
        while lines < self._lines_left and (newline := piece.find("\n", index)) >= 0:
            index, lines = newline + 1, lines + 1
        enough = lines == self._lines_left
        wanted = piece[:index] if enough else piece
        data = wanted.encode()
        if len(data) > self._bytes_left:
            wanted = data[: self._bytes_left].decode("utf-8", "ignore")
            if not wanted and not any(self._parts):
                wanted = piece[:1]  # or following the note would lead nowhere
            self._full = self._cut = True
        self._parts.append(wanted)
        self._bytes_left -= len(wanted.encode())
        self._lines_left -= lines
        self._full = self._full or enough
        self._more = len(wanted) < len(piece)
        return self._full and self._more

    def selection(self) -> Selection:
        text = "".join(self._parts)
        start = self._window.offset
        if self._cut and "\n" in text:  # whole lines, where there is one
            text = text[: text.rfind("\n") + 1]
        breaks = text.count("\n")
        inside = not text.endswith("\n") and bool(text)
        end = start + breaks + inside
        if not self._more:
            return Selection(text, start, end, None, False, None, None)
        column = 0
        if inside:
            tail = len(text) - (text.rfind("\n") + 1)
            column = tail + (0 if breaks else self._window.column)
        return Selection(text, start, end, None, self._cut, start + breaks, column)
