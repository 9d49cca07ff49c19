"""What a hostile host or a bad moment did to the door once."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pinfold.doors.codec import parse
from pinfold_protocol.framing import EDGE, Oversized
from pinfold_protocol.oversized import id_of_oversized
from support import DEADLINE, SERVE, Held, Raw, clean_env, framed, peak_kib, read, request, write


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    with Raw(clean_env(HOME=str(tmp_path))) as server:
        yield server.initialize()


def writing(number: Any, session: str, path: Path | str, content: str) -> dict[str, Any]:
    arguments = {"file_path": str(path), "content": content}
    params = {"sessionId": session, "name": "write_file", "arguments": arguments}
    return request(number, "tools/call", params)


def cancel(number: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}


@pytest.mark.parametrize("count", [2, 5, 60])
def test_sessions_opened_in_one_write_are_all_open(count: int) -> None:
    with Raw() as raw:
        opening = [
            request(n, "session/open", {"profile": "main", "projectRoot": "/", "sessionId": str(n)})
            for n in range(count)
        ]
        raw.send(request("i", "initialize", {}), *opening, request("l", "session/list"))
        answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(count + 2))}
        listed = {each["sessionId"] for each in answers["l"]["result"]["sessions"]}
        assert listed == {str(n) for n in range(count)}


def test_the_list_waits_for_sessions_without_an_id_and_for_queued_messages(raw: Raw) -> None:
    opening = {"profile": "main", "projectRoot": "/"}
    raw.send(request(1, "session/open", opening), request(2, "session/list"))
    answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(2))}
    session = answers[1]["result"]["sessionId"]
    assert [s["sessionId"] for s in answers[2]["result"]["sessions"]] == [session]
    raw.send(
        request(3, "session/configure", {"sessionId": session}),
        request(4, "session/close", {"sessionId": session}),
        request(5, "session/list"),
    )
    answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(3))}
    assert answers[5]["result"]["sessions"] == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["session/close", "shutdown", "eof", "sigterm"])
def test_c184_whatever_was_published_is_reported_as_done(tmp_path: Path, end: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    early = None
    with Raw() as raw:
        raw.initialize()
        session = raw.open(project)["sessionId"]
        count = 200
        raw.send(*(writing(n, session, f"{n % 7}/{n}.txt", "x") for n in range(count)))
        if end == "eof":
            raw.stdin.close()
        elif end == "sigterm":
            early = raw.receive()["id"]
            raw.process.send_signal(signal.SIGTERM)
        else:
            raw.send(request("end", end, {"sessionId": session} if "/" in end else {}))
        done: set[int] = set() if early is None else {early}
        last = None
        try:
            while last != "end":
                answer = raw.receive()
                last = answer["id"]
                if "result" in answer and last != "end" and not answer["result"]["isError"]:
                    done.add(answer["id"])
            raw.send(request("after", "session/list"))
            assert raw.receive()["id"] == "after"  # nothing came after the answer
        except EOFError:
            assert end in ("eof", "sigterm")
    files = {int(path.stem) for path in project.rglob("*.txt")}
    assert files == done
    assert not list(project.rglob(".pinfold-*"))


def test_changes_to_one_path_keep_their_order_across_sessions(raw: Raw, tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    for name in "ab":
        raw.open(tmp_path, sessionId=name)
    raw.send(
        request("c", "session/configure", {"sessionId": "a"}),
        writing(1, "a", path, "1"),
        writing(2, "b", path, "2"),
    )
    assert {raw.receive()["id"] for _ in range(3)} == {"c", 1, 2}
    assert read(path) == b"2"


def test_a_cancelled_change_does_not_let_others_pass(raw: Raw, tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    session = raw.open(tmp_path)["sessionId"]
    held = Held(directory)
    raw.send(*(writing(n, session, "d/f.txt", str(n)) for n in (1, 2, 3)), cancel(2))
    assert raw.receive()["error"]["code"] == -32800
    held.release()
    assert [raw.receive()["id"] for _ in range(2)] == [1, 3]
    assert read(directory / "f.txt") == b"3"


def test_a_locked_directory_costs_its_own_calls_only(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    session = raw.open(tmp_path)["sessionId"]
    held = Held(tmp_path / "d")
    raw.send(*(writing(n, session, f"d/{n}.txt", "x") for n in range(100)))
    raw.send(writing("w", session, "other.txt", "x"))
    assert raw.receive(5)["id"] == "w"
    assert raw.open(tmp_path)["sessionId"]
    held.release()


def test_a_surrogate_in_a_large_message_is_read_in_bounded_memory(raw: Raw) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800","b":"%s"}}' % (
        b"a\\n" * 5_000_000
    )
    raw.send(body)
    assert raw.receive()["error"]["code"] == -32601
    assert peak_kib(raw.process.pid) < 250 * 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"nope"}',
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    ],
)
def test_answers_that_nobody_reads_are_bounded(raw: Raw, body: bytes) -> None:
    stream = framed(body) * 2000
    stopped = threading.Event()

    def write_on() -> None:
        try:
            for _ in range(100):
                raw.write(stream)
        except (BrokenPipeError, ValueError, OSError):
            pass
        stopped.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    stopped.wait(6)
    assert peak_kib(raw.process.pid) < 200 * 1024
    raw.process.kill()
    writer.join(DEADLINE)


@pytest.mark.parametrize("process", [2**31, 2**40, 2**63, -1, 0, "5", 1.5, True])
def test_any_process_id_is_read_leniently(process: Any) -> None:
    with Raw() as raw:
        assert "serverInfo" in raw.result("initialize", {"processId": process})
        assert raw.result("session/list") == {"sessions": []}


@pytest.mark.parametrize(
    "uri", ["file:///tmp/a\nb", "file:///tmp/a\tb", "file:///%ff", "file://[x"]
)
def test_uris_that_are_none(raw: Raw, uri: str) -> None:
    error = raw.ask("session/open", {"profile": "main", "projectRoot": uri})["error"]
    assert error["code"] == -32602 and error["data"]["path"] == "projectRoot"


def test_scheme_and_host_of_a_uri_ignore_case(raw: Raw, tmp_path: Path) -> None:
    opened = raw.open(f"FILE://LOCALHOST{tmp_path}", sessionId="s")
    assert opened["sessionId"] == "s"


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    command = f"cd {tmp_path}/cwd && rmdir ../cwd && exec {' '.join(SERVE)}"
    opening = {"profile": "main", "projectRoot": str(tmp_path)}
    messages = [request(1, "initialize", {}), request(2, "session/open", opening)]
    with Raw(command=["sh", "-c", command]) as raw:
        raw.send(*messages)
        answers = {answer["id"]: answer for answer in (raw.receive(), raw.receive())}
    assert answers[2]["result"]["profile"] == "main"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_while_it_starts(number: int, status: int) -> None:
    """At any moment after the interpreter runs our code."""
    statuses = set()
    for attempt in range(6):
        with Raw() as raw:
            deadline = time.monotonic() + 5
            while b"pinfold" not in _maps(raw.process.pid) and time.monotonic() < deadline:
                pass
            threading.Event().wait(attempt * 0.02)
            statuses.add(raw.terminate(number))
    assert statuses == {status}


def _maps(process: int) -> bytes:
    """Loaded once the loop's modules are: by then our own handlers have been set."""
    try:
        loaded = read(f"/proc/{process}/maps")
    except OSError:
        return b""
    return b"pinfold" if b"_asyncio" in loaded or b"select" in loaded else b""


