"""The first answer is the same whether the gateway is loaded before it or after it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.doors import told
from pinfold.doors.greeting import answer_to, greet
from pinfold.doors.native import _HANDLERS, Native
from pinfold.doors.rpc import Rpc
from pinfold.doors.wire import Wire
from pinfold.flags import Flags, read_plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
PARAMS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "processId": st.none() | JSON,
        "capabilities": st.just({}) | st.just({"textDocument": {"hover": {}}}) | JSON,
        "initializationOptions": st.none()
        | st.just({})
        | st.just({"pinfold": {}})
        | st.just({"pinfold": {"no": 1}})
        | JSON,
        "protocolVersion": st.sampled_from([*told.HANDSHAKES, "2025-03-26", "", "9"]) | JSON,
        "clientInfo": st.just({"name": "x", "version": "0"}) | JSON,
        "_meta": st.just({}) | JSON,
        "more": JSON,
    },
)
MESSAGES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON, "method": st.just("initialize") | st.text(max_size=9)},
    optional={
        "id": st.integers(-(2**70), 2**70) | st.text() | st.just("\ud800") | JSON,
        "params": PARAMS | JSON,
        "other": JSON,
    },
)
FLAGS = st.builds(
    Flags,
    profile=st.none() | st.sampled_from(["main", "dream", "extraction", "remember"]),
    tool_prefix=st.none() | st.sampled_from(["p_", "!"]),
    layout=st.none() | st.just("claude"),
    upstream=st.just(()) | st.just(("fs", "command")),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def framed(body: bytes, *, line: bool) -> bytes:
    return body + b"\n" if line else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def unframed(data: bytes, *, line: bool) -> Any:
    return json.loads(data if line else data.partition(b"\r\n\r\n")[2])


def loaded(data: bytes, flags: Flags) -> list[bytes]:
    """What the gateway itself answers, as bodies."""
    answers: list[bytes] = []

    async def run() -> None:
        reading, writing = os.pipe()
        try:
            wire = Wire(reading, writing, 1 << 20)
            native = Native(wire, lambda process: None, lambda: flags)
            native.rpc = Rpc(wire, native, lambda status: None)
            wire.send = answers.append  # type: ignore[method-assign,assignment]
            wire._received(data)
            native.close()
        finally:
            os.close(reading)
            os.close(writing)

    asyncio.run(run())
    return answers


@given(MESSAGES, FLAGS, st.booleans())
def test_it_answers_as_the_gateway_does_or_not_at_all(
    message: dict[str, Any], flags: Flags, line: bool
) -> None:
    data = framed(json.dumps(message).encode(), line=line)
    answer = answer_to(data, flags)
    if answer is not None:
        (other,) = loaded(data, flags)
        assert unframed(answer, line=line) == json.loads(other)


@pytest.mark.parametrize("line", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"processId": 1, "rootUri": None, "capabilities": {}},
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}},
    ],
)
def test_usual_first_messages_are_answered(params: Any, line: bool) -> None:
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    message |= {} if params is None else {"params": params}
    data = framed(json.dumps(message).encode(), line=line)
    answer = answer_to(data + b'{"more"', Flags(profile="dream"))
    assert answer is not None
    (other,) = loaded(data, Flags(profile="dream"))
    assert unframed(answer, line=line) == json.loads(other)


INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x",
        INITIALIZE,
        INITIALIZE[:-1] + b"\n",
        b"\xef\xbb\xbf" + INITIALIZE + b"\n",
        framed(INITIALIZE, line=False)[:-1],
        framed(INITIALIZE, line=False).replace(b": ", b":"),
        framed(INITIALIZE, line=False).replace(b"58", b"-58"),
        framed(INITIALIZE, line=False).replace(b"58", b"0000058"),
        framed(INITIALIZE, line=False).replace(b"\r", b""),
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        INITIALIZE.replace(b"{}", b'{"a":NaN}') + b"\n",
        INITIALIZE.replace(b"{}", b'{"a":"\xff"}') + b"\n",
        INITIALIZE.replace(b"{}", b'{"a":"\xed\xa0\x80"}') + b"\n",
        INITIALIZE + b"x\n",
    ],
)
def test_whatever_is_unusual_is_left_to_the_gateway(data: bytes) -> None:
    assert answer_to(data, Flags()) is None


def test_the_tables_are_those_of_the_gateway() -> None:
    assert list(told.METHODS) == list(_HANDLERS)


def test_nothing_is_read_or_written_that_would_have_to_wait() -> None:
    reading, host_out = os.pipe()
    host_in, writing = os.pipe()
    try:
        assert greet(reading, writing, Flags()).received == b""
        os.write(host_out, framed(INITIALIZE, line=True))
        os.set_blocking(writing, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writing, b"x" * 4096)
        greeting = greet(reading, writing, Flags())
        assert (greeting.received, greeting.answered) == (framed(INITIALIZE, line=True), False)
        os.close(host_out)
        assert greet(reading, writing, Flags()).received == b""
    finally:
        for descriptor in (reading, host_in, writing):
            os.close(descriptor)


def test_what_nobody_takes_is_left_to_the_gateway() -> None:
    reading, host_out = os.pipe()
    host_in, writing = os.pipe()
    os.close(host_in)
    try:
        os.write(host_out, framed(INITIALIZE, line=True))
        greeting = greet(reading, writing, Flags())
        assert greeting.answered and unframed(greeting.unsent, line=True)["id"] == 1
    finally:
        for descriptor in (reading, host_out, writing):
            os.close(descriptor)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ((), {}),
        (("--profile", "dream", "--project", "/x"), {"profile": "dream", "project": "/x"}),
        (("--layout", "claude", "--tool-prefix", "p_"), {"layout": "claude", "tool_prefix": "p_"}),
        (("--profile", "other"), None),
        (("--profile",), None),
        (("--profile=dream",), None),
        (("--prof", "dream"), None),
        (("--project", "-x"), None),
        (("--scope", "shell=deny"), None),
        (("--upstream", "fs"), None),
        (("--help", "x"), None),
    ],
)
def test_plain_flags_are_read_without_argparse(given: tuple[str, ...], known: Any) -> None:
    flags = read_plain(given)
    expected = None if known is None else vars(Flags(**known))
    assert (None if flags is None else vars(flags)) == expected


def test_the_first_answer_loads_neither_a_loop_nor_types() -> None:
    heavy = ["asyncio", "msgspec", "typing", "re", "json", "enum", "argparse", "orjson"]
    program = (
        "import sys, os; from pinfold import cli; from pinfold.flags import read_plain;"
        "from pinfold.doors import greeting;"
        f"assert greeting.answer_to({framed(INITIALIZE, line=True)!r}, read_plain(()));"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
