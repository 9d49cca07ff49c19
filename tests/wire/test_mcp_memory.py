"""Memory in MCP's words: resources, their updates, prompts; over a real pipe, one message a line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from pinfold.paths.uri import from_uri, to_uri
from pinfold_protocol.errors import RpcError
from support import DEADLINE, clean_env, write

TOPIC = "---\ntype: project\nname: {title}\ndescription: about {title}\n---\nbody of {title}\n"
STATELESS = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


class Lines:
    """An MCP client that knows nothing: one message a line."""

    def __init__(self, base: Path, *flags: str) -> None:
        env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=f"{base}/base", HOME=f"{base}/home")
        command = [sys.executable, "-m", "pinfold", "serve", "--project", f"{base}/project", *flags]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
            encoding="utf-8",
        )
        self.notifications: list[dict[str, Any]] = []
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(DEADLINE) == 0
        self.process.stdout.close()

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        assert self.process.stdout is not None
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params or {}})
        while True:
            message: dict[str, Any] = json.loads(self.process.stdout.readline())
            if message.get("id") == self._last:
                return message
            self.notifications.append(message)

    def result(self, method: str, params: Any = None) -> Any:
        answer = self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Self:
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        self.result("initialize", params)
        self.send({"method": "notifications/initialized"})
        return self


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    user = tmp_path / "base/memories"
    write(user / "pinned/rules.md", TOPIC.format(title="Rules"))
    write(user / "tips/a b é.md", TOPIC.format(title="Tips"))
    write(user / "broken.md", "no frontmatter")
    return tmp_path


@pytest.fixture
def client(base: Path) -> Iterator[Lines]:
    with Lines(base) as lines:
        yield lines.initialize()


def resources(client: Lines) -> dict[str, Any]:
    return {each["name"]: each for each in client.result("resources/list")["resources"]}


def test_documents_are_resources_and_pinned_ones_are_marked(client: Lines, base: Path) -> None:
    found = resources(client)
    assert set(found) == {"pinned/rules.md", "tips/a b é.md"}
    pinned, plain = found["pinned/rules.md"], found["tips/a b é.md"]
    assert (pinned["title"], plain["title"]) == ("Rules (pinned)", "Tips")
    assert pinned["annotations"]["priority"] > plain["annotations"]["priority"]
    assert pinned["_meta"]["pinfold/document"] == {
        "kind": "user",
        "type": "project",
        "pinned": True,
    }
    assert plain["uri"] == f"file://{base}/base/memories/tips/a%20b%20%C3%A9.md"
    assert (plain["mimeType"], plain["description"]) == ("text/markdown", "about Tips")
    assert plain["size"] == len(TOPIC.format(title="Tips"))


@pytest.mark.parametrize("name", ["pinned/rules.md", "tips/a b é.md"])
def test_a_resource_is_read_whole(client: Lines, base: Path, name: str) -> None:
    uri = resources(client)[name]["uri"]
    result = client.result("resources/read", {"uri": uri})
    (content,) = result["contents"]
    assert content["uri"] == uri
    assert content["text"] == (base / "base/memories" / name).read_text("utf-8")
    assert result["_meta"]["pinfold/retention"]["preserve"] is True


def test_a_long_document_is_read_whole(client: Lines, base: Path) -> None:
    text = TOPIC.format(title="Long") + "line\n" * 100_000
    path = write(base / "base/memories/long.md", text)
    assert client.result("resources/read", {"uri": to_uri(path)})["contents"][0]["text"] == text


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "a file outside of memory": ({"uri": "file:///etc/passwd"}, -32602),
    "a document that is gone": ({"uri": "file://BASE/base/memories/gone.md"}, -32002),
    "a directory": ({"uri": "file://BASE/base/memories/tips"}, -32602),
    "another scheme": ({"uri": "https://example.org/a"}, -32602),
    "another machine": ({"uri": "file://elsewhere/a"}, -32602),
    "no URI": ({}, -32602),
    "a number": ({"uri": 3}, -32602),
    "a way out of memory": ({"uri": "file://BASE/base/memories/../../project/x"}, -32602),
    "a NUL": ({"uri": "file://BASE/base/memories/a%00b"}, -32602),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_resource_is_an_error(client: Lines, base: Path, name: str) -> None:
    params, code = REFUSED[name]
    params = {
        key: str(value).replace("BASE", str(base))
        if key == "uri" and isinstance(value, str)
        else value
        for key, value in params.items()
    }
    assert client.ask("resources/read", params)["error"]["code"] == code


def test_the_stateless_revision_has_no_code_of_its_own_for_not_found(base: Path) -> None:
    with Lines(base) as client:
        params = {"uri": f"file://{base}/base/memories/gone.md", **STATELESS}
        assert client.ask("resources/read", params)["error"]["code"] == -32602
        listed = client.result("resources/list", dict(STATELESS))
        assert len(listed["resources"]) == 2
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")


def test_changes_are_told_to_who_asked(client: Lines, base: Path) -> None:
    path = f"{base}/base/memories/tips/a b é.md"
    client.result("resources/subscribe", {"uri": to_uri(path)})

    def change(path: str, content: str) -> list[str]:
        arguments = {"file_path": path, "content": content}
        assert not client.result("tools/call", {"name": "write_file", "arguments": arguments})[
            "isError"
        ]
        told = [each["method"] for each in client.notifications]
        client.notifications.clear()
        return told

    assert change(path, "one") == ["notifications/resources/updated"]
    assert change(f"{base}/base/memories/new.md", "x") == ["notifications/resources/list_changed"]
    assert change(f"{base}/project/a.md", "x") == []
    client.result("resources/unsubscribe", {"uri": to_uri(path)})
    assert change(path, "two") == []


NO_RESOURCES = ["project/a.md", "base/memories/none.md", "base", "home", "pipe", "out.md"]


@pytest.mark.parametrize("name", NO_RESOURCES)
def test_what_is_no_document_is_not_subscribed_to(client: Lines, base: Path, name: str) -> None:
    write(f"{base}/project/a.md", "x")
    os.symlink(f"{base}/project/a.md", f"{base}/base/memories/out.md")
    path = f"{base}/base/memories/{name}" if name == "out.md" else f"{base}/{name}"
    error = client.ask("resources/subscribe", {"uri": f"file://{path}"})["error"]
    assert (error["code"], error["data"]["kind"]) == (-32002, "not-found")


def test_a_directory_and_what_may_not_be_read_are_not_subscribed_to(base: Path) -> None:
    with Lines(base, "--profile", "remember", "--scope", "userMemory=false") as client:
        client.initialize()
        for name, kind in (("pinned/rules.md", "denied"), ("", "denied")):
            uri = f"file://{base}/base/memories/{name}"
            error = client.ask("resources/subscribe", {"uri": uri})["error"]
            assert (error["code"], error["data"]["kind"]) == (-32602, kind)
    with Lines(base) as client:
        client.initialize()
        uri = f"file://{base}/base/memories/pinned"
        error = client.ask("resources/subscribe", {"uri": uri})["error"]
        assert (error["code"], error["data"]["kind"]) == (-32602, "is-directory")


LISTS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]


@pytest.mark.parametrize("method", LISTS)
def test_a_cursor_that_was_never_given_is_refused(client: Lines, method: str) -> None:
    odd: list[Any] = ["x", 5, ["x"], {}]
    for cursor in odd:
        error = client.ask(method, {"cursor": cursor})["error"]
        assert (error["code"], error["data"]["path"]) == (-32602, "cursor")
    for params in (None, {}, {"cursor": None}, {"cursor": ""}):
        assert "nextCursor" not in client.result(method, params)


@pytest.mark.parametrize("level", [None, "loud", "Error", 3, ["error"], {}])
def test_an_unknown_level_is_refused(client: Lines, level: Any) -> None:
    error = client.ask("logging/setLevel", {"level": level})["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, "level")
    assert client.result("logging/setLevel", {"level": "emergency"}) == {}


def test_a_confined_session_lists_and_reads_its_own_roots_only(base: Path) -> None:
    with Lines(base, "--profile", "remember", "--scope", "userMemory=false") as client:
        client.initialize()
        assert resources(client) == {}
        uri = f"file://{base}/base/memories/pinned/rules.md"
        assert client.ask("resources/read", {"uri": uri})["error"]["code"] == -32602


def test_prompts_say_what_holds_and_where(client: Lines) -> None:
    memory_root = client.result("memory/roots")["roots"][0]["path"]
    names = [each["name"] for each in client.result("prompts/list")["prompts"]]
    assert names == ["memory-main", "memory-extraction", "memory-dream", "memory-remember"]
    for name in names:
        text = client.result("prompts/get", {"name": name})["messages"][0]["content"]["text"]
        assert ("consolidation" in text) == (name == "memory-dream")
        assert f"Memory is in {memory_root} (project), " in text and "MEMORY.md" in text
    assert client.ask("prompts/get", {"name": "memory"})["error"]["code"] == -32602


def test_a_read_of_memory_carries_mcp_s_own_hint(client: Lines, base: Path) -> None:
    arguments = {"file_path": f"{base}/base/memories/pinned/rules.md"}
    result = client.result("tools/call", {"name": "read_memory", "arguments": arguments})
    assert result["content"][0]["annotations"] == {"priority": 1, "audience": ["assistant"]}
    assert "structuredContent" not in result
    plain = client.result(
        "tools/call",
        {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "x"}},
    )
    assert "annotations" not in plain["content"][0]


@pytest.mark.parametrize("path", ["/a", "/a b/%/é", "/x?y#z", "/\u4e2d"])
def test_uris_there_and_back(path: str) -> None:
    assert from_uri(to_uri(path), "uri") == path


@pytest.mark.parametrize(
    "uri", ["", "/a", "file:a", "file://h/a", "file:///a?b", "http:///a", "file:///%ff"]
)
def test_uris_that_are_none(uri: str) -> None:
    with pytest.raises(RpcError):
        from_uri(uri, "uri")


def test_nothing_overtakes_a_turn_while_the_session_opens(base: Path) -> None:
    """All of it is sent before the first answer is read."""
    number = 2000
    with Lines(base) as client:
        version = {"protocolVersion": "2025-11-25", "capabilities": {}}
        client.send({"id": "i", "method": "initialize", "params": version})
        client.send({"id": "t", "method": "turn/begin", "params": {"profile": "dream"}})
        for each in range(number):
            arguments = {"file_path": f"{base}/base/memories/pinned/x{each}.md", "content": "x"}
            params = {"name": "write_file", "arguments": arguments}
            client.send({"id": each, "method": "tools/call", "params": params})
        assert client.process.stdout is not None
        answers = [json.loads(client.process.stdout.readline()) for _ in range(number + 2)]
    written = [each for each in answers if each.get("result", {}).get("isError") is False]
    assert written == []
    assert os.listdir(base / "base/memories/pinned") == ["rules.md"]


def test_a_session_that_was_closed_lists_nothing(client: Lines) -> None:
    assert resources(client)
    client.result("session/close")
    assert client.ask("resources/list")["error"]["code"] == -32010
    assert (
        client.ask("tools/call", {"name": "read_file", "sessionId": 7})["error"]["code"] == -32602
    )


def test_subscriptions_are_bounded_and_odd_uris_are_none(client: Lines, base: Path) -> None:
    memories = f"{base}/base/memories"
    for each in range(1001):
        write(f"{memories}/{each}.md", "x")
    for each in range(1000):
        client.result("resources/subscribe", {"uri": f"file://{memories}/{each}.md"})
    last = {"uri": f"file://{memories}/1000.md"}
    assert client.ask("resources/subscribe", last)["error"]["code"] == -32602
    assert client.ask("resources/subscribe", {"uri": "file:///a%00b"})["error"]["code"] == -32602
