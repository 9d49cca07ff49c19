"""The MCP door over pipes: revisions, framings, bad input, the connection's session, the end."""

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pinfold.doors.told import agreed
from support import (
    SERVE,
    Embedded,
    Held,
    Raw,
    clean_env,
    decision,
    framed,
    lined,
    peak_kib,
    request,
    write,
)

NEWEST = "2025-11-25"
FORMS: dict[str, Any] = {"elicitation": {}}
ASK = {"rules": [{"decision": "ask", "tools": ["*"], "paths": ["*.py"]}]}
FRAMINGS: dict[str, Callable[[Any], bytes]] = {"lines": lined, "headers": framed}


class Place:
    """A project with memory, and servers in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.memory = Path(Embedded(base).memory)
        self.topic = write(self.memory / "topic.md", "what is known\n")
        self.elsewhere = base / "elsewhere"
        self.elsewhere.mkdir()
        self.env = clean_env(
            QWEN_CODE_MEMORY_BASE_DIR=str(base / "memory"), HOME=str(base / "home")
        )

    def config(self, **members: Any) -> str:
        return write(self.base / "config.json", json.dumps(members))

    def door(self, *flags: str, project: bool = True, lines: bool = True) -> "Door":
        given = [*SERVE, *(("--project", str(self.project)) if project else ()), *flags]
        return Door(self.env, given, lines=lines, cwd=self.elsewhere)


class Door(Raw):
    def shake(self, version: Any = NEWEST, **capabilities: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.result("initialize", opening(version, **capabilities))
        self.tell("initialized")
        return answer

    def tell(self, what: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params})

    def use(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A tool, in the connection's session."""
        params = {"name": name, "arguments": arguments}
        result: dict[str, Any] = self.result("tools/call", params)
        return result

    def error(self, method: str, params: Any = None) -> dict[str, Any]:
        answer = self.ask(method, params)
        assert "error" in answer, answer
        found: dict[str, Any] = answer["error"]
        return found

    def reply(self, question: dict[str, Any], result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


def opening(version: Any = NEWEST, **capabilities: Any) -> dict[str, Any]:
    about = {"name": "test", "version": "1"}
    return {"protocolVersion": version, "capabilities": capabilities, "clientInfo": about}


def stateless(version: str = "2026-07-28", **capabilities: Any) -> dict[str, Any]:
    """Params of a request that says its revision."""
    prefix = "io.modelcontextprotocol/"
    about = {"name": "test", "version": "1"}
    meta = {"protocolVersion": version, "clientInfo": about, "clientCapabilities": capabilities}
    return {"_meta": {prefix + name: value for name, value in meta.items()}}


def writing(number: Any, path: Any, content: str = "new") -> dict[str, Any]:
    arguments = {"file_path": str(path), "content": content}
    return request(number, "tools/call", {"name": "write_file", "arguments": arguments})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# Revisions


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2024-11-05"),  # which would demand batches
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2025-09-01", "2025-06-18"),
        ("2099-01-01", NEWEST),
        ("nonsense", NEWEST),
        (None, NEWEST),
    ],
)
def test_which_revision_is_agreed_on(place: Place, asked: Any, agreed: str) -> None:
    with place.door() as door:
        answer = door.shake(asked)
        assert answer["protocolVersion"] == agreed
        assert answer["serverInfo"]["name"] == "pinfold"
        assert len(door.result("tools/list")["tools"]) == 4
        assert door.end_input() == 0


@pytest.mark.parametrize("odd", ["2026-07-28", "2023-01-01", "", 7, True, ["2024-11-05"], {}])
def test_an_odd_revision_gets_our_newest_with_a_handshake(odd: Any) -> None:
    assert agreed(odd) == NEWEST


def test_a_revision_without_handshake_that_we_do_not_have(place: Place) -> None:
    with place.door() as door:
        for version in ("2025-11-25", "2027-01-01", "x", 5):
            error = door.error("tools/list", stateless(version))  # type: ignore[arg-type]
            assert error["code"] == -32022
            assert error["data"] == {"supported": ["2026-07-28"], "requested": version}
        assert len(door.result("tools/list", stateless())["tools"]) == 4


