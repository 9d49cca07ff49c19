"""The id of a message whose body was too large to keep: only its edges are known.

A scanner that knows depth and strings, forwards from the beginning and backwards from the end, so
that an `id` inside of the params is never mistaken for the request's.
"""

import json
import re

from pinfold_protocol.framing import Oversized

_TOKEN = re.compile(rb'\s*("(?:[^"\\]|\\.)*+"|[\[\]{}:,]|[^\s"\[\]{}:,]+)')


def id_of_oversized(event: Oversized) -> int | str | None:
    """The id of a request, if it stands in the first or the last bytes; None also for an answer."""
    head = _members_forward(event.head)
    if "method" not in head and ("result" in head or "error" in head):
        return None
    return _found(head, event)


def id_of_oversized_answer(event: Oversized) -> int | str | None:
    """The id of an answer, if it stands there; None also for what may be no answer."""
    head = _members_forward(event.head)
    return None if "method" in head else _found(head, event)


def _found(head: dict[str, bytes], event: Oversized) -> int | str | None:
    found = head.get("id") or _members_backward(event.tail).get("id")
    return _as_id(found) if found else None


def _members_forward(text: bytes) -> dict[str, bytes]:
    """The members of the outermost object, as far as the text goes: scalars, or b"" for others."""
    members: dict[str, bytes] = {}
    depth, at, key, expecting = 0, 0, None, False
    while token := _TOKEN.match(text, at):
        value, at = token.group(1), token.end()
        if depth == 1 and expecting and key is not None:
            # A scalar that touches the end may go on behind it.
            cut = at == len(text) and value[:1] not in b'"[{'
            members[key] = b"" if value in (b"{", b"[") or cut else value
            key, expecting = None, False
        elif depth == 1 and value == b":" and key is not None:
            expecting = True
            members[key] = b""  # its value may be cut off
        elif depth == 1 and value[:1] == b'"':
            key = _text(value)
        depth += (value in (b"{", b"[")) - (value in (b"}", b"]"))
    return members


def _members_backward(text: bytes) -> dict[str, bytes]:
    """The last members of the outermost object, as far as the text goes."""
    members: dict[str, bytes] = {}
    at = _blank_before(text, len(text))
    if text[at - 1 : at] != b"}":
        return members
    at -= 1
    while True:
        end = _blank_before(text, at)
        start = _value_before(text, end)
        colon = None if start is None else _blank_before(text, start)
        if start is None or colon is None or text[colon - 1 : colon] != b":":
            return members
        key_end = _blank_before(text, colon - 1)
        key_start = _string_before(text, key_end)
        if key_start is None:
            return members
        key = _text(text[key_start:key_end])
        if key is not None:
            members.setdefault(key, text[start:end])
        at = _blank_before(text, key_start)
        if text[at - 1 : at] != b",":
            return members
        at -= 1


def _blank_before(text: bytes, at: int) -> int:
    while at > 0 and text[at - 1] in b" \t\r\n":
        at -= 1
    return at


def _string_before(text: bytes, end: int) -> int | None:
    """Where the string that ends at `end` begins."""
    if text[end - 1 : end] != b'"':
        return None
    at = text.rfind(b'"', 0, end - 1)
    while at >= 0:
        slashes = at - len(text[:at].rstrip(b"\\"))
        if slashes % 2 == 0:
            return at
        at = text.rfind(b'"', 0, at)
    return None


def _value_before(text: bytes, end: int) -> int | None:
    """Where the value that ends at `end` begins; None if that is not in the text."""
    at, depth = end, 0
    while at > 0:
        last = text[at - 1 : at]
        start: int | None = at - 1
        if last == b'"':
            start = _string_before(text, at)
        elif last in (b"}", b"]"):
            depth += 1
        elif last in (b"{", b"["):
            depth -= 1
        elif depth == 0:
            start = at - len(re.split(rb"[\s:,{}\[\]\"]", text[:at])[-1])
        if start is None or depth < 0:
            return None
        at = start
        if depth == 0:
            return at
    return None


def _text(token: bytes) -> str | None:
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _as_id(token: bytes) -> int | str | None:
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if type(value) in (int, str) else None