@pytest.mark.slow
def test_sigterm_during_a_large_write_ends_it_soon(tmp_path: Path) -> None:
    path = write(tmp_path / "big.txt", b"old line\r\n" * 4_000_000)
    with Raw() as raw:
        raw.initialize()
        session = raw.open(tmp_path)["sessionId"]
        raw.send(writing(1, session, path, "new line\n" * 4_000_000))
        raw.send(request(2, "session/list"))
        assert raw.receive()["id"] == 2
        began = time.monotonic()
        assert raw.terminate() == 143
        assert time.monotonic() - began < 4  # one second, and a busy machine
    assert read(path) in (b"old line\r\n" * 4_000_000, b"new line\r\n" * 4_000_000)
    assert os.listdir(tmp_path) == ["big.txt"]


def test_after_shutdown_the_end_of_input_is_clean_wherever_it_comes(raw: Raw) -> None:
    raw.result("shutdown")
    raw.write(b"Content-Len")
    assert raw.end_input() == 0


X = "x" * 30_000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"jsonrpc": "2.0", "_meta": {}, "id": 5, "method": "x", "params": {"a": X}}, 5),
        ({"tags": [1, {"id": 4}], "t": 1.5, "id": 5, "method": "x", "params": {"a": X}}, 5),
        ({"jsonrpc": "2.0", "params": {}, "id": 5, "method": "x", "extra": X}, 5),
        ({"jsonrpc": "2.0", "method": "x", "params": {"a": X}, "id": 5, "_meta": {"id": 6}}, 5),
        ({"method": "x", "params": {"a": X}, "id": "é\"\\", "trace": [1, "}{"]}, "é\"\\"),
        ({"extra": X, "id": 2**63, "method": "x", "params": {}}, 2**63),
        ({"extra": X, "id": "y" * 600, "method": "x"}, "y" * 600),
        ({"method": "x", "params": {"id": 1, "a": X, "b": {"id": 2}}}, None),
        ({"method": "x", "params": {"a": X, "b": '","id":7}'}}, None),
        ({"id": 3, "result": X}, None),
        ({"id": None, "method": "x", "a": X}, None),
        ({"id": True, "method": "x", "a": X}, None),
        ([{"id": 3}, X], None),
        (X, None),
    ],
)  # fmt: skip
def test_the_id_of_an_oversized_request(body: Any, expected: Any) -> None:
    for ascii_only in (True, False):
        for indent in (None, 1):
            data = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
            event = Oversized(len(data), data[:EDGE], data[-EDGE:])
            assert id_of_oversized(event) == expected