def test_the_stateless_revision(place: Place) -> None:
    with place.door("--profile", "dream") as door:
        found = door.result("server/discover", stateless())
        assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
        assert found["ttlMs"] == 0 and "tools" in found["capabilities"]
        arguments = {"file_path": place.topic}
        params = {"name": "read_memory", "arguments": arguments, **stateless()}
        result = door.result("tools/call", params)
        assert result["resultType"] == "complete" and "ttlMs" not in result
        assert result["content"][0]["text"] == "what is known\n"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "pinfold"
        assert door.error("tools/list")["data"]["path"].endswith("protocolVersion")
        assert door.end_input() == 0


@pytest.mark.parametrize("first", ["server/discover", "ping"])
def test_who_looks_first_may_shake_hands_afterwards(place: Place, first: str) -> None:
    with place.door() as door:
        door.result(first)
        assert door.error("tools/list")["code"] == -32602
        assert door.shake()["protocolVersion"] == NEWEST
        assert door.error("initialize", opening())["code"] == -32600
        assert len(door.result("tools/list")["tools"]) == 4
        assert door.end_input() == 0


def test_nothing_else_comes_before_the_handshake(place: Place) -> None:
    with place.door() as door:
        for method in ("tools/list", "tools/call", "session/list", "no/such"):
            assert door.error(method)["code"] == -32002
        assert door.shake()["protocolVersion"] == NEWEST


# Framings


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("dialect", ["mcp", "lsp", "stateless"])
def test_either_framing_takes_either_dialect(place: Place, framing: str, dialect: str) -> None:
    """And answers in the same."""
    with place.door(lines=framing == "lines") as door:
        if dialect == "stateless":
            assert len(door.result("tools/list", stateless())["tools"]) == 4
            assert door.end_input() == 0
        elif dialect == "mcp":
            door.shake()
            assert len(door.result("tools/list")["tools"]) == 4
            assert door.end_input() == 0
        else:
            door.initialize()
            assert door.open(place.project)["profile"] == "main"
            assert door.result("shutdown") is None
            assert door.end_input() == 0


MESSAGES = [
    request("i", "initialize", opening()),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    request("é😀", "tools/list"),
    request("p", "ping"),
]
LINES = [json.dumps(message, ensure_ascii=False).encode() for message in MESSAGES]
BOM = b"\xef\xbb\xbf"
STREAMS: dict[str, list[bytes]] = {
    "at once": [b"".join(line + b"\n" for line in LINES)],
    "byte by byte": [bytes([byte]) for line in LINES for byte in line + b"\n"],
    "a line at a time, its end later": [part for line in LINES for part in (line, b"\n")],
    "CRLF": [b"".join(line + b"\r\n" for line in LINES)],
    "CR and LF apart": [part for line in LINES for part in (line + b"\r", b"\n")],
    "a byte-order mark": [BOM, *(line + b"\n" for line in LINES)],
    "marks before each": [BOM + line + b"\n" for line in LINES],
    "blank lines": [b"\n\r\n  \n" + line + b"\n\n\t\n" for line in LINES],
    "blanks around": [b"  \t" + line + b"  \r\n" for line in LINES],
    "headers, byte by byte": [bytes([byte]) for line in LINES for byte in framed(line)],
    "headers, at once": [b"".join(map(framed, LINES))],
    "headers after a mark and blanks": [BOM, b"\r\n\n", *map(framed, LINES)],
    "headers, LF only": [b"content-length:%d\n\n%s" % (len(line), line) for line in LINES],
}


@pytest.mark.parametrize("name", STREAMS)
def test_however_the_input_is_cut(place: Place, name: str) -> None:
    with place.door(lines="headers" not in name) as door:
        for part in STREAMS[name]:
            door.write(part)
        assert {door.receive()["id"] for _ in range(3)} == {"i", "é😀", "p"}
        assert door.end_input() == 0


