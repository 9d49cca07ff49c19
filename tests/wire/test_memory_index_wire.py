"""`memory/index` asked of a real process."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Raw, clean_env, write

TOPIC = "---\nname: {}\ndescription: D\ntype: project\n---\n\nBody\n"


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    (tmp_path / "project").mkdir()
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(tmp_path / "memory"), HOME=str(tmp_path))
    with Raw(env) as running:
        yield running.initialize()


def laid(raw: Raw, tmp_path: Path, profile: str = "dream") -> str:
    opened = raw.open(tmp_path / "project", profile, sessionId="s")
    memory: str = opened["roots"][0]["path"]
    os.utime(write(f"{memory}/old.md", TOPIC.format("Old")), (1, 1))
    write(f"{memory}/pinned/new\u2028 é.md", TOPIC.format("New \x1b[31m"))
    write(f"{memory}/broken.md", "no frontmatter, but a secret")
    os.symlink("/etc/passwd", f"{memory}/link.md")
    os.mkfifo(f"{memory}/fifo.md")
    write(os.fsencode(memory).decode() + "/\udcff.md", TOPIC.format("Odd"))
    return memory


def test_documents_in_order_and_what_was_skipped(raw: Raw, tmp_path: Path) -> None:
    memory = laid(raw, tmp_path)
    result = raw.result("memory/index", {"sessionId": "s"})
    new, old = result["documents"]
    assert old == {
        "kind": "project",
        "path": f"{memory}/old.md",
        "relativePath": "old.md",
        "type": "project",
        "title": "Old",
        "description": "D",
        "pinned": False,
        "sizeBytes": len(TOPIC.format("Old")),
        "modified": "1970-01-01T00:00:01.000Z",
    }
    assert (new["relativePath"], new["pinned"]) == ("pinned/new\u2028 é.md", True)
    assert new["title"] == "New \x1b[31m" and result["truncated"] is False
    assert all(each["kind"] == "project" and each["reason"] for each in result["skipped"])
    paths = [each["path"].removeprefix(memory) for each in result["skipped"]]
    assert paths == ["/broken.md", "/fifo.md", "/link.md", "/\ufffd.md"]
    assert "secret" not in json.dumps(result)
    for each in result["documents"]:
        assert not raw.call("s", "read_memory", file_path=each["path"])["isError"]


def test_limits_and_kinds(raw: Raw, tmp_path: Path) -> None:
    laid(raw, tmp_path)
    first = raw.result("memory/index", {"sessionId": "s", "limit": 1})
    assert len(first["documents"]) == 1 and first["truncated"] is True
    assert len(first["skipped"]) == 4
    user = raw.result("memory/index", {"sessionId": "s", "kinds": ["user"], "limit": None})
    assert user == {"documents": [], "truncated": False, "skipped": []}


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -5}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": True}, "limit"),
        ({"kinds": ["projects"]}, "kinds[0]"),
        ({"kinds": ["user", 5]}, "kinds[1]"),
        ({"kinds": "user"}, "kinds"),
        ({"kind": ["user"]}, "kind"),
    ],
)
def test_wrong_params_are_named(
    raw: Raw, tmp_path: Path, params: dict[str, Any], path: str
) -> None:
    raw.open(tmp_path / "project", sessionId="s")
    error = raw.ask("memory/index", {"sessionId": "s", **params})["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, path)


def test_unknown_sessions_and_order(raw: Raw, tmp_path: Path) -> None:
    assert raw.ask("memory/index", {"sessionId": "s"})["error"]["code"] == -32010
    memory = laid(raw, tmp_path, "main")
    raw.send(
        {"jsonrpc": "2.0", "id": 1, "method": "session/configure", "params": {
            "sessionId": "s", "scope": {"confineReads": True, "projectMemory": False}}},
        {"jsonrpc": "2.0", "id": 2, "method": "memory/index", "params": {"sessionId": "s"}},
    )  # fmt: skip
    answers = {answer["id"]: answer for answer in (raw.receive(), raw.receive())}
    assert answers[2]["result"] == {"documents": [], "truncated": False, "skipped": []}
    raw.result("session/configure", {"sessionId": "s", "scope": {"projectMemory": None}})
    listed = raw.result("memory/index", {"sessionId": "s"})["documents"]
    assert {each["path"] for each in listed} == {
        f"{memory}/old.md",
        f"{memory}/pinned/new\u2028 é.md",
    }


def test_a_listing_follows_a_change(raw: Raw, tmp_path: Path) -> None:
    memory = laid(raw, tmp_path)
    raw.notifications.clear()
    raw.call("s", "write_file", file_path=f"{memory}/t.md", content=TOPIC.format("Mine"))
    assert [each["method"] for each in raw.notifications] == ["memory/didChange"]
    listed = raw.result("memory/index", {"sessionId": "s", "limit": 1})["documents"]
    assert [each["title"] for each in listed] == ["Mine"]