def test_an_escaped_key_is_the_same_key() -> None:
    data = b'{"\\u0069d":5,"method":"x","params":"' + X.encode()
    assert id_of_oversized(Oversized(len(data), data[:EDGE], data[-EDGE:])) == 5


@pytest.mark.parametrize(
    "body",
    [b'{"a":1,}', b'{"a":"\\ud800",}', b'"\\ud800' + b"[" * 3000, b"[" * 3000 + b'"\\ud800"'],
)
def test_what_is_no_json_is_said_without_quoting_it(body: bytes) -> None:
    with pytest.raises(ValueError) as caught:
        parse(body)
    assert "ud800" not in str(caught.value) and "a" not in str(caught.value).split("(")[0].split()


def test_cancelling_makes_no_noise_and_stalls_nobody(tmp_path: Path) -> None:
    """asyncio would log each forgotten task to stderr, where nobody reads, until it is full."""
    with Raw() as raw:
        raw.initialize()
        opening = {"profile": "main", "projectRoot": str(tmp_path), "sessionId": "s"}
        for n in range(0, 600, 6):
            raw.send(
                request(n, "session/open", opening),
                request(n + 1, "session/close", {"sessionId": "s"}),
                writing(n + 2, "s", "f.txt", "x" * 1000),
                cancel(n + 2),
                request(n + 3, "policy/explain", {"sessionId": "s", "name": "glob"}),
                cancel(n + 3),
            )
            assert {raw.receive()["id"] for _ in range(4)} == {n, n + 1, n + 2, n + 3}
        assert raw.result("session/list") == {"sessions": []}
        raw.terminate()
        assert raw.process.stderr is not None and raw.process.stderr.read() == b""


