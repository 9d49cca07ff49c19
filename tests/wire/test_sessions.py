"""Sessions over the wire: scopes, several at once, order, cancellation."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import (
    Held,
    Raw,
    clean_env,
    decision,
    details,
    kind,
    peak_kib,
    read,
    request,
    resident_kib,
    write,
)

PROFILES = {
    "main": [False, False, True, True, False, "unscoped", False, "deny", "detect"],
    "extraction": [True, False, True, True, True, "read-only", False, "deny", "detect"],
    "dream": [True, False, True, False, True, "read-only", False, "deny", "detect"],
    "remember": [True, True, True, True, False, "deny", True, "deny", "detect"],
}
MEMBERS = [
    "confineWrites",
    "confineReads",
    "projectMemory",
    "userMemory",
    "protectPinned",
    "shell",
    "bypassAsk",
    "hardLinks",
    "staleness",
]


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(tmp_path / "memory"), HOME=str(tmp_path))
    (tmp_path / "project").mkdir()
    with Raw(env) as server:
        yield server.initialize()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.mark.parametrize("profile", PROFILES)
def test_each_profile_has_its_whole_scope(raw: Raw, project: Path, profile: str) -> None:
    opened = raw.open(project, profile)
    assert opened["scope"] == dict(zip(MEMBERS, PROFILES[profile], strict=True))
    assert opened["profile"] == profile
    assert opened["tools"] == ["read_file", "read_memory", "write_file", "edit"]
    assert bool(opened["promptRules"]) is opened["scope"]["protectPinned"]
    assert [root["kind"] for root in opened["roots"]] == ["project", "user", "team"]
    included = {root["kind"] for root in opened["roots"] if root["included"]}
    assert included == ({"project"} if profile == "dream" else {"project", "user"})


def test_overrides_replace_single_members_and_null_resets_them(raw: Raw, project: Path) -> None:
    opened = raw.open(project, "dream", scope={"userMemory": True, "shell": None})
    assert opened["scope"]["userMemory"] is True and opened["scope"]["shell"] == "read-only"
    session = opened["sessionId"]

    def configure(**scope: Any) -> dict[str, Any]:
        params = {"sessionId": session, "scope": scope}
        found: dict[str, Any] = raw.result("session/configure", params)["scope"]
        return found

    assert configure(protectPinned=False)["userMemory"] is True  # merged over the current one
    assert configure(userMemory=None)["userMemory"] is False
    assert configure()["protectPinned"] is False
    assert raw.ask("session/configure", {"sessionId": session, "scope": {"x": 1}})["error"]
    assert configure(protectPinned=None) == dict(zip(MEMBERS, PROFILES["dream"], strict=True))


def test_prompt_rules_of_dream_leave_pinned_out_of_consolidation(raw: Raw, project: Path) -> None:
    extraction = raw.open(project, "extraction")["promptRules"]
    dream = raw.open(project, "dream")["promptRules"]
    assert len(dream) == len(extraction) + 1 and "consolidation" in dream[-1]


def test_optional_members_may_be_null(raw: Raw, project: Path) -> None:
    names = ("sessionId", "scope", "memory", "backend", "rules")
    opened = raw.open(project, "dream", **dict.fromkeys(names))
    assert opened["scope"] == dict(zip(MEMBERS, PROFILES["dream"], strict=True))


def test_several_sessions_each_with_its_own_roots_and_scope(raw: Raw, tmp_path: Path) -> None:
    sessions = []
    for name in "ab":
        (tmp_path / name).mkdir()
        opened = raw.open(tmp_path / name, "dream", sessionId=name)
        sessions.append(opened)
        write(opened["roots"][0]["path"] + "/pinned/p.md", "curated")
    raw.open(tmp_path / "a", "main", sessionId="m")
    a, b = (opened["roots"][0]["path"] for opened in sessions)
    assert raw.call("a", "write_file", file_path=f"{a}/t.md", content="x")["isError"] is False
    assert decision(raw.call("b", "write_file", file_path=f"{a}/t.md", content="y"))["rule"] == (
        "outside-memory"
    )
    assert kind(raw.call("a", "write_file", file_path=f"{a}/pinned/p.md", content="y")) == "denied"
    assert kind(raw.call("m", "write_file", file_path=f"{a}/pinned/p.md", content="y")) is None
    assert read(f"{a}/pinned/p.md") == b"y" and read(f"{b}/pinned/p.md") == b"curated"
    listed = {each["sessionId"]: each for each in raw.result("session/list")["sessions"]}
    assert [listed[s]["calls"] for s in "abm"] == [2, 1, 1]
    assert [listed[s]["denials"] for s in "abm"] == [1, 1, 0]
    assert listed["a"]["projectRoot"] == str(tmp_path / "a") and listed["a"]["turns"] == []
    assert raw.result("session/close", {"sessionId": "a"}) == {"calls": 2, "denials": 1}
    assert raw.ask("session/close", {"sessionId": "a"})["error"]["code"] == -32010
    assert raw.open(tmp_path / "a", "main", sessionId="a")["sessionId"] == "a"


def test_relative_paths_count_from_the_session_not_from_the_process(
    raw: Raw, project: Path
) -> None:
    write(project / "a.txt", "mine")
    session = raw.open(f"file://{project}")["sessionId"]
    assert raw.call(session, "read_file", file_path="a.txt")["content"][0]["text"] == "mine"


def test_a_uri_is_decoded_and_a_path_is_not(raw: Raw, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    write(tmp_path / "a b/a%20b.txt", "1")
    write(tmp_path / "a b/a b.txt", "2")
    session = raw.open(f"file://{tmp_path}/a%20b")["sessionId"]
    assert raw.call(session, "read_file", file_path="a%20b.txt")["content"][0]["text"] == "1"
    assert raw.call(session, "read_file", file_path="a b.txt")["content"][0]["text"] == "2"
    escape = raw.call(session, "read_file", file_path="%2e%2e/%2e%2e/etc/passwd")
    assert kind(escape) == "not-found"


def test_defaults_of_the_connection_and_explicit_roots(tmp_path: Path) -> None:
    with Raw(clean_env(HOME=str(tmp_path))) as raw:
        raw.initialize({"memory": {"layout": "claude", "teamRoot": str(tmp_path / "team")}})
        roots = raw.open(tmp_path / "p")["roots"]
        assert [root["kind"] for root in roots] == ["project", "team"]
        assert roots[0]["path"].startswith(f"{tmp_path}/.claude/projects/-")
        assert roots[1]["pinned"] == []
        memory = {"projectRoot": "~/notes", "userRoot": str(tmp_path / "me")}
        roots = raw.open(tmp_path / "p", memory=memory)["roots"]
        expected = [f"{tmp_path}/notes", f"{tmp_path}/me", f"{tmp_path}/team"]
        assert [root["path"] for root in roots] == expected
        assert roots[0]["pinned"] == [f"{tmp_path}/notes/pinned"]


def test_roots_tell_where_links_lead(raw: Raw, tmp_path: Path, project: Path) -> None:
    opened = raw.open(project, sessionId="s")
    root = opened["roots"][0]["path"]
    assert opened["roots"][0]["exists"] is False
    (tmp_path / "shared").mkdir()
    os.makedirs(root)
    os.symlink(tmp_path / "shared", f"{root}/pinned")
    (found, *_) = raw.result("memory/roots", {"sessionId": "s"})["roots"]
    assert found["exists"] is True
    assert found["pinned"] == [f"{root}/pinned", str(tmp_path / "shared")]
    assert found["realPath"] == found["writePath"] == root


def test_session_messages_take_effect_before_later_ones(raw: Raw, project: Path) -> None:
    """All in one write: nothing waits for an answer in between."""
    memory = raw.open(project)["roots"][0]["path"]
    pinned = write(f"{memory}/pinned/p.md", "0")

    def call(number: int, content: str) -> dict[str, Any]:
        arguments = {"file_path": pinned, "content": content}
        params = {"sessionId": "s", "name": "write_file", "arguments": arguments}
        return request(number, "tools/call", params)

    def configure(number: int, protect: bool) -> dict[str, Any]:
        params = {"sessionId": "s", "scope": {"protectPinned": protect}}
        return request(number, "session/configure", params)

    opening = {"profile": "main", "projectRoot": str(project), "sessionId": "s"}
    closing = {"sessionId": "s"}
    raw.send(
        request(1, "session/open", opening),
        configure(2, True),
        call(3, "a"),
        request(4, "session/list"),
        request(5, "session/close", closing),
        call(6, "b"),
        request(7, "session/open", opening),
        call(8, "c"),
    )
    answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(8))}
    assert kind(answers[3]["result"]) == "denied" if "result" in answers[3] else True
    assert [each["sessionId"] for each in answers[4]["result"]["sessions"]][-1] == "s"
    assert "result" in answers[5]
    assert answers[6]["error"]["code"] == -32010
    assert kind(answers[8]["result"]) is None
    assert read(pinned) == b"c"


def test_changes_to_one_path_run_in_order_of_arrival(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    count = 60
    for index in range(count):
        arguments = {"file_path": "f.txt", "content": f"{index}"}
        if index:
            arguments = {
                "file_path": "./f.txt" if index % 2 else str(project / "f.txt"),
                "old_string": f"{index - 1}",
                "new_string": f"{index}",
            }
        name = "edit" if index else "write_file"
        params = {"sessionId": session, "name": name, "arguments": arguments}
        raw.send(request(index, "tools/call", params))
    answers = [raw.receive() for _ in range(count)]
    assert [each["id"] for each in answers if kind(each["result"])] == []
    assert read(project / "f.txt") == f"{count - 1}".encode()


def test_a_cancelled_change_that_waits_is_never_made(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    held = Held(project)

    def call(number: int) -> dict[str, Any]:
        arguments = {"file_path": "f.txt", "content": str(number)}
        params = {"sessionId": session, "name": "write_file", "arguments": arguments}
        return request(number, "tools/call", params)

    # 1 waits for the lock, 2 and 3 queue behind it
    raw.send(call(1), call(2), call(3))
    for number in (1, 2):
        raw.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
    answers = {answer["id"]: answer for answer in (raw.receive() for _ in range(2))}
    assert {number: answers[number]["error"]["code"] for number in answers} == {
        1: -32800,
        2: -32800,
    }
    raw.send(request("quick", "session/list"))
    assert raw.receive()["id"] == "quick"
    held.release()
    assert kind(raw.receive()["result"]) is None
    assert read(project / "f.txt") == b"3"
    assert sorted(os.listdir(project)) == ["f.txt"]


def test_cancelling_what_is_done_changes_nothing(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    arguments = {"file_path": "f.txt", "content": "x"}
    params = {"sessionId": session, "name": "write_file", "arguments": arguments}
    raw.send(request(0, "tools/call", params))
    assert kind(raw.receive()["result"]) is None
    raw.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 0}})
    assert raw.result("session/list")["sessions"]
    assert read(project / "f.txt") == b"x"


def test_a_lock_that_is_never_released_is_told(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    held = Held(project)
    try:
        result = raw.call(session, "write_file", file_path="f.txt", content="x")
        assert kind(result) == "changed-underfoot"
        assert os.listdir(project) == []
    finally:
        held.release()


def test_a_slow_call_stalls_nobody_else(raw: Raw, project: Path, tmp_path: Path) -> None:
    """A write that waits for a lock; reads, writes elsewhere and listings go on."""
    (project / "d").mkdir()
    write(project / "r.txt", "r")
    session = raw.open(project)["sessionId"]
    held = Held(project / "d")
    arguments = {"file_path": "d/f.txt", "content": "x"}
    params = {"sessionId": session, "name": "write_file", "arguments": arguments}
    raw.send(request("slow", "tools/call", params))
    for index in range(30):
        read_it = {"sessionId": session, "name": "read_file", "arguments": {"file_path": "r.txt"}}
        raw.send(request(index, "tools/call", read_it))
        assert raw.receive()["id"] == index
    arguments = {"file_path": "other.txt", "content": "y"}
    params = {"sessionId": session, "name": "write_file", "arguments": arguments}
    raw.send(request("other", "tools/call", params))
    assert raw.receive()["id"] == "other"
    held.release()
    assert raw.receive()["id"] == "slow"


def test_closing_a_session_lets_changes_finish(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    for index in range(10):
        arguments = {"file_path": f"{index}.txt", "content": "x"}
        params = {"sessionId": session, "name": "write_file", "arguments": arguments}
        raw.send(request(index, "tools/call", params))
    raw.send(request("close", "session/close", {"sessionId": session}))
    answers = [raw.receive() for _ in range(11)]
    assert answers[-1]["result"] == {"calls": 10, "denials": 0}
    assert len(os.listdir(project)) == 10


@pytest.mark.slow
def test_a_host_that_does_not_read_costs_bounded_memory_and_gets_everything(
    raw: Raw, project: Path
) -> None:
    write(project / "big.txt", "y" * 250_000)
    session = raw.open(project)["sessionId"]
    count = 800  # 200 MB of answers
    params = {"sessionId": session, "name": "read_file", "arguments": {"file_path": "big.txt"}}
    messages = b"".join(
        b"Content-Length: %d\r\n\r\n" % len(body) + body
        for body in (_body(index, params) for index in range(count))
    )
    writer = threading.Thread(target=raw.write, args=(messages,))
    writer.start()
    writer.join(20)
    assert not writer.is_alive()
    raw.send(request("last", "session/list"))
    answers = [raw.receive() for _ in range(count + 1)]
    assert {each["id"] for each in answers} == {*range(count), "last"}
    peak = peak_kib(raw.process.pid)
    assert peak < 120 * 1024, f"{peak} KiB"


_LARGE = 16 << 20


@pytest.mark.slow  # a rest takes its time
@pytest.mark.skipif(sys.platform != "linux", reason="how much is resident is asked of /proc")
def test_what_large_answers_took_is_given_back(raw: Raw, project: Path) -> None:
    session = raw.open(project)["sessionId"]
    arguments = {"file_path": write(project / "large.txt", "y" * _LARGE), "limit": 1}
    params = {"sessionId": session, "name": "read_file", "arguments": arguments}
    for _ in range(3):
        answer = raw.result("tools/call", params)
        assert len(answer["content"][0]["text"]) == _LARGE
    peak = peak_kib(raw.process.pid)
    deadline = time.monotonic() + 20
    while resident_kib(raw.process.pid) > peak - 2 * _LARGE // 1024:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _body(index: int, params: Any) -> bytes:
    return json.dumps(request(index, "tools/call", params)).encode()


def test_tags_and_details_over_the_wire(raw: Raw, project: Path) -> None:
    opened = raw.open(project, "dream")
    session, memory = opened["sessionId"], opened["roots"][0]["path"]
    path = write(f"{memory}/pinned/rules.md", "a\r\nb\n")
    params = {
        "sessionId": session,
        "name": "read_memory",
        "arguments": {"file_path": path, "wait_for_previous": True, "offset": None},
        "callId": "c1",
        "workDoneToken": 1,
        "_meta": {"x": 1},
    }
    result = raw.result("tools/call", params)
    assert result["content"] == [{"type": "text", "text": "a\nb\n"}]
    tag = result["_meta"]["pinfold/retention"]
    sha256 = tag.pop("sha256")
    assert tag == {
        "preserve": True,
        "reason": "managed-memory",
        "scope": "project",
        "pinned": True,
        "complete": True,
        "path": path,
    }
    found = details(result)
    assert found.pop("sha256") == sha256 and len(sha256) == 64
    assert found == {
        "path": path,
        "startLine": 0,
        "endLine": 2,
        "totalLines": 2,
        "truncated": False,
        "nextOffset": None,
        "nextColumn": None,
        "encoding": "utf-8",
        "bom": False,
        "lineEnding": "mixed",
        "sizeBytes": 5,
    }
    assert decision(result) == {
        "decision": "allow",
        "rule": "default",
        "reason": decision(result)["reason"],
        "root": "project",
        "match": None,
        "path": path,
        "resolvedPath": path,
        "turnId": None,
        "asked": None,
        "source": None,
    }


def test_tools_are_listed_flat_and_annotated(raw: Raw, project: Path) -> None:
    tools = raw.result("tools/list")["tools"]
    assert raw.result("tools/list", {"sessionId": raw.open(project)["sessionId"]})["tools"] == tools
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and not {"oneOf", "anyOf", "allOf"} & set(schema)
        assert "file_path" in schema["required"]
        assert tool["annotations"]["readOnlyHint"] is tool["name"].startswith("read")
        assert all("description" in each for each in schema["properties"].values())


_EACH = 4 << 20
_TIMES = 16


@pytest.mark.skipif(sys.platform != "linux", reason="how much is resident is asked of /proc")
def test_changes_that_come_to_nothing_leave_nothing(raw: Raw, project: Path) -> None:
    """Cancelled while a thread is at it, stale, refused, not explained: in a ring each of them would stay."""
    session = raw.open(project)["sessionId"]

    def change(number: int, **more: Any) -> dict[str, Any]:
        arguments = {"file_path": f"{number}/a", "content": "y" * _EACH, **more}
        params = {"sessionId": session, "name": "write_file", "arguments": arguments}
        return request(number, "tools/call", params)

    for number in range(_TIMES):
        (project / str(number)).mkdir()
        held = Held(project / str(number))
        raw.send(change(number))
        raw.result("memory/roots", {"sessionId": session})
        raw.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        assert raw.receive()["error"]["code"] == -32800
        held.release()
        for more in ({"expected_sha256": "0" * 64}, {"bogus": 1}):
            raw.send(change(number, **more))
            assert raw.receive()["result"]["isError"]
        raw.send({**change(number, file_path=5), "method": "policy/explain"})
        assert raw.receive()["error"]["code"] == -32602
    resident = resident_kib(raw.process.pid)
    assert resident < _TIMES * _EACH >> 10, f"{resident} KiB; each time leaves something"
