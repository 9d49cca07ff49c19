"""JSON by the standard library, which is 5 to 10 times slower on large texts, and knows lone
surrogates: those are JSON all the same, and a request that holds one must be answered."""

import json
import re
from typing import Any

_MAX_DEPTH = 1000
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# Possessive: a long string must not leave a way back for each of its characters.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]')


def parse_slowly(body: bytes, refused: Exception) -> Any:
    """The value of a JSON text in UTF-8 that was refused, where that may be for a surrogate. Raises
    ValueError: what is wrong and where, without any of the text."""
    if not _SURROGATE.search(body):
        raise ValueError(_reason(refused)) from None
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not valid UTF-8 (byte {error.start})") from None
    if text.count("[") + text.count("{") > _MAX_DEPTH and _is_too_deep(text):
        raise ValueError("nested too deeply")
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"(line {error.lineno}, column {error.colno})"
        raise ValueError(f"{error.msg} {place}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(_reason(error)) from None


def serialize_slowly(value: Any) -> bytes:
    """JSON in ASCII."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _is_too_deep(text: str) -> bool:
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token.group()[0]
        if first in "[{":
            depth += 1
            if depth > _MAX_DEPTH:
                return True
        elif first in "]}":
            depth -= 1
    return False
