"""JSON text to Python and back: msgspec, and the standard library where that refuses (`slowly`)."""

from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def parse(body: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises ValueError if it is none, or nested too deeply."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        from pinfold.doors.slowly import parse_slowly  # few hosts ever need it

        return parse_slowly(body, error)


def serialize(value: Any) -> bytes:
    """JSON in UTF-8; a lone surrogate is escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        from pinfold.doors.slowly import serialize_slowly

        return serialize_slowly(value)
