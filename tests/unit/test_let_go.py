"""A call that failed lets go of everything: its arguments, what it read, descriptors.

What is in a ring stays until a collection, which may be hours away; so a collection right after a
call must find nothing of ours.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pinfold.calls import Asking, Ticket
from pinfold_protocol.errors import RpcError
from pinfold_protocol.tools import ToolsCallParams
from support import Embedded, write

NO_DIGEST = "0" * 64
Attempt = Callable[[Embedded, Any, str], Any]


def calling(tool: str, **arguments: Any) -> Attempt:
    """The path is that of an argument called `at`, below the memory root."""

    def attempt(place: Embedded, session: Any, memory: str) -> Any:
        at = arguments.get("at")
        rest = {name: value for name, value in arguments.items() if name != "at"}
        return place.call(session, tool, **rest, file_path=f"{memory}/{at}")

    return attempt


def explaining(**arguments: Any) -> Attempt:
    return lambda place, session, memory: place.explain(session, "edit", **arguments)


def cancelled(place: Embedded, session: Any, memory: str) -> Any:
    ticket = Ticket()
    ticket.cancel()
    arguments = {"file_path": f"{memory}/a.md", "content": "x"}
    params = ToolsCallParams(session.session_id, "write_file", arguments)
    return place.gateway.call(params, ticket)


ATTEMPTS: dict[str, Attempt] = {
    "denied": calling("write_file", at="pinned/a.md", content="x"),
    "stale": calling("write_file", at="a.md", content="x", expected_sha256=NO_DIGEST),
    "no-match": calling("edit", at="a.md", old_string="nowhere", new_string="x"),
    "invalid-arguments": calling("edit", at="a.md", old_string="a", new_string="x", bogus=1),
    "not-found": calling("read_file", at="nowhere.md"),
    "is-directory": calling("write_file", at="", content="x"),
    "undecodable": calling("read_file", at="latin.md"),
    "outside-memory": calling("write_file", at="../../out.md", content="x"),
    "asks": calling("read_file", at="asked.md"),
    "unknown tool": calling("nope", at="a.md"),
    "unknown session": lambda place, session, memory: place.gateway.sessions.get("nobody"),
    "explain: no path": explaining(file_path=5),
    "explain: no such argument": explaining(file_path="a", bogus=1),
    "cancelled": cancelled,
}


@contextmanager
def rings() -> Iterator[list[Any]]:
    """What only a collection would have freed, at the end."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_call_that_fails_is_in_no_ring(tmp_path: Path, name: str) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/a.md", "a\n")
    write(f"{memory}/latin.md", b"caf\xe9\n")
    write(f"{memory}/asked.md", "a\n")
    rules = [{"decision": "ask", "tools": ["read_file"], "paths": ["asked.md"]}]
    session = place.open("dream", rules=rules)

    def once() -> None:
        try:
            ATTEMPTS[name](place, session, memory)
        except (RpcError, Asking):
            pass
        except Exception as error:
            if name != "cancelled":
                raise
            assert type(error).__name__ == "Cancelled"

    once()  # what is imported late, and found out once
    before = set(os.listdir("/proc/self/fd"))
    with rings() as found:
        once()
    frames = [each.f_code.co_qualname for each in found if isinstance(each, FrameType)]
    assert frames == [] and not any(isinstance(each, BaseException) for each in found)
    assert set(os.listdir("/proc/self/fd")) <= before
