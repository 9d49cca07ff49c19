"""The official TypeScript clients, both generations, and the inspector's command line."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.peers import NODE, node
from support import SERVE, Embedded, clean_env, decision, read, write

pytestmark = pytest.mark.client

TOPIC = "Invoices are in cents. é😀\n"
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CLIENTS = {
    # the generation and its mode; the revision it agrees on (the first generation does not say)
    "v1": ("v1", "legacy", None),
    "v2 legacy": ("v2", "legacy", "2025-11-25"),
    "v2 auto": ("v2", "auto", "2026-07-28"),
}


class Place:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.memory = Path(Embedded(base).memory)
        self.topic = write(self.memory / "billing.md", TOPIC)
        self.pinned = write(self.memory / "pinned/rules.md", "curated\n")
        self.new = str(self.memory / "new.md")

    def node(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = str(NODE / script)
        assert os.path.exists(path), "run `make test-clients`"
        env = clean_env(
            QWEN_CODE_MEMORY_BASE_DIR=str(self.base / "memory"), HOME=str(self.base / "home")
        )
        return subprocess.run(
            [node(), path, *arguments],
            env=env,
            cwd=self.base,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=50,
            check=False,
        )

    def client(self, kind: str, plan: dict[str, Any], *flags: str) -> dict[str, Any]:
        generation, mode, _ = CLIENTS[kind]
        done = self.node("mcp.mjs", generation, mode, json.dumps(plan), *SERVE, *flags)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        seen: dict[str, Any] = json.loads(done.stdout)
        assert seen["errors"] == []
        return seen

    def inspect(self, *arguments: str) -> tuple[int, Any, str]:
        serve = [*SERVE, "--profile", "dream", "--project", str(self.project)]
        script = f"node_modules/{INSPECTOR}"
        memory = f"QWEN_CODE_MEMORY_BASE_DIR={self.base}/memory"  # it hands on little of its own
        done = self.node(script, "--cli", *serve, "-e", memory, *arguments)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_dream_session_of_the_typescript_client(place: Place, kind: str) -> None:
    """With the project from the client's roots where it has them, else from a flag."""
    stateless = "auto" in kind
    calls = [
        ["read_memory", {"file_path": place.topic}],
        ["write_file", {"file_path": place.pinned, "content": "mine"}],
        ["write_file", {"file_path": place.new, "content": "new"}],
        ["nothing", {}],
    ]
    plan: dict[str, Any] = {"calls": calls, "many": calls[0], "root": place.project.as_uri()}
    flags = ["--profile", "dream"] + (["--project", str(place.project)] if stateless else [])
    seen = place.client(kind, plan, *flags)
    assert (seen["server"], seen["version"]) == ("pinfold", CLIENTS[kind][2])
    assert "pinned/" in seen["instructions"]
    hints = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in seen["tools"]}
    assert hints == {"read_file": True, "read_memory": True, "write_file": False, "edit": False}
    memory, denied, written, nothing = seen["results"]
    (content,) = memory["content"]
    assert content["text"] == TOPIC
    assert content["annotations"] == {"priority": 1, "audience": ["assistant"]}
    assert memory["_meta"]["pinfold/retention"]["scope"] == "project"
    assert denied["isError"] and decision(denied)["rule"] == "pinned"
    assert not written.get("isError") and read(place.new) == b"new"
    assert nothing == {"code": -32602}
    assert seen["aborted"] == "aborted" and seen["many"] == 100
    assert read(place.pinned) == b"curated\n"


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize(
    ("answer", "asked", "allowed"),
    [
        ({"action": "accept", "content": {"answer": "Allow in this session"}}, 1, True),
        ({"action": "accept", "content": {"answer": "Deny"}}, 2, False),
        ({"action": "cancel"}, 2, False),
    ],
)
def test_a_rule_that_asks(
    place: Place, kind: str, answer: dict[str, Any], asked: int, allowed: bool
) -> None:
    config = {"rules": [{"decision": "ask", "tools": ["write_file"], "paths": ["*.py"]}]}
    path = write(place.base / "config.json", json.dumps(config))
    target = str(place.project / "a.py")
    calls = [["write_file", {"file_path": target, "content": str(n)}] for n in range(2)]
    plan = {"calls": calls, "answer": answer}
    seen = place.client(kind, plan, "--config", path, "--project", str(place.project))
    assert [not result.get("isError") for result in seen["results"]] == [allowed, allowed]
    assert len(seen["asked"]) == asked and target in seen["asked"][0]
    assert os.path.exists(target) == allowed


def test_the_inspector_lists_reads_and_is_denied(place: Place) -> None:
    status, listed, complaints = place.inspect("--method", "tools/list", "--strict")
    assert status == 0 and complaints == ""
    assert [tool["name"] for tool in listed["tools"]][:2] == ["read_file", "read_memory"]

    def call(tool: str, *arguments: str) -> tuple[int, Any]:
        pairs = [part for each in arguments for part in ("--tool-arg", each)]
        status, result, _ = place.inspect("--method", "tools/call", "--tool-name", tool, *pairs)
        return status, result

    status, result = call("read_memory", f"file_path={place.topic}")
    assert status == 0 and result["content"][0]["text"] == TOPIC
    assert result["_meta"]["pinfold/retention"]["scope"] == "project"
    status, result = call("write_file", f"file_path={place.pinned}", "content=mine")
    assert status == 5 and decision(result)["rule"] == "pinned"
    status, result = call("write_file", f"file_path={place.new}", "content=new")
    assert status == 0 and read(place.new) == b"new"