def test_the_first_byte_decides_and_a_line_that_is_no_json_is_answered(place: Place) -> None:
    with place.door() as door:
        door.shake()
        for bad in (b'{"jsonrpc":', b"[", b"Content-Length: 5", b"\xff", b"{}}", b'"x"', b"NaN"):
            door.write(bad + b"\n")
            answer = door.receive()
            assert answer["id"] is None and answer["error"]["code"] in (-32700, -32600)
        assert door.result("ping") == {}


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_message_above_the_limit_is_refused_and_the_next_is_taken(
    place: Place, framing: str
) -> None:
    config = place.config(limits={"maxMessageBytes": 16 * 1024})
    with place.door("--config", config, lines=framing == "lines") as door:
        door.shake()
        for size in (16 * 1024, 100 * 1024, 3 << 20):
            door.send(writing(f"{size}", place.project / "a", "x" * size))
            answer = door.receive()
            assert answer["id"] == f"{size}" and answer["error"]["code"] == -32011
            assert door.result("ping") == {}
        door.send(writing(1, place.project / "a", "x" * 1000))
        assert door.receive()["id"] == 1


def test_an_oversized_line_costs_no_memory(place: Place) -> None:
    config = place.config(limits={"maxMessageBytes": 16 * 1024})
    with place.door("--config", config) as door:
        door.shake()
        door.use("read_memory", file_path=place.topic)
        before = peak_kib(door.process.pid)
        door.write(b'{"jsonrpc":"2.0","id":9,"method":"x","params":{"a":"')
        for _ in range(64):
            door.write(b"a" * (1 << 20))
        door.write(b'"}}\n')
        answer = door.receive()
        assert answer["id"] == 9 and answer["error"]["code"] == -32011
        assert peak_kib(door.process.pid) < before + 16 * 1024
        assert door.result("ping") == {}


# Requests


BAD: list[tuple[str, dict[str, Any], int, Any, str | None]] = [
    # what it is, the message, the code, the id that is answered, the member that data.path names
    ("a batch", [request(1, "ping")], -32600, None, None),  # type: ignore[list-item]
    ("an empty batch", [], -32600, None, None),  # type: ignore[list-item]
    ("no jsonrpc", {"id": 1, "method": "ping"}, -32600, 1, None),
    ("null id", request(None, "ping"), -32600, None, None),
    ("fraction as id", request(1.5, "ping"), -32600, None, None),
    ("no method", {"jsonrpc": "2.0", "id": 1}, -32600, 1, None),
    ("unknown method", request(1, "tools/lits"), -32601, 1, None),
    ("a method of LSP", request(1, "textDocument/hover", {}), -32601, 1, None),
    ("shutdown is LSP's", request(1, "shutdown"), -32601, 1, None),
    ("a client's method", request(1, "roots/list"), -32601, 1, None),
    ("a notification as a request", request(1, "notifications/initialized"), -32601, 1, None),
    ("ping with a list", request(1, "ping", []), -32602, 1, ""),
    ("tools/list with text", request(1, "tools/list", "x"), -32602, 1, ""),
    ("tools/call with a list", request(1, "tools/call", ["read_file"]), -32602, 1, ""),
    ("discover with a list", request(1, "server/discover", [1]), -32602, 1, ""),
    ("no name", request(1, "tools/call", {}), -32602, 1, "name"),
    ("a number as name", request(1, "tools/call", {"name": 1}), -32602, 1, "name"),
    ("no such tool", request(1, "tools/call", {"name": "reed"}), -32602, 1, "name"),
    ("arguments as list", request(1, "tools/call", {"name": "edit", "arguments": []}), -32602, 1, "arguments"),
    ("arguments as text", request(1, "tools/call", {"name": "edit", "arguments": "{}"}), -32602, 1, "arguments"),
    ("somebody else's session", request(1, "tools/call", {"name": "read_file", "sessionId": "x", "arguments": {"file_path": "a"}}), -32010, 1, None),
    ("our own method, unknown member", request(1, "policy/explain", {"x": 1}), -32602, 1, None),
    ("our own method, no such session", request(1, "memory/roots", {"sessionId": "x"}), -32010, 1, None),
    ("our own method, a list", request(1, "session/list", []), -32602, 1, ""),
]  # fmt: skip


