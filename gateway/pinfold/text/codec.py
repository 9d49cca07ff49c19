"""Bytes to text and back, without loss: what cannot be decoded comes back as it was.

A file is UTF-8 unless a mark says UTF-16 or UTF-32. In UTF-8 an undecodable byte becomes a lone
surrogate (PEP 383), so that encoding restores it; `undecodable` says that there are any.
"""

import codecs

import attrs

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
_UNICODE = frozenset(name for _, name in _MARKS)
MARK = "\ufeff"


@attrs.frozen
class Decoded:
    """Text with its line endings as they are, and without its mark."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    undecodable: bool = False

    def encode(self, text: str) -> bytes:
        """`text` in this encoding, behind the same mark."""
        errors = "surrogateescape" if self.encoding == "utf-8" else "strict"
        return self.mark + text.encode(self.encoding, errors)


def decode(data: bytes, encoding: str | None = None) -> Decoded:
    """Decode a file's bytes.

    Raises ToolError `binary`, `undecodable` (UTF-16 or UTF-32 that is damaged), or
    `invalid-arguments` for an encoding that is not supported.
    """
    mark, found = next((pair for pair in _MARKS if data.startswith(pair[0])), (b"", "utf-8"))
    require_encoding(encoding, found)
    if found == "utf-8" and b"\0" in data[:BINARY_PROBE]:
        raise ToolError("binary", "It is a binary file (a NUL byte near its beginning), not text.")
    body = data[len(mark) :]
    if found == "utf-8":
        try:
            return Decoded(body.decode("utf-8"), found, mark)
        except UnicodeDecodeError:
            return Decoded(body.decode("utf-8", "surrogateescape"), found, mark, True)
    try:
        return Decoded(body.decode(found), found, mark)
    except UnicodeDecodeError as error:
        at = error.start + len(mark)
        raise ToolError("undecodable", f"It is not valid {found}: byte {at} and on.") from None


def require_supported(encoding: str | None) -> None:
    """Raise ToolError unless `encoding` is absent, or one that this version knows."""
    if encoding is None:
        return
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = ""
    if name not in _UNICODE and name not in ("utf-8-sig", "utf-16", "utf-32"):
        raise ToolError(
            "invalid-arguments",
            f"encoding: {encoding!r} is not supported by this version; UTF-8, UTF-16 and UTF-32 "
            "are recognised without being named.",
            path="encoding",
        )


def require_encoding(encoding: str | None, found: str) -> None:
    """Raise ToolError unless `encoding` is absent, or the one that the file has."""
    require_supported(encoding)
    if encoding is None:
        return
    name = codecs.lookup(encoding).name
    if not (found == name or found.startswith(f"{name}-") or name == f"{found}-sig"):
        message = f"encoding: the file is {found}, and this version writes no other: {encoding!r}"
        raise ToolError("invalid-arguments", message, path="encoding")


def first_undecodable(decoded: Decoded) -> tuple[int, int]:
    """The line (from 0) and the byte offset of the first undecodable byte."""
    index = next(i for i, c in enumerate(decoded.text) if "\udc80" <= c <= "\udcff")
    before = decoded.text[:index]
    line = before.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    return line, len(decoded.encode(before))


def printable(text: str) -> str:
    """For showing only: a lone surrogate becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
