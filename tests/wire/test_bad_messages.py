"""Every bad message gets the code that the contract gives it, and the next good one is answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import DEADLINE, Raw, framed, request

OPEN = {"profile": "main", "projectRoot": "/"}
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 5000 + b"]" * 5000 + b"}"
CALL = {"sessionId": "s", "name": "read_file", "arguments": {"file_path": "/etc/hostname"}}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    with Raw() as server:
        server.initialize({"limits": {"maxMessageBytes": 1 << 20}})
        server.open(tmp_path_factory.mktemp("project"), sessionId="s")
        yield server


def call(**changes: Any) -> dict[str, Any]:
    return request(1, "tools/call", CALL | changes)


# (what it is, the body, the code, the id that is answered, the member that data.path names)
BAD: list[tuple[str, Any, int, Any, str | None]] = [
    ("truncated JSON", b'{"jsonrpc":"2.0","id":1,"met', -32700, None, None),
    ("empty body", b"", -32700, None, None),
    ("not UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None, None),
    ("UTF-16", '{"jsonrpc":"2.0","id":1,"method":"x"}'.encode("utf-16"), -32700, None, None),
    ("NaN", b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700, None, None),
    ("NaN, beside an escape", b'{"id":1,"x":"\\udc00","a":NaN}', -32700, None, None),
    ("too deep", DEEP, -32700, None, None),
    ("too deep, beside an escape", DEEP.replace(b"tools", b"\\u0074ools"), -32700, None, None),
    ("a string", b'"initialize"', -32600, None, None),
    ("a number", b"7", -32600, None, None),
    ("null", b"null", -32600, None, None),
    ("a batch", [request(1, "session/list")], -32600, None, None),
    ("an empty batch", [], -32600, None, None),
    ("an empty object", {}, -32600, None, None),
    ("no jsonrpc", {"id": 1, "method": "session/list"}, -32600, 1, None),
    ("wrong version", {"jsonrpc": "1.0", "id": "a", "method": "session/list"}, -32600, "a", None),
    ("version as number", {"jsonrpc": 2.0, "id": 1, "method": "session/list"}, -32600, 1, None),
    ("null id", request(None, "session/list"), -32600, None, None),
    ("true as id", request(True, "session/list"), -32600, None, None),
    ("fraction as id", request(1.5, "session/list"), -32600, None, None),
    ("object as id", request({"a": 1}, "session/list"), -32600, None, None),
    ("no method", {"jsonrpc": "2.0", "id": 1}, -32600, 1, None),
    ("method is no string", {"jsonrpc": "2.0", "id": 1, "method": 5}, -32600, 1, None),
    ("unknown method", request(1, "session/opne", OPEN), -32601, 1, None),
    ("unknown method, no params", request(0, "nope"), -32601, 0, None),
    ("a method that there is not", request(1, "memory/forget", {"sessionId": "s"}), -32601, 1, None),
    ("params as list", request(1, "session/list", []), -32602, 1, ""),
    ("params as string", request(1, "session/list", "x"), -32602, 1, ""),
    ("params as false", request(1, "session/list", False), -32602, 1, ""),
    ("params absent", request(1, "session/open"), -32602, 1, "profile"),
    ("params null", request(1, "tools/call", None) | {"params": None}, -32602, 1, "sessionId"),
    ("unknown member", request(1, "session/list", {"x": 1}), -32602, 1, "x"),
    ("unknown profile", request(1, "session/open", OPEN | {"profile": "Dream"}), -32602, 1, "profile"),
    ("null for a string", request(1, "session/open", OPEN | {"projectRoot": None}), -32602, 1, "projectRoot"),
    ("number for a string", request(1, "session/open", OPEN | {"projectRoot": 5}), -32602, 1, "projectRoot"),
    ("relative project", request(1, "session/open", OPEN | {"projectRoot": "a"}), -32602, 1, "projectRoot"),
    ("foreign URI", request(1, "session/open", OPEN | {"projectRoot": "file://host/a"}), -32602, 1, "projectRoot"),
    ("https URI", request(1, "session/open", OPEN | {"projectRoot": "https://h/a"}), -32602, 1, "projectRoot"),
    ("NUL in project", request(1, "session/open", OPEN | {"projectRoot": "/a\0"}), -32602, 1, "projectRoot"),
    ("surrogate in project", request(1, "session/open", OPEN | {"projectRoot": "/\udcaf"}), -32602, 1, "projectRoot"),
    ("misspelt protection", request(1, "session/open", OPEN | {"scope": {"protectpinned": True}}), -32602, 1, "scope.protectpinned"),
    ("1 for true", request(1, "session/open", OPEN | {"scope": {"protectPinned": 1}}), -32602, 1, "scope.protectPinned"),
    ("scope as list", request(1, "session/open", OPEN | {"scope": []}), -32602, 1, "scope"),
    ("unknown shell", request(1, "session/open", OPEN | {"scope": {"shell": "on"}}), -32602, 1, "scope.shell"),
    ("unknown layout", request(1, "session/open", OPEN | {"memory": {"layout": "codex"}}), -32602, 1, "memory.layout"),
    ("relative root", request(1, "session/open", OPEN | {"memory": {"userRoot": "m"}}), -32602, 1, "memory.userRoot"),
    ("a rule that is none", request(1, "session/open", OPEN | {"rules": [3]}), -32602, 1, "rules[0]"),
    ("a rule for no tool", request(1, "session/open", OPEN | {"rules": [{"decision": "deny", "tools": ["edti"]}]}), -32602, 1, "rules[0].tools[0]"),
    ("backend: not yet", request(1, "session/open", OPEN | {"backend": "editor"}), -32602, 1, "backend"),
    ("empty session id", request(1, "session/open", OPEN | {"sessionId": ""}), -32602, 1, "sessionId"),
    ("session id is open", request(1, "session/open", OPEN | {"sessionId": "s"}), -32602, 1, "sessionId"),
    ("unknown session, call", call(sessionId="t"), -32010, 1, None),
    ("unknown session, close", request(1, "session/close", {"sessionId": "t"}), -32010, 1, None),
    ("unknown session, configure", request(1, "session/configure", {"sessionId": "t"}), -32010, 1, None),
    ("unknown session, roots", request(1, "memory/roots", {"sessionId": "t"}), -32010, 1, None),
    ("unknown session, list", request(1, "tools/list", {"sessionId": "t"}), -32010, 1, None),
    ("unknown session, explain", request(1, "policy/explain", {"sessionId": "t", "name": "edit"}), -32010, 1, None),
    ("unknown tool", call(name="write"), -32602, 1, "name"),
    ("arguments as list", call(arguments=[]), -32602, 1, "arguments"),
    ("callId as number", call(callId=5), -32602, 1, "callId"),
    ("turnId in a call", call(turnId="t"), -32602, 1, "turnId"),
    ("explain without path", request(1, "policy/explain", {"sessionId": "s", "name": "edit"}), -32602, 1, "arguments.file_path"),
    ("explain, misspelt path", request(1, "policy/explain", {"sessionId": "s", "name": "edit", "arguments": {"filepath": "/x"}}), -32602, 1, "arguments.filepath"),
    ("explain, NUL in path", request(1, "policy/explain", {"sessionId": "s", "name": "edit", "arguments": {"file_path": "\0"}}), -32602, 1, "arguments.file_path"),
    ("explain a shell without a command", request(1, "policy/explain", {"sessionId": "s", "name": "run_shell_command"}), -32602, 1, "arguments.command"),
    ("configure with a bad rule", request(1, "session/configure", {"sessionId": "s", "rules": [{"decision": "deny", "tools": ["*"], "paths": ["#x"]}]}), -32602, 1, "rules[0].paths[0]"),
    ("a turn of no profile", request(1, "turn/begin", {"sessionId": "s", "profile": "x"}), -32602, 1, "profile"),
    ("a turn without an id", request(1, "turn/begin", {"sessionId": "s", "turnId": ""}), -32602, 1, "turnId"),
    ("a turn that is not there", request(1, "turn/end", {"sessionId": "s", "turnId": "t"}), -32602, 1, "turnId"),
    ("a turn of nobody", request(1, "turn/begin", {"sessionId": "t"}), -32010, 1, None),
    ("second initialize", request(1, "initialize", {"processId": None, "capabilities": {}}), -32600, 1, None),
    ("too large, id first", request(1, "tools/call", {"x": "a" * (1 << 20)}), -32011, 1, None),
    ("too large, id last", {"jsonrpc": "2.0", "method": "m", "params": {"x": "a" * (1 << 20)}, "id": "z"}, -32011, "z", None),
    ("too large, id in the middle", {"p": "a" * (1 << 20), "id": 1, "q": "a" * (1 << 20)}, -32011, None, None),
    ("too large, another id in params", {"jsonrpc": "2.0", "params": {"id": 5, "x": "a" * (1 << 20), "y": {"id": 6}}}, -32011, None, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code", "answered", "member"),
    [pytest.param(*row[1:], id=row[0]) for row in BAD],
)
def test_each_bad_message_gets_its_code_and_the_next_is_answered(
    raw: Raw, body: Any, code: int, answered: Any, member: str | None
) -> None:
    raw.send(body)
    answer = raw.receive()
    assert answer["error"]["code"] == code, answer
    assert answer["id"] == answered and type(answer["id"]) is type(answered)
    if member is not None:
        assert answer["error"]["data"]["path"] == member
    assert "Traceback" not in json.dumps(answer)
    sessions = raw.result("session/list")["sessions"]
    assert [each["sessionId"] for each in sessions] == ["s"]


GOOD: list[tuple[str, bytes]] = [
    ("lower case", b"content-length: %d\r\n\r\n"),
    ("upper case", b"CONTENT-LENGTH: %d\r\n\r\n"),
    ("no blank", b"Content-Length:%d\r\n\r\n"),
    ("many blanks", b"Content-Length  :  \t%d  \r\n\r\n"),
    ("LF only", b"Content-Length: %d\n\n"),
    ("unknown headers", b"X-A: b\r\nContent-Length: %d\r\nX: :\r\n\r\n"),
    ("a Content-Type", b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n"),
    ("twice the same", b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n"),
]  # fmt: skip


@pytest.mark.parametrize("header", [row[1] for row in GOOD], ids=[row[0] for row in GOOD])
def test_header_variants_are_read_and_the_stream_stays_in_step(raw: Raw, header: bytes) -> None:
    body = json.dumps(request("h", "session/list")).encode()
    count = header.count(b"%d")
    raw.write(header % ((len(body),) * count) + body + framed(request("i", "session/list")))
    assert [raw.receive()["id"], raw.receive()["id"]] == ["h", "i"]


def test_one_byte_at_a_time(raw: Raw) -> None:
    for byte in framed(request("é😀", "session/list")):
        raw.write(bytes((byte,)))
    assert raw.receive()["id"] == "é😀"


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: 1073741825\r\n\r\n",
        b"Content-Length: 5x\r\n\r\n",
        b"Content-Length: 1_0\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"X: y\r\n\r\n",
        b"\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_a_header_without_a_valid_length_ends_it(header: bytes) -> None:
    with Raw() as raw:
        raw.initialize()
        raw.write(header + framed(request(1, "session/list")))
        answer = raw.receive()
        assert (answer["error"]["code"], answer["id"]) == (-32700, None)
        assert raw.status() == 1


@pytest.mark.parametrize("off", [-5, 5])
def test_a_length_that_does_not_fit_its_body_ends_it_after_running_writes(
    off: int, tmp_path: Path
) -> None:
    with Raw() as raw:
        raw.initialize()
        session = raw.open(tmp_path)["sessionId"]
        arguments = {"file_path": "new.txt", "content": "whole\n"}
        params = {"sessionId": session, "name": "write_file", "arguments": arguments}
        body = json.dumps(request(2, "session/list")).encode()
        wrong = b"Content-Length: %d\r\n\r\n" % (len(body) + off) + body
        raw.write(framed(request(1, "tools/call", params)) + wrong + framed(request(3, "x")))
        codes = []
        with pytest.raises(EOFError):
            while True:
                answer = raw.receive()
                codes.append(answer["error"]["code"] if "error" in answer else answer["id"])
        assert raw.status() == 1
        assert -32700 in codes and 1 in codes
        assert (tmp_path / "new.txt").read_text() == "whole\n"


def test_an_id_in_flight_is_refused_and_the_first_is_answered(raw: Raw) -> None:
    # session/open never runs in place, so the second is read while the first is under way.
    first = request(7, "session/open", OPEN | {"sessionId": "u"})
    raw.send(first, first, {"id": 7, "method": "session/list"})
    answers = [raw.receive() for _ in range(3)]
    refused = [each for each in answers if each["id"] is None]
    assert [each["error"]["code"] for each in refused] == [-32600, -32600]
    assert refused[0]["error"]["data"] == {"id": 7}
    (done,) = [each for each in answers if each["id"] == 7]
    assert done["result"]["sessionId"] == "u"
    raw.result("session/close", {"sessionId": "u"})


def test_a_string_and_a_number_are_two_ids(raw: Raw) -> None:
    raw.send(
        request(7, "session/open", OPEN | {"sessionId": "u"}),
        request("7", "session/open", OPEN | {"sessionId": "v"}),
    )
    assert {raw.receive()["result"]["sessionId"] for _ in range(2)} == {"u", "v"}
    for session in "uv":
        raw.result("session/close", {"sessionId": session})


def test_user_data_never_breaks_the_envelope(raw: Raw, tmp_path: Path) -> None:
    data = {"jsonrpc": "2.0", "id": 9, "method": "exit", "class": 1, "a-b": {"jsonrpc": "2.0"}}
    params = {"sessionId": "s", "name": "grep_search", "arguments": data}
    assert raw.result("policy/explain", params)["decision"] == "allow"
    result = raw.call("s", "read_file", file_path="/x", **{"class": {"jsonrpc": "2.0"}})
    assert result["_meta"]["pinfold/details"]["error"]["kind"] == "invalid-arguments"
    assert "class" in result["content"][0]["text"]
    assert raw.result("session/list", {"_meta": {"jsonrpc": "2.0"}})["sessions"]


def test_a_lone_surrogate_fails_its_own_request_only(raw: Raw, tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("as it was\n")
    result = raw.call("s", "write_file", file_path=str(target), content="ok \udcaf")
    assert result["isError"] and "content" in result["content"][0]["text"]
    assert target.read_text() == "as it was\n"
    result = raw.call("s", "read_file", file_path="/\ud800")
    assert result["_meta"]["pinfold/details"]["error"]["kind"] == "invalid-path"
    unknown = raw.ask("session/close", {"sessionId": "\udcaf"})
    assert unknown["error"]["data"]["sessionId"] == "\udcaf"


def test_unknown_notifications_and_stray_answers_are_passed_over(raw: Raw) -> None:
    raw.send(
        {"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": {}},
        {"jsonrpc": "2.0", "method": "$/setTrace"},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}},
        {"jsonrpc": "2.0", "method": "$/cancelRequest"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": CALL},
        {"jsonrpc": "2.0", "id": 5, "result": None},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": ""}},
    )
    raw.send(request("n", "session/list"))
    assert raw.receive()["id"] == "n"


def test_a_message_of_65_mib_is_drained_and_answered() -> None:
    with Raw() as raw:
        raw.initialize()
        size = 65 << 20
        head = b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"'
        raw.write(b"Content-Length: %d\r\n\r\n" % size + head)
        left = size - len(head)
        while left:
            left -= raw.stdin.write(b"a" * min(left, 1 << 20))
        raw.stdin.flush()
        answer = raw.receive(DEADLINE)
        assert (answer["id"], answer["error"]["code"]) == ("big", -32011)
        assert raw.result("session/list") == {"sessions": []}
