"""`context/compact` and `context/reset` over the wire, with a session that remembers its tags."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from pinfold_protocol.client import Client
from pinfold_protocol.compaction import CompactSettings, ForceTrigger, Reread
from pinfold_protocol.convert import structure
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag
from pinfold_protocol.session import MemoryOptions
from support import Raw, clean_env, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "memory/a.md", "alpha " * 20)
    write(tmp_path / "memory/pinned/rules.md", "rules " * 20)
    write(tmp_path / "project/src.py", "source " * 20)
    (tmp_path / "project/alias.md").symlink_to(tmp_path / "memory/a.md")
    return tmp_path / "project"


@pytest.fixture
def raw(project: Path) -> Any:
    with Raw(env=clean_env()) as gateway:
        yield gateway.initialize()


@pytest.fixture(scope="module")
def asked() -> Iterator[Raw]:
    """For what leaves nothing behind."""
    with Raw(env=clean_env()) as gateway:
        yield gateway.initialize()


def opened(raw: Raw, project: Path, **more: Any) -> str:
    memory = {"projectRoot": f"{project.parent}/memory"}
    session: str = raw.open(project, memory=memory, **more)["sessionId"]
    return session


def read(raw: Raw, session: str, path: str, call_id: str | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"sessionId": session, "name": "read_file", "callId": call_id}
    result: dict[str, Any] = raw.result("tools/call", params | {"arguments": {"file_path": path}})
    assert not result["isError"], result
    return result


def item(call_id: str, path: str, text: str) -> list[Any]:
    use = {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"file_path": path}}
    said = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [said]}]


def cleared(result: dict[str, Any]) -> list[str | None]:
    return [each.get("callId") for each in result["cleared"]]


def compact(
    raw: Raw, history: list[Any], session: str | None = None, **more: Any
) -> dict[str, Any]:
    params = {"sessionId": session, "format": "anthropic", "history": history}
    rest = {"trigger": {"kind": "force"}, "settings": {"keepRecent": 1}}
    result: dict[str, Any] = raw.result("context/compact", params | rest | more)
    return result


def test_paths_are_judged_by_the_session_s_roots(raw: Raw, project: Path) -> None:
    session = opened(raw, project)
    root = f"{project.parent}/memory"
    history = [
        message
        for index, path in enumerate(
            [
                f"{root}/a.md",
                f"{root}/gone/since.md",
                "../memory/a.md",
                "alias.md",
                "src.py",
                f"{root}-old/a.md",
                "bad\0path",
                "last",
            ]
        )
        for message in item(f"c{index}", path, "x")
    ]
    result = compact(raw, history, session)
    assert cleared(result) == ["c4", "c5", "c6"]
    assert result["report"]["preserved"] == 4
    assert result["meta"]["evictedPaths"] == ["src.py", f"{root}-old/a.md", "bad\0path"]


def test_the_session_remembers_what_it_tagged(raw: Raw, project: Path) -> None:
    """What a path meant when it was read counts, not what it means now."""
    session = opened(raw, project)
    read(raw, session, "alias.md", "c1")
    (project / "alias.md").unlink()
    (project / "alias.md").symlink_to(project / "src.py")
    history = item("c1", "alias.md", "x") + item("c2", "src.py", "y") + item("c3", "src.py", "z")
    assert cleared(compact(raw, history, session)) == ["c2"]
    assert cleared(compact(raw, history)) == ["c1", "c2"]
    assert cleared(compact(raw, history, opened(raw, project))) == ["c1", "c2"]


def test_only_tags_that_the_session_issued_count(raw: Raw, project: Path) -> None:
    mine, other = opened(raw, project), opened(raw, project)
    tag = read(raw, mine, "alias.md")["_meta"][RETENTION_KEY]
    history = item("c1", "x", "x") + item("c2", "src.py", "y")
    assert cleared(compact(raw, history, mine, tags={"c1": tag})) == []
    assert cleared(compact(raw, history, other, tags={"c1": tag})) == ["c1"]
    assert cleared(compact(raw, history, mine, tags={"c1": tag | {"sha256": "0"}})) == ["c1"]
    assert cleared(compact(raw, history, tags={"c1": tag})) == []


def test_an_id_that_is_used_again_for_an_ordinary_read_protects_nothing(
    raw: Raw, project: Path
) -> None:
    session = opened(raw, project)
    read(raw, session, "alias.md", "c1")
    read(raw, session, "src.py", "c1")
    history = item("c1", "x", "x") + item("c2", "src.py", "y")
    assert cleared(compact(raw, history, session)) == ["c1"]


def test_a_copy_that_is_out_of_date_is_marked(raw: Raw, project: Path) -> None:
    session, writer = opened(raw, project), opened(raw, project)
    path = f"{project.parent}/memory/a.md"
    first = read(raw, session, path, "c1")["_meta"][RETENTION_KEY]
    written = raw.call(writer, "write_file", file_path=path, content="new\n")
    report = compact(raw, item("c1", path, "x") + item("c2", "y", "y"), session)["report"]
    assert report["superseded"] == [
        {
            "message": 1,
            "part": 0,
            "path": path,
            "sha256": first["sha256"],
            "current": written["_meta"]["pinfold/details"]["sha256"],
        }
    ]


def test_reset_forgets_and_says_what(raw: Raw, project: Path) -> None:
    session = opened(raw, project, scope={"staleness": "require-read"})
    root = f"{project.parent}/memory"
    read(raw, session, f"{root}/pinned/rules.md", "c1")
    read(raw, session, "alias.md")
    read(raw, session, "src.py", "c3")
    read(raw, session, f"{root}/pinned/rules.md", "c4")
    assert raw.result("context/reset", {"sessionId": session}) == {
        "reread": [
            {"path": f"{root}/a.md", "scope": "project", "pinned": False},
            {"path": f"{root}/pinned/rules.md", "scope": "project", "pinned": True},
        ]
    }
    assert raw.result("context/reset", {"sessionId": session}) == {"reread": []}
    history = item("c1", "x", "x") + item("c2", "src.py", "y")
    assert cleared(compact(raw, history, session)) == ["c1"]
    result = raw.call(session, "write_file", file_path="src.py", content="x")
    assert result["_meta"]["pinfold/details"]["error"]["kind"] == "not-read"


def test_a_read_after_a_reset_in_the_same_breath_is_remembered(raw: Raw, project: Path) -> None:
    session = opened(raw, project)
    arguments = {"file_path": "alias.md"}
    call = {"sessionId": session, "name": "read_file", "arguments": arguments, "callId": "c1"}
    raw.send(
        {"jsonrpc": "2.0", "id": 71, "method": "context/reset", "params": {"sessionId": session}},
        {"jsonrpc": "2.0", "id": 72, "method": "tools/call", "params": call},
    )
    answers = {raw.receive()["id"] for _ in range(2)}
    assert answers == {71, 72}
    history = item("c1", "x", "x") + item("c2", "src.py", "y")
    assert cleared(compact(raw, history, session)) == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no format": ({"format": None}, "format"),
    "another format": ({"format": "xml"}, "format"),
    "a history that is no list": ({"history": {}}, "history"),
    "no trigger": ({"trigger": None}, "trigger"),
    "another trigger": ({"trigger": {"kind": "whim"}}, "trigger"),
    "a member of another trigger": (
        {"trigger": {"kind": "force", "idleSeconds": 1}},
        "trigger.idleSeconds",
    ),
    "a gap of words": ({"trigger": {"kind": "turn", "idleSeconds": "1"}}, "trigger.idleSeconds"),
    "a misspelt setting": ({"settings": {"keepRecnt": 1}}, "settings.keepRecnt"),
    "half a result": ({"settings": {"keepRecent": 2.5}}, "settings.keepRecent"),
    "true is no number": (
        {"settings": {"sizeThresholdChars": True}},
        "settings.sizeThresholdChars",
    ),
    "a size below nothing": (
        {"settings": {"sizeThresholdChars": -2}},
        "settings.sizeThresholdChars",
    ),
    "a pause below nothing": (
        {"settings": {"idleThresholdMinutes": -0.5}},
        "settings.idleThresholdMinutes",
    ),
    "a gain below nothing": (
        {"settings": {"clearAtLeastChars": -2}},
        "settings.clearAtLeastChars",
    ),
    "names that are none": ({"settings": {"clearable": [1]}}, "settings.clearable"),
    "a path argument that is none": ({"settings": {"reads": {"Read": 1}}}, "settings.reads.Read"),
    "a tag that is none": ({"tags": {"c1": {"preserve": True}}}, "tags.c1.scope"),
    "a misspelt member": ({"sesionId": "x"}, "sesionId"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(asked: Raw, name: str) -> None:
    more, path = WRONG[name]
    params = {"format": "gemini", "history": [], "trigger": {"kind": "force"}} | more
    error = asked.ask("context/compact", params)["error"]
    assert error["code"] == -32602
    assert error["data"]["path"] == path


@pytest.mark.parametrize("method", ["context/compact", "context/reset"])
def test_an_unknown_session_is_an_error(raw: Raw, method: str) -> None:
    params: dict[str, Any] = {"sessionId": "nobody"}
    if method == "context/compact":
        params |= {"format": "gemini", "history": [], "trigger": {"kind": "force"}}
    assert raw.ask(method, params)["error"]["code"] == -32010


def test_null_means_the_default(raw: Raw) -> None:
    settings = dict.fromkeys(
        ["keepRecent", "idleThresholdMinutes", "sizeThresholdChars", "clearable", "reads"]
    )
    history = [message for i in range(7) for message in item(f"c{i}", "x", "y")]
    result = compact(raw, history, settings=settings)
    assert cleared(result) == ["c0", "c1"]
    assert result["meta"]["keepRecent"] == 5


def with_client(work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with await Client.spawn(env=clean_env()) as client:
            await work(client)

    asyncio.run(main())


def test_the_client_s_side(project: Path) -> None:
    async def work(client: Client) -> None:
        root = f"{project.parent}/memory"
        session = await client.open_session(
            "main", str(project), memory=MemoryOptions(project_root=root)
        )
        result = await session.call("read_file", {"file_path": "alias.md"}, "c1")
        history = item("c1", "alias.md", result.text) + item("c2", "x", "y") + item("c3", "x", "z")
        settings = CompactSettings(keep_recent=1)
        made = await session.compact(history, "anthropic", ForceTrigger(), settings)
        assert [each.call_id for each in made.cleared] == ["c2"]
        assert made.meta is not None
        assert made.history[1] == history[1]
        assert made.meta.tools_cleared == 1
        tag = result.meta[RETENTION_KEY]
        alone = await client.compact(
            history,
            "anthropic",
            ForceTrigger(),
            settings,
            tags={"c1": structure(tag, RetentionTag)},
        )
        assert alone.cleared == made.cleared
        assert await session.reset() == [Reread(f"{root}/a.md", "project", False)]

    with_client(work)


def test_a_history_of_a_thousand_levels_comes_back(asked: Raw) -> None:
    levels = 998  # two more are around it
    history = b"[" * levels + b"]" * levels
    body = (
        b'{"jsonrpc":"2.0","id":5,"method":"context/compact","params":'
        b'{"format":"gemini","trigger":{"kind":"force"},"history":' + history + b"}}"
    )
    asked.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(3000)
    try:
        found = asked.receive()["result"]["history"]
    finally:
        sys.setrecursionlimit(before)
    for _ in range(levels - 1):
        (found,) = found
    assert found == []
