"""Bytes to text and back, without loss: an edit splices bytes, and touches no others.

A file is UTF-8 unless a mark says UTF-16 or UTF-32, or a caller names its encoding. A byte that
cannot be decoded becomes a lone surrogate (as in PEP 383, U+DC00 and its value), so that it can be
counted and is never written as anything else.
"""

import codecs
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from pinfold_protocol.errors import ToolError

BINARY_PROBE = 8192
"""How many bytes are looked at for a NUL."""

# Longest first: the mark of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Codecs whose bytes mean something else depending on what stood before: not to be spliced.
_STATEFUL = ("iso2022", "hz", "utf-7", "punycode", "idna", "unicode", "raw-unicode", "undefined")
_WIDE = {"utf-16": 2, "utf-32": 4}
"""Encodings of units that have so many bytes."""
_WITHOUT_SURROGATES = frozenset({"utf-8", "ascii", *(name for _, name in _MARKS)})
"""Encodings whose strict decoders make no lone surrogates."""
_ESCAPED = re.compile("[\udc00-\udcff]")
_ESCAPE = "pinfold.escape"
MARK = "\ufeff"
_MARKED = frozenset(name for _, name in _MARKS)
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
IMAGE_STARTS = frozenset((b"\x89", b"\xff", b"R", b"G"))
_MARK_STARTS = frozenset(mark[:1] for mark, _ in _MARKS)