@pytest.fixture(scope="module")
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with Place(tmp_path_factory.mktemp("bad")).door() as door:
        door.shake()
        yield door


@pytest.mark.parametrize(("what", "message", "code", "answered", "path"), BAD)
def test_a_bad_request_is_answered_and_the_next_is_taken(
    shaken: Door, what: str, message: Any, code: int, answered: Any, path: str | None
) -> None:
    shaken.send(message)
    answer = shaken.receive()
    assert (answer["id"], answer["error"]["code"]) == (answered, code), answer
    if path is not None:
        assert answer["error"]["data"]["path"] == path
    assert shaken.result("ping") == {}


@pytest.mark.parametrize(
    "params",
    [None, {}, {"cursor": None}, {"cursor": ""}, {"_meta": {}}, {"_meta": 5}, {"unknown": [1]}],
)
def test_params_that_say_nothing_to_us(shaken: Door, params: Any) -> None:
    for method in ("ping", "tools/list", "prompts/list"):
        shaken.result(method, params)


def test_what_is_told_and_is_none_of_our_business(shaken: Door) -> None:
    for what in ("roots/list_changed", "initialized", "cancelled", "progress", "nonsense"):
        shaken.tell(what)
    shaken.tell("cancelled", requestId="nobody's")
    shaken.tell("cancelled", requestId=[1])
    shaken.send(
        {"jsonrpc": "2.0", "id": "pinfold-77", "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": 5},
    )
    assert shaken.result("ping") == {}


# Cancellation


def test_a_cancelled_change_is_not_made_and_not_answered(place: Place) -> None:
    with place.door() as door:
        door.shake()
        held = Held(place.project)
        door.send(writing(1, "a.txt"), writing(2, "b.txt"))
        door.tell("cancelled", requestId=1, reason="changed my mind")
        door.send(request(1, "ping"))  # its id is free again
        assert door.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        held.release()
        assert door.receive()["id"] == 2
        door.tell("cancelled", requestId=2)  # which comes too late
        door.send(writing(3, "c.txt"))
        assert door.receive()["id"] == 3
    assert sorted(os.listdir(place.project)) == ["b.txt", "c.txt"]


def test_c186_a_question_does_not_outlive_its_call(place: Place) -> None:
    with place.door("--config", place.config(**ASK)) as door:
        door.shake(**FORMS)
        door.send(writing(1, "a.py"))
        question = door.receive()
        assert question["method"] == "elicitation/create"
        door.tell("cancelled", requestId=1)
        assert door.result("ping") == {}
        door.reply(question, {"action": "accept", "content": {"answer": "Allow once"}})
        door.send(writing(2, "a.py"))
        again = door.receive()
        assert again["method"] == "elicitation/create" and again["id"] != question["id"]
        cancelled = [m for m in door.notifications if m["method"] == "notifications/cancelled"]
        assert [each["params"] for each in cancelled] == [{"requestId": question["id"]}]
        door.reply(again, {"action": "decline"})
        answer = door.receive()
        assert answer["id"] == 2 and decision(answer["result"])["asked"] == "deny"
    assert not os.path.exists(place.project / "a.py")


# Questions


