"""In front of an upstream that misbehaves, as a process: over our own door and over MCP's."""

import array
import fcntl
import json
import os
import select
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fronts import runs, said, started, upstream
from support import (
    DEADLINE,
    SERVE,
    Embedded,
    Raw,
    clean_env,
    decision,
    details,
    kind,
    read,
    request,
    write,
)

pytestmark = pytest.mark.slow  # three programs for each test, and some that are mute or die

INITIALIZE = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "0"}}


class Place:
    """A project with memory, and the log of an upstream."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.log = base / "log"
        self.project = base / "project"
        self.memory = Embedded(base).memory
        self.topic = write(f"{self.memory}/topic.md", "hello\n")
        self.pinned = write(f"{self.memory}/pinned/p.md", "curated\n")
        self.env = clean_env(
            QWEN_CODE_MEMORY_BASE_DIR=str(base / "memory"),
            HOME=str(base / "home"),
            XDG_CONFIG_HOME=str(base / "config"),
        )

    def native(self, *habits: str, options: Any = None, **more: Any) -> Raw:
        """Our own door: one session in front of it, called `s`, of profile `main`."""
        up = upstream(self.log, *habits, **more)
        raw = Raw(self.env).initialize({"upstreams": {"up": up}, **(options or {})})
        raw.open(self.project, sessionId="s", backend="up")
        return raw

    def mcp(self, *flags: str, habits: tuple[str, ...] = (), config: Any = None, **can: Any) -> Raw:
        """MCP's door, in front of it by the user's file."""
        given = {"upstreams": {"up": upstream(self.log, *habits)}, "backend": "up"}
        path = write(self.base / "pinfold.json", json.dumps({**given, **(config or {})}))
        command = (*SERVE, "--config", path, "--project", str(self.project), *flags)
        raw = Raw(self.env, command, lines=True)
        result = raw.result("initialize", {**INITIALIZE, "capabilities": can})
        assert result["capabilities"]["tools"] == {"listChanged": True}
        raw.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return raw


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


DOORS = ("native", "mcp")


@pytest.fixture(params=DOORS)
def raw(request: pytest.FixtureRequest, place: Place) -> Iterator[Raw]:
    """A main session, whatever the door."""
    with getattr(place, request.param)() as client:
        yield client


def call(raw: Raw, name: str, **arguments: Any) -> dict[str, Any]:
    """On either door: the session of the connection, or the one that is called `s`."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if raw._frame.__name__ == "framed":
        params["sessionId"] = "s"
    result: dict[str, Any] = raw.result("tools/call", params)
    return result


def begin(raw: Raw, number: int, name: str, **arguments: Any) -> None:
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if raw._frame.__name__ == "framed":
        params["sessionId"] = "s"
    raw.send(request(number, "tools/call", params))


