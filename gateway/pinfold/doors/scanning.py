"""JSON for what starts all the time: `json` costs as much to import as all of the policy.

The standard library's scanner in C does the work; where there is none, `json` does.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Scanning:
    """How the standard library's scanner in C is told to read."""

    strict = True
    object_hook = None
    object_pairs_hook: "Callable[[Any], Any] | None" = None
    parse_float, parse_int = float, int
    memo: "dict[str, str]" = {}  # noqa: RUF012 - what the scanner asks for

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf"))


class _Finite(_Scanning):
    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")


def loads(text: str, *, finite: bool = False, pairs: "Callable[[Any], Any] | None" = None) -> "Any":
    """A JSON text as data; `finite`: without NaN and infinities. `pairs` makes an object of all its
    members in their order. Raises ValueError, RecursionError."""
    blanks = " \t\n\r"
    start = len(text) - len(text.lstrip(blanks))
    try:
        from _json import make_scanner

        kind = (_Finite if finite else _Scanning)()
        kind.object_pairs_hook = pairs
        value, end = make_scanner(kind)(text, start)  # type: ignore[arg-type]
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - not there, or it has something to say: `json` says it well
        import json

        constant = _Finite.parse_constant if finite else None
        return json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
    if text[end:].strip(blanks):
        raise ValueError("more than one value")
    return value


def quoted(text: str) -> str:
    """A string as JSON, in ASCII."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text)
    return str(encode_basestring_ascii(text))