ANSWERS: list[tuple[Any, str]] = [
    ({"action": "accept", "content": {"answer": "Allow once"}}, "allow-once"),
    ({"action": "accept", "content": {"answer": "Deny"}}, "deny"),
    ({"action": "accept", "content": {"answer": "allow once"}}, "deny"),
    ({"action": "accept", "content": {"answer": ["Allow once"]}}, "deny"),
    ({"action": "accept", "content": {}}, "deny"),
    ({"action": "accept", "content": "Allow once"}, "deny"),
    ({"action": "accept"}, "deny"),
    ({"action": "decline", "content": {"answer": "Allow once"}}, "deny"),
    ({"action": "cancel"}, "deny"),
    ({"action": 5}, "deny"),
    ({}, "deny"),
    ([], "deny"),
    ("Allow once", "deny"),
    (None, "deny"),
]


def test_what_an_answer_means_by_the_handshake(place: Place) -> None:
    with place.door("--config", place.config(**ASK)) as door:
        door.shake(**FORMS)
        for number, (answer, asked) in enumerate(ANSWERS):
            path = place.project / f"{number}.py"
            door.send(writing(number, path))
            question = door.receive()
            assert str(path) in question["params"]["message"]
            door.reply(question, answer)
            result = door.receive()["result"]
            assert (decision(result)["asked"], path.exists()) == (asked, asked == "allow-once")


@pytest.mark.parametrize(
    ("version", "capabilities", "asks"),
    [
        (NEWEST, {"elicitation": {}}, True),
        (NEWEST, {"elicitation": {"form": {}}}, True),
        (NEWEST, {"elicitation": {"url": {}}}, False),
        (NEWEST, {"elicitation": None}, False),
        (NEWEST, {}, False),
        ("2025-06-18", {"elicitation": {}}, True),
        ("2024-11-05", {"elicitation": {}}, False),  # which had no such thing
    ],
)
def test_who_is_asked(place: Place, version: str, capabilities: Any, asks: bool) -> None:
    with place.door("--config", place.config(**ASK)) as door:
        door.shake(version, **capabilities)
        door.send(writing("w", "a.py"))
        first = door.receive()
        assert (first.get("method") == "elicitation/create") is asks
        if not asks:
            assert decision(first["result"])["asked"] == "no-approver"


def test_c176_a_stateless_client_is_asked_by_a_result(place: Place) -> None:
    with place.door("--config", place.config(**ASK)) as door:
        for number, (answer, asked) in enumerate(ANSWERS):
            path = place.project / f"{number}.py"
            params = {**writing(0, path)["params"], **stateless(**FORMS)}
            result = door.result("tools/call", params)
            assert result["resultType"] == "input_required"
            ((name, question),) = result["inputRequests"].items()
            assert question["method"] == "elicitation/create"
            assert str(path) in question["params"]["message"]
            assert not path.exists()
            result = door.result("tools/call", params | {"inputResponses": {name: answer}})
            if answer is None:  # as good as none
                assert result["resultType"] == "input_required"
                continue
            assert (decision(result)["asked"], path.exists()) == (asked, asked == "allow-once")
        params = {**writing(0, "last.py")["params"], **stateless()}
        assert decision(door.result("tools/call", params))["asked"] == "no-approver"
        params = {**writing(0, "last.py")["params"], **stateless(**FORMS)}
        others: list[Any] = [[], "x", {"other": ANSWERS[0][0]}, {"permission-": ANSWERS[0][0]}]
        for responses in others:
            result = door.result("tools/call", params | {"inputResponses": responses})
            assert result["resultType"] == "input_required"


# The session of the connection


def roots(*uris: str) -> dict[str, Any]:
    return {"roots": [{"uri": uri} for uri in uris]}


