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
    """Take every `pinfold/` key out of a value and out of every `_meta` in it, in place: those are
    the gateway's own. What is deeper and no `_meta` is somebody's data. Returns the value."""
    if isinstance(value, dict):
        _drop_ours(value)
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            meta = each.get("_meta")
            if isinstance(meta, dict):
                _drop_ours(meta)
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return value


def _drop_ours(members: dict[str, Any]) -> None:
    for name in [name for name in members if name.startswith("pinfold/")]:
        del members[name]