def image_type(head: bytes) -> str | None:
    """The MIME type of an image, by its first bytes; None if it is none that is known. All begin
    with one of IMAGE_STARTS."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:6] in (b"GIF87a", b"GIF89a") and b"\0" in head[6:13]:  # not a text about GIF
        return "image/gif"
    return next((kind for sign, kind in _IMAGES if head.startswith(sign)), None)


class Splice(msgspec.Struct, frozen=True):
    """Replace `text[start:end]` by `insert`; indices count code points."""

    start: int
    end: int
    insert: str


class Decoded(msgspec.Struct, frozen=True):
    """A file's bytes and the text they mean, line endings as they are, without the mark.

    `named`: the encoding was given by a caller, not found out. `mark_left_out`: what was put at its
    beginning began with a mark, which is kept and never added.
    """

    data: bytes
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    undecodable: bool = False
    named: bool = False
    mark_left_out: bool = False

    @property
    def unknown(self) -> bool:
        """Whether nothing says what encoding it is in, and it is not the usual one."""
        return self.undecodable and not self.named and not self.mark

    @property
    def shown(self) -> str:
        """The text for showing only: a lone surrogate is U+FFFD."""
        clean = self.encoding in _WITHOUT_SURROGATES and not self.undecodable
        return self.text if clean else printable(self.text)

    def spliced(self, splices: Sequence[Splice]) -> "Decoded":
        """The file with splices applied that do not overlap and are in order.

        Raises ToolError where an insert cannot be encoded.
        """
        if splices and splices[0].start == 0 and self._begins_with_mark(splices[0].insert):
            first = msgspec.structs.replace(splices[0], insert=splices[0].insert.lstrip(MARK))
            kept = msgspec.structs.replace(self, mark_left_out=True)
            return kept.spliced([first, *splices[1:]])
        offsets = _Offsets(self)
        texts: list[str] = []
        parts: list[bytes] = [self.mark]
        at = 0
        start = 0
        for splice in splices:
            here = offsets.of(splice.start)
            parts += (offsets.body[start:here], self._encoded(splice.insert))
            texts += (self.text[at : splice.start], splice.insert)
            at, start = splice.end, offsets.of(splice.end)
        data = b"".join((*parts, offsets.body[start:]))
        return msgspec.structs.replace(self, data=data, text="".join((*texts, self.text[at:])))

    def _encoded(self, text: str) -> bytes:
        if self.undecodable and not self.named and not text.isascii():
            raise ToolError(
                "undecodable",
                f"The file has bytes that are no valid {self.encoding}, so only ASCII text can be "
                "inserted, since anything else might mix two encodings. Name the encoding if you "
                "know it.",
            )
        return encode(text, self.encoding)

    def whole(self, text: str) -> "Decoded":
        """`text` as the whole content, in this encoding and behind the same mark, or none.

        Raises ToolError where it cannot be encoded.
        """
        left_out = self._begins_with_mark(text)
        body = text.lstrip(MARK) if left_out else text
        data = self.mark + encode(body, self.encoding)
        return Decoded(data, body, self.encoding, self.mark, False, self.named, left_out)

    def _begins_with_mark(self, text: str) -> bool:
        return text.startswith(MARK) and self.encoding in _MARKED


def encode(text: str, encoding: str) -> bytes:
    """Text to bytes, such that they mean the same text. Raises ToolError that names the first
    character that cannot be stored, and its place."""
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError as error:
        raise _not_storable(text, error.start, encoding) from None
    if not encoding.startswith("utf-"):  # some encoders put a look-alike in its place
        back = data.decode(encoding, "replace")
        if back != text:
            pairs = enumerate(zip(text, back, strict=False))
            at = next((i for i, (a, b) in pairs if a != b), min(len(text), len(back)) - 1)
            raise _not_storable(text, at, encoding)
    return data


def _not_storable(text: str, at: int, encoding: str) -> ToolError:
    line = text[:at].count("\n")
    message = (
        f"{text[at]!r} (U+{ord(text[at]):04X}), character {at}, in line {line + 1} of this text, "
        f"cannot be stored in {encoding}."
    )
    return ToolError("invalid-arguments", message, character=at, line=line, encoding=encoding)


class _Offsets:
    """Which byte of the body a character begins at."""

    def __init__(self, decoded: Decoded) -> None:
        self.body = decoded.data[len(decoded.mark) :]
        self._text = decoded.text
        self._encoding = decoded.encoding
        self._unicode = decoded.encoding.startswith("utf-")
        self._damaged = decoded.undecodable
        ascii_only = self._unicode and len(self.body) == len(self._text)
        self._one_byte_each = ascii_only or is_single_byte(decoded.encoding)
        self._table: list[int] | None = None
        self._known = (0, 0)

    def of(self, index: int) -> int:
        """The byte offset of character `index`; in ascending order this is linear in all."""
        if self._one_byte_each:
            return index
        if not self._unicode:
            self._table = self._table or self._tabulate()
            return self._table[index]
        character, offset = self._known if index >= self._known[0] else (0, 0)
        offset += self._size(self._text[character:index])
        self._known = (index, offset)
        return offset

    def _size(self, part: str) -> int:
        if (width := _width(self._encoding)) is None:
            return len(part.encode(self._encoding, "surrogateescape"))
        escaped = len(_ESCAPED.findall(part)) if self._damaged else 0
        return len(part.encode(self._encoding, "surrogatepass")) - escaped * (width - 1)

    def _tabulate(self) -> list[int]:
        """Byte by byte: these codecs write some characters in more ways than one, and some of
        their codes mean two characters."""
        decoder = codecs.getincrementaldecoder(self._encoding)(escaping(self._encoding))
        table = [0]
        for offset in range(len(self.body)):
            last = offset + 1 == len(self.body)
            found = decoder.decode(self.body[offset : offset + 1], last)
            for index, char in enumerate(found, 1):
                # A byte that stands for itself may be told late, when the next one has been seen.
                escaped = _is_escaped(char)
                if not escaped and index < len(found):
                    raise self._inseparable()
                table.append(table[-1] + 1 if escaped else offset + 1)
        if len(table) != len(self._text) + 1:
            raise self._inseparable()
        return table

    def _inseparable(self) -> ToolError:
        message = f"Its characters cannot be told apart in {self._encoding}; write it whole."
        return ToolError("undecodable", message)


@lru_cache(maxsize=64)
def is_single_byte(encoding: str) -> bool:
    """Whether each byte is a character in this encoding, or none at all."""
    for byte in range(256):
        try:
            bytes((byte,)).decode(encoding)
        except UnicodeDecodeError as error:
            if "undefined" not in error.reason and "not in range" not in error.reason:
                return False
    return True


def _is_escaped(char: str) -> bool:
    return "\udc00" <= char <= "\udcff"


def _width(encoding: str) -> int | None:
    """How many bytes a unit has, None where it is one."""
    return _WIDE.get(encoding[:6])


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join([chr(0xDC00 + byte) for byte in found]), error.end


codecs.register_error(_ESCAPE, _escape)


@lru_cache(maxsize=64)
def escaping(encoding: str) -> str:
    """What makes lone surrogates of bytes that cannot be decoded. Python's own is fast, but leaves
    bytes below 0x80 alone, and goes on in the middle of a unit of several bytes."""
    try:
        if _width(encoding) is None and bytes(range(0x80)).decode(encoding):
            return "surrogateescape"
    except UnicodeDecodeError:
        pass
    return _ESCAPE


def decode(data: bytes, encoding: str | None = None) -> Decoded:
    """Decode a file's bytes, in `encoding` if it is given.

    Raises ToolError `binary`, or `invalid-arguments` for an encoding that is none.
    """
    mark, name, named = encoding_of(data, encoding)
    return _decoded(data, mark, name, named=named)


def encoding_of(head: bytes, encoding: str | None) -> tuple[bytes, str, bool]:
    """By a file's first bytes and by what a caller says: its mark, its encoding, and whether the
    encoding was named. Raises ToolError `binary` or `invalid-arguments`."""
    name = None if encoding is None else codec_name(encoding)
    mark, found = _mark_of(head) if head[:1] in _MARK_STARTS else (b"", None)
    if name is not None and not _agrees(name, found):
        return b"", _without_mark(name), True
    if name is None and found in (None, "utf-8"):
        _require_text(head)
    return mark, found or "utf-8", name is not None


def _mark_of(head: bytes) -> tuple[bytes, str | None]:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return mark, name
    return b"", None


def new_file(content: str, encoding: str | None) -> Decoded:
    """A file that is not there yet: bytes as given, in UTF-8 or in `encoding`, with a mark where
    that encoding's name asks for one. Raises ToolError."""
    name = "utf-8" if encoding is None else codec_name(encoding)
    plain = _without_mark(name)
    marked = plain != name or (plain == "utf-8" and content.startswith(MARK))
    mark = next(mark for mark, found in _MARKS if found == plain) if marked else b""
    body = content.removeprefix(MARK) if mark else content
    data = mark + encode(body, plain)
    return Decoded(data, body, plain, mark, named=encoding is not None)