@pytest.mark.parametrize(
    ("capability", "answer", "found"),
    [
        ({}, lambda p: {"result": roots(p.as_uri())}, True),
        ({"listChanged": True}, lambda p: {"result": roots(p.as_uri(), "file:///")}, True),
        ({}, lambda p: {"result": roots("https://example.org/", p.as_uri())}, False),
        ({}, lambda p: {"result": roots()}, False),
        ({}, lambda p: {"result": {"roots": [{"name": "no uri"}]}}, False),
        ({}, lambda p: {"result": {"roots": "x"}}, False),
        ({}, lambda p: {"result": None}, False),
        ({}, lambda p: {"error": {"code": -32601, "message": "no"}}, False),
        (None, None, False),
    ],
)
def test_the_project_without_a_flag(
    place: Place, capability: Any, answer: Callable[[Path], Any] | None, found: bool
) -> None:
    """The client's first root, else the working directory."""
    project = place.base / "odd né 100%"
    project.mkdir()
    with place.door(project=False) as door:
        door.shake(**({} if answer is None else {"roots": capability}))
        door.send(request("r", "memory/roots", {}))
        if answer is not None:
            asked = door.receive()
            assert asked["method"] == "roots/list"
            door.send({"jsonrpc": "2.0", "id": asked["id"], **answer(project)})
        assert door.receive()["id"] == "r"
        (session,) = door.result("session/list")["sessions"]
        assert session["projectRoot"] == str(project if found else place.elsewhere)


def test_our_own_methods_without_a_session_id(place: Place) -> None:
    with place.door("--profile", "dream") as door:
        door.shake()
        arguments = {"file_path": f"{place.memory}/pinned/x.md", "content": "x"}
        asked = {"name": "write_file", "arguments": arguments}
        assert door.result("policy/explain", asked)["rule"] == "pinned"
        kinds = {root["kind"]: root["path"] for root in door.result("memory/roots")["roots"]}
        assert kinds["project"] == str(place.memory)
        turn = door.result("turn/begin", {"turnId": "t", "profile": "main"})
        assert turn is not None
        assert door.result("policy/explain", asked)["decision"] in ("allow", "deny")
        door.result("turn/end", {"turnId": "t"})
        history = [{"role": "user", "content": "hi"}]
        params = {"format": "anthropic", "history": history, "trigger": {"kind": "force"}}
        assert door.result("context/compact", params)["history"] == history
        (session,) = door.result("session/list")["sessions"]
        assert session["profile"] == "dream"
        own = door.open(place.project, "main")["sessionId"]
        assert door.call(own, "write_file", **arguments)["isError"] is False
        assert door.use("edit", file_path=arguments["file_path"], old_string="x", new_string="y")[
            "isError"
        ]


@pytest.mark.parametrize("prefix", ["mem_", "X-" * 16])
def test_a_prefix(place: Place, prefix: str) -> None:
    with place.door("--tool-prefix", prefix) as door:
        door.shake()
        names = [tool["name"] for tool in door.result("tools/list")["tools"]]
        assert names == [
            f"{prefix}{each}" for each in ("read_file", "read_memory", "write_file", "edit")
        ]
        assert door.use(names[1], file_path=place.topic)["isError"] is False
        assert door.error("tools/call", {"name": f"x{names[1]}"})["code"] == -32602


CONFIGS: list[tuple[Any, str]] = [
    # the file, what the message must name besides the file
    ("{", "not JSON"),
    ("[]", "object"),
    ({"profle": "dream"}, "profle"),
    ({"profile": "Dream"}, "profile"),
    ({"scope": {"protectpinned": True}}, "scope.protectpinned"),
    ({"limits": {"maxMessageBytes": "1"}}, "limits.maxMessageBytes"),
    ({"rules": [{"decision": "deny", "tools": ["edti"]}]}, "rules[0].tools[0]"),
    ({"memory": {"layout": "codex"}}, "memory.layout"),
    ({"memory": {"userRoot": "relative"}}, "memory.userRoot"),
    ({"toolPrefix": 5}, "toolPrefix"),
    ({"toolPrefix": "a b"}, "toolPrefix"),
]


def test_a_bad_configuration_names_file_and_member(place: Place) -> None:
    """It is read again with each try, until it is good."""
    path = place.config()
    with place.door("--config", path) as door:
        for content, names in CONFIGS:
            write(path, content if isinstance(content, str) else json.dumps(content))
            error = door.error("initialize", opening())
            assert error["code"] == -32602
            assert path in error["message"] and names in error["message"]
        write(path, "{}")
        assert door.shake()["protocolVersion"] == NEWEST
        assert door.end_input() == 0