def cancel(raw: Raw, number: int) -> None:
    if raw._frame.__name__ == "framed":
        raw.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
    else:
        params = {"requestId": number}
        raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def until(condition: Any, seconds: float = DEADLINE) -> None:
    """Wait for what another process does; looked for often, and never for long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        select.select([], [], [], 0.01)


def unread(process: int) -> int:
    """How many bytes wait in its standard input."""
    found = array.array("i", [0])
    descriptor = os.open(f"/proc/{process}/fd/0", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, termios.FIONREAD, found)
    finally:
        os.close(descriptor)
    return found[0]


def told(raw: Raw, method: str) -> list[Any]:
    return [each["params"] for each in raw.notifications if each["method"] == method]


# What it does wrong


def test_one_that_dies_in_a_call_fails_that_call_and_starts_again(raw: Raw, place: Place) -> None:
    result = call(raw, "write_it", path=place.topic, content="!die")
    assert kind(result) == "backend"
    assert "not known" in result["content"][0]["text"]
    assert len(said(place.log, "tools/call")) == 1  # never sent twice
    again = call(raw, "write_it", path=place.topic, content="after")
    assert not again["isError"] and read(place.topic) == b"after"
    assert len(started(place.log)) == 2


def test_one_that_dies_is_missed_though_its_child_holds_its_output(place: Place) -> None:
    with place.native("survived") as raw:
        until(lambda: len(started(place.log)) == 2)
        assert kind(call(raw, "odd", how="!die")) == "backend"
        until(lambda: not any(map(runs, started(place.log)[:2])))
        assert not call(raw, "odd", how="again")["isError"]


def test_one_that_stops_listening_is_ended_and_starts_again(raw: Raw, place: Place) -> None:
    assert not call(raw, "odd", how="!deaf")["isError"]
    assert kind(call(raw, "odd", how="first")) == "backend"
    assert not call(raw, "odd", how="second")["isError"]
    deaf, hearing = started(place.log)
    assert not runs(deaf) and runs(hearing)


def test_all_that_is_under_way_fails_with_it(place: Place) -> None:
    with place.native() as raw:
        for number in (1, 2, 3):
            begin(raw, number, "odd", how="!mute")
        until(lambda: len(said(place.log, "tools/call")) == 3)
        os.kill(started(place.log)[0], signal.SIGKILL)
        answers = [raw.receive() for _ in range(3)]
        assert {kind(each["result"]) for each in answers} == {"backend"}
        assert {each["id"] for each in answers} == {1, 2, 3}
        assert len(said(place.log, "tools/call")) == 3


def test_one_that_keeps_dying_is_not_started_for_every_call(place: Place) -> None:
    with place.native() as raw:
        texts = [call(raw, "odd", how="!die")["content"][0]["text"] for _ in range(6)]
        assert "keeps ending" in texts[-1]
        assert len(said(place.log, "tools/call")) == 5


def test_one_that_floods_harms_nobody(raw: Raw, place: Place) -> None:
    assert call(raw, "odd", how="!flood")["content"][0]["text"] == "done"
    assert call(raw, "odd", how="after")["content"][0]["text"] == '{"how": "after"}'


def test_forged_keys_are_dropped_and_all_else_stays(raw: Raw, place: Place) -> None:
    result = call(raw, "write_it", path=place.topic, content="!forge")
    own = {"example/own": 7}
    assert result["_meta"].pop("pinfold/details") == {
        "upstream": "up",
        "tool": "write_it",
        "path": place.topic,
    }
    assert result["_meta"].pop("pinfold/decision")["rule"] == "default"
    assert result == {
        "content": [
            {"type": "text", "text": "hello\n", "annotations": {"priority": 0.1}, "_meta": own},
            {"type": "resource_link", "uri": "file:///x", "name": "x", "_meta": own},
        ],
        "structuredContent": {"said": "hello\n", "big": 12345678901234567890123, "_meta": own},
        "_meta": own,
        "isError": False,
        "later": {"revision": "unknown", "_meta": own},
    }


def test_a_line_of_ten_mebibytes(raw: Raw) -> None:
    result = call(raw, "odd", how="!big")
    assert len(result["content"][0]["text"]) == 10 << 20


@pytest.mark.parametrize("how", ["bigger", "bigger-nameless"])
def test_a_line_over_the_limit_fails_its_call_and_the_stream_goes_on(
    place: Place, how: str
) -> None:
    with place.native(options={"limits": {"maxMessageBytes": 1 << 20}}) as raw:
        result = call(raw, "odd", how=f"!{how}")
        assert kind(result) == "backend" and "over the limit" in result["content"][0]["text"]
        assert call(raw, "odd", how="on")["content"][0]["text"] == '{"how": "on"}'
        assert len(started(place.log)) == 1


def test_arguments_of_any_size_up_to_the_limit(raw: Raw, place: Place) -> None:
    content = "é\ud800x" * (1 << 20)
    assert not call(raw, "odd", how=content)["isError"]
    (sent,) = said(place.log, "tools/call")
    assert sent["params"]["arguments"]["how"] == content


def test_a_second_answer_is_dropped(raw: Raw) -> None:
    assert call(raw, "odd", how="!twice")["content"][0]["text"] == "first"
    assert call(raw, "odd", how="next")["content"][0]["text"] == '{"how": "next"}'


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no-result", "no result"),
        ("error", "no such argument"),
        ("no-utf8", "no JSON"),
        ("digits", "no JSON"),
        ("nested", "no JSON"),
    ],
)
def test_what_is_no_result(raw: Raw, how: str, words: str) -> None:
    result = call(raw, "odd", how=f"!{how}")
    assert kind(result) == "backend" and words in result["content"][0]["text"]


# Cancelling


def test_a_read_that_is_never_answered_can_be_cancelled(place: Place) -> None:
    with place.native() as raw:
        open_fifo = place.base / "fifo"
        os.mkfifo(open_fifo)  # it blocks there
        begin(raw, 7, "read_it", path=str(open_fifo))
        until(lambda: said(place.log, "tools/call"))
        cancel(raw, 7)
        assert raw.receive()["error"]["code"] == -32800
        descriptor = os.open(open_fifo, os.O_WRONLY)
        os.close(descriptor)
        until(lambda: said(place.log, "notifications/cancelled"))
        (sent,) = said(place.log, "tools/call")
        (withdrawn,) = said(place.log, "notifications/cancelled")
        assert withdrawn["params"]["requestId"] == sent["id"]


def test_a_change_that_was_sent_is_never_said_to_be_cancelled(raw: Raw, place: Place) -> None:
    """It is answered as what it was, where the upstream says so in time."""
    begin(raw, 7, "write_it", path=place.topic, content="!late")
    until(lambda: said(place.log, "tools/call"))
    cancel(raw, 7)
    answer = raw.receive()
    assert answer["id"] == 7
    assert answer["result"]["content"][0]["text"] == "done all the same"


def test_else_it_is_not_known(raw: Raw, place: Place) -> None:
    begin(raw, 7, "write_it", path=place.topic, content="!mute")
    until(lambda: said(place.log, "tools/call"))
    cancel(raw, 7)
    answer = raw.receive()
    assert answer["id"] == 7 and kind(answer["result"]) == "backend"
    assert "not known" in answer["result"]["content"][0]["text"]


def test_closing_a_session_settles_what_is_never_answered(place: Place) -> None:
    with place.native() as raw:
        begin(raw, 1, "write_it", path=place.topic, content="!mute")
        until(lambda: said(place.log, "tools/call"))
        raw.send(request(2, "session/close", {"sessionId": "s"}))
        first, second = raw.receive(), raw.receive()
        assert kind(first["result"]) == "backend" and first["id"] == 1
        assert second == {"jsonrpc": "2.0", "id": 2, "result": {"calls": 1, "denials": 0}}


def test_one_that_never_answers_holds_up_nobody_else(place: Place) -> None:
    with place.native() as raw:
        for number in range(100, 180):  # more than there are threads for it
            begin(raw, number, "read_it", path=f"{place.memory}/x", content="!mute")
        local = raw.open(place.project)["sessionId"]
        assert (
            raw.call(local, "read_file", file_path=place.topic)["content"][0]["text"] == "hello\n"
        )


def test_what_was_not_sent_yet_is_cancelled_and_never_done(place: Place) -> None:
    """It does not read: one message is stuck on its way, what comes after has not left."""
    with place.native() as raw:
        (process,) = started(place.log)
        os.kill(process, signal.SIGSTOP)
        try:
            other = f"{place.memory}/sub/other.md"
            os.mkdir(f"{place.memory}/sub")
            begin(raw, 1, "write_it", path=place.topic, content="x" * (1 << 20))
            until(lambda: unread(process) > 1 << 15)
            begin(raw, 2, "write_it", path=other, content="never")
            begin(raw, 3, "read_it", path=place.topic)
            assert raw.result("session/list", {})["sessions"]
            for number in (2, 3):
                cancel(raw, number)
            codes = {}
            for _ in range(2):
                answer = raw.receive()
                codes[answer["id"]] = answer["error"]["code"]
            assert codes == {2: -32800, 3: -32800}
            cancel(raw, 1)
            assert kind(raw.receive()["result"]) == "backend"
        finally:
            os.kill(process, signal.SIGCONT)
        assert not call(raw, "read_it", path=place.topic)["isError"]
        assert not os.path.exists(other)


def test_a_turn_waits_for_a_change_that_was_decided_before_it(place: Place) -> None:
    with place.native() as raw:
        local = raw.open(place.project)["sessionId"]
        begin(raw, 1, "write_it", path=place.topic, content="!late")
        until(lambda: said(place.log, "tools/call"))
        raw.send(request(2, "turn/begin", {"sessionId": "s", "profile": "dream"}))
        for number in range(10, 20):  # others go on meanwhile
            arguments = {"file_path": f"{place.project}/{number}", "content": "x"}
            params = {"sessionId": local, "name": "write_file", "arguments": arguments}
            raw.send(request(number, "tools/call", params))
            assert raw.receive()["id"] == number
        cancel(raw, 1)
        assert {raw.receive()["id"], raw.receive()["id"]} == {1, 2}


def test_a_call_may_come_before_its_session_is_open(place: Place) -> None:
    up = upstream(place.log)
    with Raw(place.env).initialize({"upstreams": {"up": up}}) as raw:
        params = {
            "profile": "main",
            "projectRoot": str(place.project),
            "sessionId": "s",
            "backend": "up",
        }
        raw.send(request(1, "session/open", params))
        begin(raw, 2, "write_it", path=place.topic, content="early")
        begin(raw, 3, "write_it", path=place.topic, content="later")
        assert [raw.receive()["id"] for _ in range(3)] == [1, 2, 3]
        assert read(place.topic) == b"later"


def test_changes_to_one_path_keep_their_order(place: Place) -> None:
    with place.native() as raw:
        for number in range(40):
            begin(raw, number, "write_it", path=place.topic, content=str(number))
        for _ in range(40):
            assert not raw.receive()["result"]["isError"]
        contents = [
            each["params"]["arguments"]["content"] for each in said(place.log, "tools/call")
        ]
        assert contents == [str(number) for number in range(40)]


# What it says by itself


def test_other_tools_are_told_and_listed_again(raw: Raw) -> None:
    native = raw._frame.__name__ == "framed"
    session = {"sessionId": "s"} if native else {}
    before = {tool["name"] for tool in raw.result("tools/list", session)["tools"]}
    assert "new_one" not in before and "odd" in before
    call(raw, "odd", how="!tools")
    method = "tools/didChange" if native else "notifications/tools/list_changed"
    until(
        lambda: (
            raw.result("ping" if not native else "session/list", {}) is not None
            and told(raw, method)
        )
    )
    assert told(raw, method)[0] == ({"backend": "up"} if native else {})
    assert len(told(raw, method)) < 50
    after = {tool["name"] for tool in raw.result("tools/list", session)["tools"]}
    assert after == before | {"new_one"}
    assert call(raw, "new_one", a=1)["content"][0]["text"] == '{"a": 1}'


def test_a_native_list_has_the_contract_s_shape(place: Place) -> None:
    with place.native() as raw:
        tools = {t["name"]: t for t in raw.result("tools/list", {"sessionId": "s"})["tools"]}
        assert tools["odd"]["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": True,
            "idempotentHint": False,
            "openWorldHint": True,
        }
        assert tools["odd"]["description"] == ""
        assert set(tools["read_file"]["inputSchema"]["properties"]) == {"file_path"}


def test_progress_crosses_under_the_client_s_token(place: Place) -> None:
    with place.mcp() as raw:
        call(raw, "odd", how="open")
        params = {
            "name": "odd",
            "arguments": {"how": "!progress"},
            "_meta": {"progressToken": "mine"},
        }
        result = raw.result("tools/call", params)
        assert result["content"][0]["text"] == "done"
        assert told(raw, "notifications/progress") == [
            {"progressToken": "mine", "progress": step, "total": 2, "message": "busy"}
            for step in (0.5, 1.5)
        ]
        (sent,) = said(place.log, "tools/call")[1:]
        assert sent["params"]["_meta"]["progressToken"] == sent["id"]


def test_progress_crosses_in_lsp_s_words(place: Place) -> None:
    with place.native() as raw:
        params = {
            "sessionId": "s",
            "name": "odd",
            "arguments": {"how": "!progress"},
            "workDoneToken": 5,
        }
        raw.result("tools/call", params)
        values = [each["value"] for each in told(raw, "$/progress") if each["token"] == 5]
        assert [each["kind"] for each in values] == ["begin", "report", "report", "end"]
        assert [each.get("percentage") for each in values] == [None, 25, 75, None]


def test_what_it_logs_crosses_and_the_level_goes_to_it(place: Place) -> None:
    with place.mcp() as raw:
        assert raw.result("logging/setLevel", {"level": "warning"}) == {}
        call(raw, "odd", how="!flood")
        logged = told(raw, "notifications/message")
        assert logged[0]["level"] == "info" and logged[0]["data"].startswith("line ")
        (level,) = said(place.log, "logging/setLevel")
        assert level["params"] == {"level": "warning"}
    with place.native() as raw:
        call(raw, "odd", how="!flood")
        logged = told(raw, "window/logMessage")
        assert logged[0]["type"] == 4 and logged[0]["message"].startswith("up: line ")


def test_its_questions(place: Place) -> None:
    """Ping and roots are answered by the gateway; what the client can answer goes to it, with ids
    of our own; all else is an error."""
    with place.mcp(elicitation={}) as raw:
        assert call(raw, "odd", how="!ask ping")["content"][0]["text"] == "{}"
        roots = json.loads(call(raw, "odd", how="!ask roots/list")["content"][0]["text"])
        assert roots == {"roots": [{"uri": place.project.as_uri()}]}
        refused = json.loads(
            call(raw, "odd", how="!ask sampling/createMessage")["content"][0]["text"]
        )
        assert refused["code"] == -32601
        begin(raw, 9, "odd", how="!ask elicitation/create")
        question = raw.receive()
        assert question["method"] == "elicitation/create" and question["id"] != "q"
        assert question["params"]["message"] == "Who?"
        raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert raw.receive()["result"]["content"][0]["text"] == '{"action": "decline"}'
        (hello,) = said(place.log, "initialize")
        assert hello["params"]["capabilities"] == {"elicitation": {}}


def test_a_question_that_it_takes_back(place: Place) -> None:
    with place.mcp(elicitation={}) as raw:
        begin(raw, 9, "odd", how="!ask-and-withdraw")
        question = raw.receive()
        assert question["method"] == "elicitation/create"
        begin(raw, 10, "odd", how="!withdraw")
        assert {raw.receive()["id"], raw.receive()["id"]} == {9, 10}
        until(lambda: raw.result("ping", {}) == {} and told(raw, "notifications/cancelled"))
        assert told(raw, "notifications/cancelled") == [{"requestId": question["id"]}]
        raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        assert not call(raw, "odd", how="after")["isError"]
        assert not said(place.log, "")  # nobody answers what nobody asks any more


def test_answers_to_nobody_s_question(raw: Raw) -> None:
    assert call(raw, "odd", how="!strange-ids")["content"][0]["text"] == "right"


# Its process


def test_one_that_answers_initialize_with_something_else(place: Place) -> None:
    with Raw(place.env).initialize({"upstreams": {"up": upstream(place.log, "dumb")}}) as raw:
        params = {"profile": "main", "projectRoot": str(place.project), "backend": "up"}
        error = raw.ask("session/open", params)["error"]
        assert "something else" in error["data"]["problem"]
        until(lambda: not any(map(runs, started(place.log))))


def test_one_that_never_stops_listing_its_tools(place: Place) -> None:
    with place.native("endless") as raw:
        assert len(said(place.log, "tools/list")) == 100
        names = [tool["name"] for tool in raw.result("tools/list", {"sessionId": "s"})["tools"]]
        assert len(names) == len(set(names)) and "odd" in names


def test_one_whose_tools_change_each_time_they_are_listed_is_no_busy_loop(place: Place) -> None:
    with place.native("restless") as raw:
        until(lambda: len(said(place.log, "tools/list")) == 2)
        for number in range(200):  # far more listings than calls, where nothing held them back
            call(raw, "odd", how=str(number))
        assert len(said(place.log, "tools/list")) < 40


@pytest.mark.parametrize("end", ["shutdown", "input", "term", "kill"])
def test_it_ends_with_the_gateway_with_all_that_it_started(place: Place, end: str) -> None:
    with place.native("stubborn") as raw:
        until(lambda: len(started(place.log)) == 2)
        processes = started(place.log)
        assert all(map(runs, processes))
        if end == "shutdown":
            raw.result("shutdown")
            raw.send({"jsonrpc": "2.0", "method": "exit"})
            assert raw.status() == 0
        elif end == "input":
            raw.end_input()
        else:
            raw.terminate(signal.SIGTERM if end == "term" else signal.SIGKILL)
        until(lambda: not any(map(runs, processes)))


def test_one_that_ends_by_itself_at_the_end_of_input_is_not_killed_first(place: Place) -> None:
    with place.native() as raw:
        (process,) = started(place.log)
        raw.result("shutdown")
        raw.send({"jsonrpc": "2.0", "method": "exit"})
        assert raw.status() == 0
        until(lambda: not runs(process))


@pytest.mark.parametrize(
    ("up", "words"),
    [
        ({"command": "/nowhere/at/all"}, "No such file"),
        (
            {"command": "sh", "args": ["-c", "echo sorry >&2; exit 3"]},
            "up cannot be started: it ended, with status 3 (it said: sorry)",
        ),
        ({"command": "false"}, "it ended, with status 1"),
        ({"command": "sh", "args": ["-c", "kill -9 $$"]}, "it ended, by signal 9"),
        ({"command": "cat", "cwd": "/nowhere"}, "/nowhere"),
    ],
)
def test_one_that_cannot_be_started_says_why(place: Place, up: Any, words: str) -> None:
    with Raw(place.env).initialize({"upstreams": {"up": up}}) as raw:
        params = {"profile": "main", "projectRoot": str(place.project), "backend": "up"}
        error = raw.ask("session/open", params)["error"]
        assert error["code"] == -32602 and error["data"]["path"] == "backend"
        assert words in error["data"]["problem"]
        error = raw.ask("session/open", {**params, "backend": "other"})["error"]
        assert error["data"]["problem"] == """must be one of "local", "up", not 'other'"""
        assert raw.open(place.project)["tools"]


def test_one_that_cannot_be_started_over_mcp(place: Place) -> None:
    command = (*SERVE, "--project", str(place.project), "--upstream", "up", "--", "/nowhere")
    with Raw(place.env, command, lines=True) as raw:
        raw.result("initialize", {**INITIALIZE, "capabilities": {}})
        error = raw.ask("tools/call", {"name": "read_file", "arguments": {"file_path": "x"}})[
            "error"
        ]
        assert "No such file" in error["message"]


def test_its_environment_and_its_directory(place: Place) -> None:
    with place.native(env={"FOR_THE_UPSTREAM": "yes"}, cwd="/") as raw:
        assert "env yes" in read(place.log).decode()
        assert os.readlink(f"/proc/{started(place.log)[0]}/cwd") == "/"
        assert raw.result("session/list", {})["sessions"]


# Sessions that protect


def scoped(place: Place) -> Raw:
    raw = place.native()
    raw.open(place.project, "dream", sessionId="d", backend="up")
    return raw


def test_a_scoped_session_offers_what_is_known_and_denies_the_rest(place: Place) -> None:
    with scoped(place) as raw:
        opened = raw.result("session/configure", {"sessionId": "d"})
        assert (
            opened["tools"]
            == [
                *("read_file", "read_memory", "write_file"),
                *("read_it", "write_it", "drop_it", "move_it", "read_many"),
            ]
            or "read_it" not in opened["tools"]
        )
        assert "odd" not in opened["tools"]
        result = raw.call("d", "odd", how="x")
        assert kind(result) == "denied" and decision(result)["rule"] == "unknown-tool"
        result = raw.call("d", "never_heard_of")
        assert kind(result) == "denied" and decision(result)["rule"] == "unknown-tool"
        result = raw.call("d", "drop_it", path=place.topic, recursive=True)
        assert kind(result) == "denied" and "recursive" in decision(result)["reason"]
        result = raw.call("d", "read_it")
        assert kind(result) == "invalid-arguments"
        assert not said(place.log, "tools/call")


def test_a_turn_narrows_a_session_in_front_of_an_upstream(place: Place) -> None:
    with place.native() as raw:
        assert not raw.call("s", "odd", how="x")["isError"]
        raw.result("turn/begin", {"sessionId": "s", "profile": "dream"})
        assert kind(raw.call("s", "odd", how="x")) == "denied"
        assert kind(raw.call("s", "write_it", path=place.pinned, content="x")) == "denied"
        assert read(place.pinned) == b"curated\n"


def test_only_what_the_gateway_reads_too_is_tagged(place: Place) -> None:
    outside = write(place.project / "a.txt", "hello\n")
    with scoped(place) as raw:
        for name, argument in (
            ("read_file", "file_path"),
            ("read_memory", "file_path"),
            ("read_it", "path"),
        ):
            result = raw.call("d", name, **{argument: place.topic})
            tag = result["_meta"]["pinfold/retention"]
            assert tag["path"] == place.topic and tag["complete"] and not tag["pinned"]
            assert details(result)["upstream"] == "up" and details(result)["tool"] == "read_it"
        assert "pinfold/retention" not in raw.call("d", "read_it", path=outside)["_meta"]
        assert kind(raw.call("d", "read_memory", file_path=outside)) == "denied"
        missing = raw.call("d", "read_it", path=f"{place.memory}/none.md")
        assert missing["isError"] and "pinfold/retention" not in missing["_meta"]
        many = raw.call("d", "read_many", all=[place.topic])
        assert not many["isError"] and "pinfold/retention" not in many["_meta"]


def test_what_it_makes_up_is_not_tagged(place: Place) -> None:
    with place.native("lie") as raw:
        result = raw.call("s", "read_it", path=place.topic)
        assert result["content"][0]["text"] == "hello\n!"
        assert "pinfold/retention" not in result["_meta"]


def test_one_path_that_is_denied_denies_the_call(place: Place) -> None:
    with place.native() as raw:
        rules = [{"decision": "deny", "tools": ["read_file"], "paths": ["secret/**"]}]
        raw.open(place.project, sessionId="r", backend="up", rules=rules)
        hidden = write(place.project / "secret/x", "x")
        for name, arguments in (
            ("read_many", {"all": [place.topic, hidden]}),
            ("read_it", {"path": hidden}),
            ("read_it", {"path": str(place.project / "secret")}),
            ("read_file", {"file_path": hidden}),
        ):
            result = raw.call("r", name, **arguments)
            assert kind(result) == "denied" and decision(result)["rule"] == "base-rule", name
        assert not said(place.log, "tools/call")


def test_the_record_has_each_path_with_its_decision(place: Place) -> None:
    record = place.base / "audit.jsonl"
    with place.native(options={"audit": {"path": str(record)}}) as raw:
        raw.call("s", "move_it", **{"from": place.topic, "to": f"{place.memory}/moved.md"})
        raw.call("s", "odd", how="x")
        raw.result("shutdown")
        raw.send({"jsonrpc": "2.0", "method": "exit"})
        assert raw.status() == 0
    lines = [json.loads(line) for line in read(record).splitlines()]
    assert [(line["tool"], line["path"], line["outcome"]) for line in lines] == [
        ("move_it", place.topic, "done"),
        ("move_it", f"{place.memory}/moved.md", "done"),
        ("odd", None, "done"),
    ]


def test_changes_in_memory_are_told(place: Place) -> None:
    moved, new = f"{place.memory}/moved.md", f"{place.memory}/new.md"
    with place.native() as raw:
        raw.call("s", "write_it", path=new, content="x")
        raw.call("s", "write_it", path=new, content="y")
        raw.call("s", "move_it", **{"from": place.topic, "to": moved})
        raw.call("s", "drop_it", path=new)
        raw.call("s", "drop_it", path=new)
        changes = [(each["kind"], each["path"]) for each in told(raw, "memory/didChange")]
        assert changes == [
            *(("created", new), ("changed", new), ("deleted", place.topic)),
            *(("created", moved), ("deleted", new)),
        ]


def test_a_rule_that_asks_asks_before_anything_is_sent(place: Place) -> None:
    rules = [{"decision": "ask", "tools": ["drop_it"]}]
    up = upstream(place.log)
    with Raw(place.env) as raw:
        capabilities = {"experimental": {"pinfold": {"permissionRequests": True}}}
        options = {"pinfold": {"upstreams": {"up": up}, "rules": rules}}
        raw.result("initialize", {"capabilities": capabilities, "initializationOptions": options})
        raw.open(place.project, sessionId="s", backend="up")
        for number, outcome in ((1, "deny"), (2, "allow-once")):
            begin(raw, number, "drop_it", path=place.topic)
            question = raw.receive()
            assert question["method"] == "permission/request"
            assert question["params"]["tool"] == "drop_it"
            assert not said(place.log, "tools/call")
            raw.send({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}})
            result = raw.receive()["result"]
            assert decision(result)["asked"] == outcome
        assert not os.path.exists(place.topic)


def test_explain_says_what_the_call_would(place: Place) -> None:
    with scoped(place) as raw:
        for name, arguments, right in (
            ("write_it", {"path": place.pinned}, ("deny", "pinned")),
            ("write_file", {"file_path": place.pinned}, ("deny", "pinned")),
            ("move_it", {"from": place.memory, "to": "/elsewhere"}, ("deny", "pinned")),
            ("drop_it", {"path": place.topic}, ("allow", "default")),
            ("odd", {}, ("deny", "unknown-tool")),
            ("run_shell_command", {"command": "ls"}, ("allow", "shell")),
        ):
            params = {"sessionId": "d", "name": name, "arguments": arguments}
            found = raw.result("policy/explain", params)
            assert (found["decision"], found["rule"]) == right, (name, found)
        assert not said(place.log, "tools/call")


def test_resources_are_the_gateway_s_own(place: Place) -> None:
    with place.mcp("--profile", "dream") as raw:
        uri = Path(place.topic).as_uri()
        contents = raw.result("resources/read", {"uri": uri})["contents"]
        assert contents[0]["text"] == "hello\n"
        assert not said(place.log, "tools/call")


def test_in_front_of_one_by_the_command_line_alone(place: Place) -> None:
    up = upstream(place.log)
    command = (*SERVE, "--project", str(place.project), "--tool-prefix", "up_", "--upstream", "up")
    with Raw(place.env, (*command, "--", up["command"], *up["args"]), lines=True) as raw:
        raw.result("initialize", {**INITIALIZE, "capabilities": {}})
        names = [tool["name"] for tool in raw.result("tools/list")["tools"]]
        assert "up_odd" in names and "up_read_file" not in names  # nothing says that it serves ours
        result = raw.result("tools/call", {"name": "up_odd", "arguments": {"how": "x"}})
        assert details(result) == {"upstream": "up", "tool": "odd", "path": None}
    with Raw(place.env, (*command, "--", up["command"], *up["args"])) as raw:
        raw.initialize()
        assert "odd" in raw.open(place.project, backend="up")["tools"]