def test_cancelled_work_does_not_keep_its_contents(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    session = raw.open(tmp_path)["sessionId"]
    held = Held(tmp_path / "d")
    try:
        raw.send(writing("stuck", session, "d/f.txt", "x"))
        for n in range(150):
            raw.send(writing(n, session, "d/f.txt", "x" * (1 << 20)), cancel(n))
            assert raw.receive()["id"] in (n, "stuck")
    finally:
        held.release()
    assert peak_kib(raw.process.pid) < 150 * 1024


@pytest.mark.parametrize("uri", [True, False])
def test_order_of_one_path_across_a_session_that_is_being_opened(
    raw: Raw, tmp_path: Path, uri: bool
) -> None:
    project = f"file://{tmp_path}/b" if uri else f"{tmp_path}/b"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    raw.open(tmp_path / "a", sessionId="s")
    raw.send(
        request("close", "session/close", {"sessionId": "s"}),
        request(
            "open", "session/open", {"profile": "main", "projectRoot": project, "sessionId": "s"}
        ),
        *(writing(n, "s", "f.txt", str(n)) for n in range(30)),
    )
    while raw.receive()["id"] != "open":
        pass
    raw.send(*(writing(n, "s", str(tmp_path / "b/f.txt"), str(n)) for n in range(30, 40)))
    while raw.receive()["id"] != 39:
        pass
    assert read(tmp_path / "b/f.txt") == b"39" and os.listdir(tmp_path / "a") == []


def test_what_comes_before_the_opening_is_answered_as_unknown(raw: Raw, tmp_path: Path) -> None:
    raw.open(tmp_path, sessionId="s")
    opening = {"profile": "main", "projectRoot": str(tmp_path), "sessionId": "t"}
    raw.send(
        *(writing(n, "s", f"{n}/f.txt", "x") for n in range(100)),
        request("e", "policy/explain", {"sessionId": "t", "name": "glob"}),
        request("r", "memory/roots", {"sessionId": "t"}),
        request("o", "session/open", opening),
    )
    answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(103))}
    assert answers["e"]["error"]["code"] == answers["r"]["error"]["code"] == -32010
    assert "result" in answers["o"]


@pytest.mark.slow
def test_over_the_limit_requests_are_refused_and_the_end_is_heard(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with Raw() as raw:
        raw.initialize({"limits": {"maxMessageBytes": 50 << 20}})
        session = raw.open(tmp_path)["sessionId"]
        held = Held(tmp_path / "d")
        try:
            raw.send(*(writing(n, session, f"d/{n}.txt", "x" * (40 << 20)) for n in range(7)))
            early = raw.receive()
            assert early["id"] == 4 and early["error"]["code"] == -32800
            began = time.monotonic()
            assert raw.end_input() == 1
            assert time.monotonic() - began < 4
        finally:
            held.release()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("many names", {f"n{i}": 0 for i in range(200_000)}),
        ("a long path", {"file_path": "a/" * 2_000_000, "content": ""}),
        ("a deep list", {"file_path": [[]] * 500_000, "content": ""}),
    ],
)  # fmt: skip
def test_odd_arguments_are_refused_quickly(
    raw: Raw, tmp_path: Path, name: str, arguments: Any
) -> None:
    session = raw.open(tmp_path)["sessionId"]
    result = raw.result(
        "tools/call", {"sessionId": session, "name": "write_file", "arguments": arguments}
    )
    assert result["isError"] and len(json.dumps(result)) < 3000


def test_names_from_outside_are_cut_in_errors(raw: Raw) -> None:
    for method, params in (
        ("x" * 100_000, None),
        ("session/close", {"sessionId": "y" * 100_000}),
        ("session/list", {"z" * 100_000: 1}),
    ):
        assert len(json.dumps(raw.ask(method, params))) < 1500


def test_deep_offsets_are_skipped_at_the_speed_of_counting(raw: Raw, tmp_path: Path) -> None:
    path = write(tmp_path / "lines.txt", "\n" * 10_000_000 + "last\n")
    session = raw.open(tmp_path)["sessionId"]
    arguments = {"file_path": path, "offset": 10_000_000, "limit": 5}
    for _ in range(10):
        params = {"sessionId": session, "name": "read_file", "arguments": arguments}
        assert raw.result("tools/call", params)["content"][0]["text"] == "last\n"
