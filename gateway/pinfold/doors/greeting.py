"""The first answer, before the gateway is loaded: a host that spawns it waits for this one.

Most first messages are an `initialize` that needs nothing looked up. Such a one is answered here,
with the little that the answer needs; then the gateway is loaded, and is given the same message
like any other, but for its answer. Whatever is unusual is left to it altogether.
"""

import os
import select

from pinfold.doors import told
from pinfold.doors.scanning import loads, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pinfold.flags import Flags

_CHUNK = 64 * 1024
_HEADER = b"Content-Length: "
_LONGEST = 4096
"""Bytes that a pipe takes whole, if it takes any."""


class Greeting:
    """What was read before the gateway was there, and whether its first message was answered."""

    def __init__(self, received: bytes, unsent: bytes, *, answered: bool) -> None:
        self.received = received
        self.unsent = unsent
        self.answered = answered


def greet(reading: int, writing: int, flags: "Flags | None") -> Greeting:
    """Read what has come already, and answer it if that can be done at once. Waits for nothing.
    `flags` is None where the command line is for others to read."""
    received = _come(reading)
    answer = None if flags is None or not received else answer_to(received, flags)
    if answer is None or len(answer) > _LONGEST or not _ready(writing, select.POLLOUT):
        return Greeting(received, b"", answered=False)
    try:
        sent = os.write(writing, answer)
    except OSError:  # nobody is there: the gateway will find that out
        sent = 0
    return Greeting(received, answer[sent:], answered=True)


def _come(reading: int) -> bytes:
    if not _ready(reading, select.POLLIN):
        return b""
    try:
        return os.read(reading, _CHUNK)
    except OSError:
        return b""


def _ready(descriptor: int, event: int) -> bool:
    try:
        poll = select.poll()
        poll.register(descriptor, event)
        return any(found & event for _, found in poll.poll(0))
    except OSError:
        return False


def answer_to(received: bytes, flags: "Flags") -> bytes | None:
    """The framed answer to the first of the messages, if it is there whole and a plain
    `initialize`; None otherwise."""
    body, line = _first(received)
    if body.count(b'"initializationOptions"') > 1:
        return None  # which of them counts is not for here
    try:
        message = loads(body.decode(), finite=True)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not set(message) <= {"jsonrpc", "id", "method", "params"}:
        return None
    request_id, params = message.get("id"), message.get("params", {})
    is_id = type(request_id) is str or (type(request_id) is int and abs(request_id) < 2**53)
    if message.get("jsonrpc") != "2.0" or message.get("method") != "initialize" or not is_id:
        return None
    result = _result(params, flags) if isinstance(params, dict) else None
    if result is None:
        return None
    answer = f'{{"jsonrpc":"2.0","id":{_json(request_id)},"result":{_json(result)}}}'.encode()
    return answer + b"\n" if line else _HEADER + b"%d\r\n\r\n" % len(answer) + answer


def _first(received: bytes) -> tuple[bytes, bool]:
    """The first body, and whether messages are lines; empty where it is not there whole, or is
    framed in another way than most do."""
    if received[:1] == b"{":
        line, end, _ = received.partition(b"\n")
        return (line if end else b""), True
    header, _, rest = received.partition(b"\r\n\r\n")
    number = header.removeprefix(_HEADER)
    if number == header or not number.isdigit() or len(number) > 5 or len(rest) < int(number):
        return b"", False
    return rest[: int(number)], False


def _result(params: "dict[str, Any]", flags: "Flags") -> "dict[str, Any] | None":
    """None where something must be looked up, or looked at more closely."""
    if "_meta" in params:
        return None
    if "protocolVersion" in params:
        if not flags.suffice or flags.upstream is not None or flags.tool_prefix:
            return None
        profile = flags.profile or "main"
        text = told.instructions(profile, "", protected=profile in told.PROTECTING)
        return told.mcp_initialized(told.agreed(params["protocolVersion"]), text, upstream=False)
    capabilities = params.get("capabilities")
    if params.get("initializationOptions") is not None or not isinstance(capabilities, dict | None):
        return None
    return None if capabilities and "textDocument" in capabilities else told.initialized({})


def _json(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(k)}:{_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)