def _require_text(head: bytes) -> None:
    if head[:1] in IMAGE_STARTS and (kind := image_type(head)):
        message = f"It is an image ({kind}), not text: it cannot be read in parts, or edited. "
        message += "Use a program that knows its format."
        raise ToolError("binary", message)
    if b"\0" in head[:BINARY_PROBE]:
        at = head.index(0)
        message = (
            f"It has a NUL at byte {at}, as binary files do, which can be neither read nor edited. "
            "If it is text, as UTF-16 without a mark is, name its encoding."
        )
        raise ToolError("binary", message)


def _agrees(name: str, found: str | None) -> bool:
    """Whether a mark says what the caller says: `utf-16` names both of its byte orders."""
    return found is not None and (found.startswith(name) or name == f"{found}-sig")


def _without_mark(name: str) -> str:
    """The codec for content without a mark: the plain ones would add or expect one."""
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)


def _decoded(data: bytes, mark: bytes, encoding: str, *, named: bool) -> Decoded:
    body = data[len(mark) :] if mark else data
    try:
        return Decoded(data, body.decode(encoding), encoding, mark, named=named)
    except UnicodeDecodeError:
        text = body.decode(encoding, escaping(encoding))
        return Decoded(data, text, encoding, mark, undecodable=True, named=named)


def codec_name(encoding: str) -> str:
    """Python's name of an encoding.

    Raises ToolError `invalid-arguments` for what is no encoding of text, or keeps a state between
    characters, which an edit in the middle could not respect.
    """
    try:
        info = codecs.lookup(encoding)
        is_text = bool(getattr(info, "_is_text_encoding", True))
    except (LookupError, ValueError):
        message = f"encoding: there is none called {encoding!r}. utf-8 and cp1252 are usual ones."
        raise ToolError("invalid-arguments", message, path="encoding") from None
    name = info.name
    if not is_text or name.replace("_", "-").startswith(_STATEFUL):
        message = f"encoding: {encoding!r} cannot be used for files that are edited. Use another."
        raise ToolError("invalid-arguments", message, path="encoding")
    return name


def first_undecodable(decoded: Decoded) -> tuple[int, int]:
    """The line (from 0) and the byte offset of the first undecodable byte."""
    index = next(i for i, c in enumerate(decoded.text) if _is_escaped(c))
    before = decoded.text[:index]
    line = before.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    return line, len(decoded.mark) + _Offsets(decoded).of(index)


def printable(text: str) -> str:
    """For showing only: a lone surrogate becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
