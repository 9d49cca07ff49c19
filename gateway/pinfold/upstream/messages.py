"""JSON to and from an upstream, by the standard library: numbers stay as they came, whatever their
size."""

import json
from typing import Any


def parse(line: bytes) -> Any:
    """The value of a line. Raises ValueError if it is none, or nested too deeply."""
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def line_of(message: dict[str, Any]) -> bytes:
    """A message as a line, written anew from the values: what was given twice in it is there once.

    Raises ValueError if it is nested too deeply.
    """
    whole = {"jsonrpc": "2.0", **message}
    try:
        text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(whole, separators=(",", ":")).encode() + b"\n"
    except RecursionError:
        raise ValueError("nested too deeply") from None


def without_ours(value: Any) -> Any:
    """Take every `pinfold/` key out of every `_meta` in a value, in place: those are the gateway's
    own. Returns the value."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            meta = each.get("_meta")
            if isinstance(meta, dict):
                for name in [name for name in meta if name.startswith("pinfold/")]:
                    del meta[name]
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return value
