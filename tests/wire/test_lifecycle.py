"""Beginning and end: initialize, shutdown, exit, signals, lost hosts, protected streams."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pinfold.doors.stdio import log_exception
from pinfold.tools.registry import TOOLS
from pinfold_protocol.methods import METHODS
from pinfold_protocol.session import PROFILES
from support import DEADLINE, SERVE, Raw, clean_env, framed, request

EXIT = {"jsonrpc": "2.0", "method": "exit"}


def test_initialize_tells_who_it_is() -> None:
    with Raw() as raw:
        result = raw.result("initialize", {"processId": os.getpid(), "capabilities": {}})
    assert result["serverInfo"]["name"] == "pinfold"
    ours = result["capabilities"]["experimental"]["pinfold"]
    assert ours["protocolVersion"] == 1
    assert ours["methods"] == [n for n, m in METHODS.items() if m.direction == "host-to-gateway"]
    assert ours["tools"] == list(TOOLS)
    assert ours["profiles"] == list(PROFILES)


@pytest.mark.parametrize("params", [{"absent": True}, None, {}, {"processId": None}])
def test_initialize_is_lenient_about_what_lsp_owns(params: Any) -> None:
    message = request(0, "initialize", None if params == {"absent": True} else params)
    with Raw() as raw:
        raw.send(message)
        assert raw.receive()["result"]["serverInfo"]["name"] == "pinfold"


BAD_OPTIONS: list[tuple[Any, str]] = [
    ({"memroy": {}}, "memroy"),
    ({"rules": {}}, "rules"),
    ({"rules": [{"decision": "deny", "tools": ["*"], "paths": ["!x"]}]}, "rules[0].paths"),
    ({"audit": []}, "audit"),
    ({"audit": {"file": "/x"}}, "audit.file"),
    ({"audit": {"path": "x.jsonl"}}, "audit.path"),
    ({"audit": {"path": "/x/"}}, "audit.path"),
    ({"audit": {"path": "/x\0"}}, "audit.path"),
    ({"audit": {"path": 5}}, "audit.path"),
    ({"audit": {"maxBytes": 1000}}, "audit.maxBytes"),
    ({"audit": {"maxBytes": "1"}}, "audit.maxBytes"),
    ({"audit": {"keep": -1}}, "audit.keep"),
    ({"audit": {"keep": True}}, "audit.keep"),
    ({"upstreams": {"local": {"command": "x"}}}, "upstreams.local"),
    ({"upstreams": {"editor": {"command": "x"}}}, "upstreams.editor"),
    ({"upstreams": {"fs": {}}}, "upstreams.fs.command"),
    ({"upstreams": {"fs": {"command": ""}}}, "upstreams.fs.command"),
    ({"upstreams": {"fs": {"command": "x", "cwd": "here"}}}, "upstreams.fs.cwd"),
    ({"upstreams": {"fs": {"command": "x", "zzz": 1}}}, "upstreams.fs.zzz"),
    ({"upstreams": {"fs": {"command": "x", "args": ["a\0b"]}}}, "upstreams.fs.args"),
    ({"upstreams": {"fs": {"command": "x", "env": {"A=B": "c"}}}}, "upstreams.fs.env"),
    ({"limits": {"readLines": 0}}, "limits.readLines"),
    ({"limits": {"readLines": "5"}}, "limits.readLines"),
    ({"limits": {"askSeconds": 0}}, "limits.askSeconds"),
    ({"memory": {"projectRoot": "x"}}, "memory.projectRoot"),
    ([], ""),
]


def test_bad_options_refuse_initialize_and_another_try_may_succeed() -> None:
    with Raw() as raw:
        for options, member in BAD_OPTIONS:
            params = {"initializationOptions": {"pinfold": options}}
            error = raw.ask("initialize", params)["error"]
            assert error["code"] == -32602, options
            where = f"initializationOptions.pinfold.{member}".rstrip(".")
            assert error["data"]["path"] == where, options
            assert where in error["message"]
        raw.initialize()


def test_what_is_given_twice_is_refused_and_may_be_said_again() -> None:
    head = b'{"jsonrpc":"2.0","id":7,"method":'
    options = b'{"initializationOptions":{"pinfold":{"rules":[]}},"initializationOptions":null}'
    scope = (
        b'{"profile":"main","projectRoot":"/","scope":{"protectPinned":true,"protectPinned":false}}'
    )
    with Raw() as raw:
        raw.send(head + b'"initialize","params":' + options + b"}")
        answer = raw.receive()
        assert (answer["id"], answer["error"]["data"]["path"]) == (7, "initializationOptions")
        raw.initialize()
        raw.send(head + b'"session/open","params":' + scope + b"}")
        answer = raw.receive()
        assert (answer["id"], answer["error"]["data"]["path"]) == (7, "scope.protectPinned")
        assert raw.result("session/list") == {"sessions": []}


def test_before_initialize_nothing_else_is_done() -> None:
    with Raw() as raw:
        for method in ("session/list", "nope", "shutdown", "tools/call"):
            assert raw.ask(method)["error"]["code"] == -32002
        raw.send({"jsonrpc": "2.0", "method": "shutdown"})
        raw.initialize()
        assert raw.result("session/list") == {"sessions": []}


def test_after_shutdown_requests_are_refused_and_exit_is_clean() -> None:
    with Raw() as raw:
        raw.initialize()
        assert raw.result("shutdown") is None
        assert raw.ask("session/list")["error"]["code"] == -32600
        assert raw.ask("shutdown")["error"]["code"] == -32600
        raw.send(EXIT)
        assert raw.status() == 0


def test_a_shutdown_without_id_counts() -> None:
    with Raw() as raw:
        raw.initialize()
        raw.send({"jsonrpc": "2.0", "method": "shutdown"}, EXIT)
        assert raw.status() == 0


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([], 0),
        ([request(1, "initialize", {})], 1),
        ([request(1, "initialize", {}), request(2, "shutdown")], 0),
        ([request(1, "initialize", {}), request(2, "shutdown", {}), EXIT], 0),
        ([request(1, "initialize", {}), request(2, "shutdown"), request(3, "exit")], 0),
        ([EXIT], 1),
        ([request(1, "initialize", {}), EXIT], 1),
    ],
)
def test_exit_status_at_the_end_of_input(messages: list[Any], status: int) -> None:
    with Raw() as raw:
        raw.send(*messages)
        assert raw.end_input() == status


def test_the_end_of_input_inside_of_a_message() -> None:
    with Raw() as raw:
        raw.initialize()
        raw.write(framed(request(1, "session/list"))[:-5])
        raw.stdin.close()
        assert raw.receive()["error"]["code"] == -32700
        assert raw.status() == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_end_it_within_a_second(number: int, status: int) -> None:
    with Raw() as raw:
        raw.initialize()
        began = time.monotonic()
        assert raw.terminate(number) == status
        assert time.monotonic() - began < 2  # one second, and one for a busy machine


LAST_MOMENT = """
import ctypes, functools, operator, os, selectors, signal, sys
from pinfold import cli
libc = ctypes.CDLL(None)
terms = (ctypes.c_ulong * 16)(1 << (signal.SIGTERM - 1))
def select(self, timeout=None, real=selectors.EpollSelector.select):
    if timeout is not None:
        return real(self, timeout)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.kill(os.getpid(), signal.SIGTERM)
    let_it_come = functools.partial(libc.pthread_sigmask, signal.SIG_UNBLOCK, terms, None)
    wait = functools.partial(self._selector.poll, -1, 1)
    list(map(operator.call, (let_it_come, wait)))  # Python itself looks at nothing in between
    return []