@pytest.mark.parametrize(
    ("flags", "path", "problem"),
    [
        (["--config", "nowhere.json"], "nowhere.json", "there is no such file"),
        (["--tool-prefix", "a b"], "--tool-prefix", "must be up to"),
        (["--project", "nowhere"], "--project", "there is no directory"),
        (
            ["--upstream", "fs"],
            "--upstream",
            "there is no upstream 'fs'; give its command after --",
        ),
    ],
)
def test_flags_that_cannot_be_followed(
    place: Place, flags: list[str], path: str, problem: str
) -> None:
    """It is said again to a client that goes on all the same."""
    with place.door(*flags, project="--project" not in flags) as door:
        call = {"name": "read_memory", "arguments": {"file_path": place.topic}}
        for method, params in (("initialize", opening()), ("tools/call", call)):
            error = door.error(method, params)
            assert (error["code"], error["data"]["path"]) == (-32602, path)
            assert problem in error["message"]


@pytest.mark.parametrize("way", ["in it", "deep in it", "through a link", "a linked project"])
def test_a_configuration_in_the_project_is_refused(place: Place, way: str) -> None:
    """An agent could have written it."""
    project, path = place.project, place.project / "config.json"
    if way == "deep in it":
        path = place.project / ".vscode/deep/config.json"
    write(path, json.dumps({"profile": "main"}))
    if way == "through a link":
        os.symlink(path, place.base / "link.json")
        path = place.base / "link.json"
    elif way == "a linked project":
        project = place.base / "linked"
        project.symlink_to(place.project)
    with place.door("--config", str(path), "--project", str(project), project=False) as door:
        for method, params in (
            ("initialize", opening()),
            ("tools/call", {"name": "read_memory", "arguments": {"file_path": place.topic}}),
            ("memory/roots", {}),
        ):
            error = door.error(method, params)
            assert error["code"] == -32602 and "in the project" in error["message"]


def test_a_configuration_in_the_client_s_root_is_refused(place: Place) -> None:
    """Which project it is, the client says when it is asked."""
    config = write(place.project / "pinfold.json", "{}")
    with place.door("--config", config, project=False) as door:
        door.shake(roots={})
        door.send(request("r", "memory/roots", {}))
        asked = door.receive()
        assert asked["method"] == "roots/list"
        door.reply(asked, roots(place.project.as_uri()))
        answer = door.receive()
        assert answer["id"] == "r" and "in the project" in answer["error"]["message"]


def test_the_user_s_own_configuration_is_read(place: Place) -> None:
    env = place.env | {"XDG_CONFIG_HOME": str(place.base / "etc")}
    text = json.dumps({"profile": "dream", "toolPrefix": "own_"})
    write(place.base / "etc/pinfold/config.json", text)
    with Door(env, [*SERVE, "--project", str(place.project)], lines=True) as door:
        assert "dream" in door.shake()["instructions"]
        assert door.result("tools/list")["tools"][0]["name"] == "own_read_file"
    with Door(env, [*SERVE, "--tool-prefix", "", "--profile", "main"], lines=True) as door:
        assert "main" in door.shake()["instructions"]
        assert door.result("tools/list")["tools"][0]["name"] == "read_file"


def test_the_user_s_own_place_counts_with_a_project_at_home_too(place: Place) -> None:
    env = place.env | {"XDG_CONFIG_HOME": str(place.base / "etc")}
    write(place.base / "etc/pinfold/config.json", json.dumps({"profile": "dream"}))
    with Door(env, [*SERVE, "--project", str(place.base)], lines=True) as door:
        assert "dream" in door.shake()["instructions"]
        assert not door.use("read_file", file_path=place.topic)["isError"]


# The end


@pytest.mark.parametrize("when", ["at once", "looked", "shaken", "used", "asking"])
def test_the_end_of_input_is_the_normal_end(place: Place, when: str) -> None:
    with place.door("--config", place.config(**ASK)) as door:
        if when == "looked":
            door.result("ping")
        elif when != "at once":
            door.shake(**FORMS)
        if when == "used":
            door.use("read_memory", file_path=place.topic)
        elif when == "asking":
            door.send(writing(1, "a.py"))
            assert door.receive()["method"] == "elicitation/create"
        assert door.end_input() == 0
    assert not os.path.exists(place.project / "a.py")


@pytest.mark.parametrize("rest", [b"{", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
def test_an_end_in_the_middle_of_a_line(place: Place, rest: bytes) -> None:
    with place.door() as door:
        door.shake()
        door.write(rest)
        door.stdin.close()
        assert door.receive()["error"]["code"] == -32700
        assert door.status() == 1


def test_what_was_asked_before_the_end_is_answered(place: Place) -> None:
    """As from a shell: all of the input at once, and its end."""
    with place.door() as door:
        requests = [request("i", "initialize", opening()), MESSAGES[1]]
        requests += [writing(n, f"{n}.txt") for n in range(50)]
        door.send(*requests, request("l", "tools/list"))
        door.stdin.close()
        answers = {}
        with pytest.raises(EOFError):
            while answer := door.receive():
                assert answer["id"] not in answers
                answers[answer["id"]] = answer["result"]
        assert set(answers) == {"i", "l", *range(50)}
        assert door.status() == 0
    assert len(os.listdir(place.project)) == 50


# Every request is answered exactly once


class Once:
    """One connection for all examples, and how often each id was answered."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.door = place.door("--profile", "dream")
        self.numbers = itertools.count()
        self.answered: Counter[Any] = Counter()

    def receive(self) -> Any:
        answer = self.door.receive()["id"]
        self.answered[answer] += 1
        return answer


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Once]:
    state = Once(Place(tmp_path_factory.mktemp("once")))
    with state.door:
        state.door.shake()
        yield state
        assert state.door.end_input() == 0


KINDS = st.sampled_from(
    ["ping", "list", "read", "write", "pinned", "unknown", "bad", "own", "turn", "stateless"]
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(KINDS, st.booleans()), min_size=1, max_size=30),
    st.lists(st.integers(1, 2000), max_size=20),
)
def test_every_request_is_answered_exactly_once(
    once: Once, plan: list[tuple[str, bool]], cuts: list[int]
) -> None:
    memory, topic = once.place.memory, once.place.topic
    calls: dict[str, Callable[[int], tuple[str, Any]]] = {
        "ping": lambda n: ("ping", None),
        "list": lambda n: ("tools/list", {}),
        "read": lambda n: (
            "tools/call",
            {"name": "read_memory", "arguments": {"file_path": topic}},
        ),
        "write": lambda n: ("tools/call", writing(n, memory / f"{n % 5}.md", f"{n}")["params"]),
        "pinned": lambda n: ("tools/call", writing(n, memory / "pinned/x.md")["params"]),
        "unknown": lambda n: ("no/such/method", {}),
        "bad": lambda n: ("tools/call", {"name": n}),
        "own": lambda n: ("memory/roots", {}),
        "turn": lambda n: ("session/configure", {}),
        "stateless": lambda n: ("tools/list", stateless()),
    }
    wanted, given_up, stream = set(), set(), b""
    for kind, cancelled in plan:
        number = next(once.numbers)
        stream += lined(request(number, *calls[kind](number)))
        if cancelled:
            given_up.add(number)
            told = {"method": "notifications/cancelled", "params": {"requestId": number}}
            stream += lined({"jsonrpc": "2.0", **told})
        else:
            wanted.add(number)
    for cut in cuts:
        once.door.write(stream[:cut])
        stream = stream[cut:]
    once.door.write(stream)
    while wanted - set(once.answered):
        once.receive()
    last = f"last {next(once.numbers)}"
    once.door.send(request(last, "ping"))
    while once.receive() != last:
        pass
    assert set(once.answered.values()) == {1}