selectors.EpollSelector.select = select
cli.main(["serve"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="waits by epoll")
def test_a_signal_right_before_it_waits_ends_it() -> None:
    command = [sys.executable, "-c", LAST_MOMENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as gateway:
        try:
            assert gateway.wait(DEADLINE) == 143
        finally:
            gateway.kill()


def test_it_stops_when_the_process_of_the_host_is_gone() -> None:
    with subprocess.Popen(["sleep", "60"]) as host, Raw() as raw:
        raw.result("initialize", {"processId": host.pid, "capabilities": {}})
        host.kill()
        host.wait(DEADLINE)
        assert raw.status() == 1


def test_a_host_that_closes_its_end_of_the_output_is_gone() -> None:
    with Raw() as raw:
        raw.initialize()
        raw.stdout.close()
        raw.send(request(1, "session/list"))
        assert raw.status() == 1


def test_writes_under_way_are_finished_before_the_end(tmp_path: Path) -> None:
    with Raw() as raw:
        raw.initialize()
        session = raw.open(tmp_path)["sessionId"]
        calls = [
            request(
                index,
                "tools/call",
                {
                    "sessionId": session,
                    "name": "write_file",
                    "arguments": {"file_path": f"d/{index}.txt", "content": "x" * 100_000},
                },
            )
            for index in range(20)
        ]
        raw.send(*calls)
        raw.stdin.close()
        done = set()
        with pytest.raises(EOFError):
            while True:
                answer = raw.receive()
                if "result" in answer and not answer["result"]["isError"]:
                    done.add(answer["id"])
        assert raw.status() == 1
    whole = {int(path.stem) for path in (tmp_path / "d").iterdir()}
    assert done == whole
    assert all(path.stat().st_size == 100_000 for path in (tmp_path / "d").iterdir())


STRAY = """
import os, subprocess, sys
from pinfold import cli
from pinfold.app import Gateway
summaries = Gateway.summaries
def noisy(self):
    print("stray print")
    os.write(1, b"stray bytes")
    subprocess.run(["cat"], check=True)            # would eat the input, were it inherited
    subprocess.run(["echo", "from a child"], check=True)
    return summaries(self)
Gateway.summaries = noisy
cli.main(["serve"])
"""


def test_stray_prints_and_children_reach_neither_stream() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STRAY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(PYTHONIOENCODING="cp1252"),
    ) as process:
        messages = [request(1, "initialize", {}), request("✓\u00a0中", "session/list")]
        messages += [request(3, "shutdown"), EXIT]
        out, err = process.communicate(b"".join(map(framed, messages)), DEADLINE)
    assert process.returncode == 0
    assert out.count(b"Content-Length") == 3 and "✓\u00a0中".encode() in out
    assert b"stray" not in out and b"child" not in out
    assert b"stray bytes" in err and b"from a child" in err


@pytest.mark.parametrize("closed", [(2,), (1, 2), (0,), (0, 1, 2)])
def test_closed_streams_at_the_start_do_no_harm(closed: tuple[int, ...]) -> None:
    shell = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    command = f"exec {' '.join(SERVE)} {shell}"
    result = subprocess.run(
        ["sh", "-c", command],
        input=framed(request(1, "initialize", {})),
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert result.returncode in (0, 1)
    assert (b"serverInfo" in result.stdout) is not bool({0, 1} & set(closed))


def test_input_from_a_file_is_served(tmp_path: Path) -> None:
    script = tmp_path / "in"
    script.write_bytes(
        b"".join(map(framed, (request(1, "initialize", {}), request(2, "shutdown"), EXIT)))
    )
    with script.open("rb") as file:
        result = subprocess.run(
            SERVE, stdin=file, capture_output=True, timeout=DEADLINE, check=False
        )
    assert result.returncode == 0
    assert result.stdout.count(b"Content-Length") == 2


def test_a_full_stderr_stalls_nobody() -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing, env=clean_env()
    ) as process:
        os.close(writing)
        # Each of these logs nothing or little; a log that blocked would stop the answers.
        bad = b"".join(framed(request(n, "initialize", {"processId": 2**30})) for n in range(3))
        out, _ = process.communicate(bad, DEADLINE)
    os.close(reading)
    assert out.count(b"Content-Length") == 3


def test_serve_imports_neither_pygls_nor_lsprotocol(tmp_path: Path) -> None:
    opening = {"profile": "dream", "projectRoot": str(tmp_path), "sessionId": "s"}
    call = {"sessionId": "s", "name": "read_file", "arguments": {"file_path": "x"}}
    messages = [
        request(1, "initialize", {"capabilities": {}}),
        request(2, "session/open", opening),
        request(3, "tools/call", call),
    ]
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pinfold", "serve"],
        input=b"".join(map(framed, messages)),
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert result.stdout.count(b"Content-Length") == 3
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.decode().splitlines()}
    assert {"pinfold.app", "pinfold.doors.rpc"} <= imported
    heavy = ("pygls", "lsprotocol", "rich", "pathspec", "tree_sitter", "hypothesis")
    assert not [name for name in imported if name.split(".")[0] in heavy]


def test_refused_options_change_nothing() -> None:
    """The first try has a right limit beside a wrong rule; the second one says nothing."""
    wrong = {"limits": {"readLines": 1}, "rules": [{"decision": "deny", "tools": ["edti"]}]}
    with Raw() as raw:
        options = {"pinfold": wrong}
        assert "error" in raw.ask("initialize", {"initializationOptions": options})
        raw.initialize()
        session = raw.open("/")["sessionId"]
        path = str(Path(__file__))
        result = raw.call(session, "read_file", file_path=path)
        assert result["_meta"]["pinfold/details"]["endLine"] > 1


def test_a_bug_is_told_by_its_place_and_never_in_its_own_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    contents = "curated"[::-1]
    try:
        raise ValueError(contents)
    except ValueError as error:
        log_exception(error, "id-1")
    said = capfd.readouterr().err
    assert said.startswith("pinfold: internal error id-1: ValueError") and "test_lifecycle" in said
    assert contents not in said
