"""The official Python SDK's client on the MCP door, by the handshake and stateless."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support import SERVE, Embedded, Held, clean_env, read, write

mcp = pytest.importorskip("mcp", reason="the SDK comes with make test-clients")
types = pytest.importorskip("mcp_types")
pytestmark = pytest.mark.client

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
TOPIC = "# Billing\n\nInvoices are in cents. é😀\n"
ASK = {"rules": [{"decision": "ask", "tools": ["*"], "paths": ["*.py"]}]}
AND_THE_STATUS = '"$@"; echo $? >"$0"'
"""For a shell: run the rest, and write the status to the first."""


class Place:
    """A project with memory, and clients on servers of their own in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.memory = Path(Embedded(base).memory)
        self.topic = write(self.memory / "billing.md", TOPIC)
        self.pinned = write(self.memory / "pinned/rules.md", "curated\n")
        self.elsewhere = base / "elsewhere"
        self.elsewhere.mkdir()
        self._started = 0

    def config(self, **members: Any) -> str:
        return write(self.base / "config.json", json.dumps(members))

    @asynccontextmanager
    async def client(self, *flags: str, project: bool = True, **options: Any) -> AsyncIterator[Any]:
        """A client whose server has ended well when this is over."""
        self._started += 1
        status, said = self.base / f"status{self._started}", self.base / f"said{self._started}"
        given = [*SERVE, *(("--project", str(self.project)) if project else ()), *flags]
        parameters = mcp.StdioServerParameters(
            command="sh",
            args=["-c", AND_THE_STATUS, str(status), *given],
            env={
                "QWEN_CODE_MEMORY_BASE_DIR": str(self.base / "memory"),
                "HOME": str(self.base / "home"),
            },
            cwd=self.elsewhere,
        )
        with open(said, "w", encoding="utf-8") as errors:
            transport = mcp.stdio_client(parameters, errlog=errors)
            async with mcp.Client(transport, read_timeout_seconds=20, **options) as client:
                yield client
        assert read(status) == b"0\n"
        assert read(said) == b""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(45):
            await work

    asyncio.run(bounded())


def text(result: Any) -> str:
    (only,) = result.content
    assert result.structured_content is None
    return str(only.text)


def said(result: Any) -> dict[str, Any]:
    """What was decided about a call."""
    found: dict[str, Any] = result.meta["pinfold/decision"]
    return found


@pytest.mark.parametrize("mode", ERAS)
def test_what_a_client_is_told_of_the_server(place: Place, mode: str) -> None:
    async def look() -> None:
        async with place.client("--profile", "dream", mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            assert client.server_info.name == "pinfold"
            assert "read_memory" in client.instructions and "pinned/" in client.instructions
            assert client.server_capabilities.tools is not None
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            hints = {
                name: (
                    tool.annotations.read_only_hint,
                    tool.annotations.destructive_hint,
                    tool.annotations.idempotent_hint,
                )
                for name, tool in tools.items()
            }
            assert hints == {
                "read_file": (True, False, True),
                "read_memory": (True, False, True),
                "write_file": (False, True, True),
                "edit": (False, True, False),
            }
            for tool in tools.values():
                assert tool.input_schema["type"] == "object"
                assert "file_path" in tool.input_schema["required"]
                assert tool.output_schema is None and tool.description

    run(look())


@pytest.mark.parametrize("mode", ERAS)
def test_a_dream_session_reads_memory_and_leaves_what_is_pinned(place: Place, mode: str) -> None:
    async def work() -> None:
        async with place.client("--profile", "dream", mode=mode) as client:
            await client.list_tools()
            seen = await client.call_tool("read_memory", {"file_path": place.topic})
            assert not seen.is_error and text(seen) == TOPIC
            assert seen.content[0].annotations.priority == 1
            assert seen.content[0].annotations.audience == ["assistant"]
            assert seen.meta["pinfold/retention"]["scope"] == "project"

            denied = await client.call_tool(
                "write_file", {"file_path": place.pinned, "content": "mine"}
            )
            assert denied.is_error and said(denied)["rule"] == "pinned"
            assert text(denied).startswith("Denied: Pinned")

            path = str(place.memory / "new.md")
            written = await client.call_tool("write_file", {"file_path": path, "content": "new"})
            assert not written.is_error and written.content[0].annotations is None
            edited = await client.call_tool(
                "edit", {"file_path": path, "old_string": "new", "new_string": "newer"}
            )
            assert not edited.is_error
            absent = await client.call_tool("read_memory", {"file_path": f"{path}.not"})
            assert absent.is_error and "pinfold/retention" not in absent.meta

    run(work())
    assert read(place.memory / "new.md") == b"newer"
    assert read(place.pinned) == b"curated\n"


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [("nothing", {}, -32602), ("", {}, -32602)],
)
def test_an_unknown_tool_is_an_error(
    place: Place, mode: str, name: str, arguments: dict[str, Any], code: int
) -> None:
    async def work() -> None:
        async with place.client(mode=mode) as client:
            with pytest.raises(mcp.MCPError) as raised:
                await client.call_tool(name, arguments)
            assert raised.value.code == code

    run(work())


@pytest.mark.parametrize("mode", ERAS)
def test_progress_is_told_and_a_cancelled_change_is_never_made(place: Place, mode: str) -> None:
    """The change waits for a lock that somebody else has; what it told is the signal to stop it."""
    path = str(place.memory / "late.md")
    held = Held(place.memory)
    told: list[tuple[float, str | None]] = []

    async def work() -> None:
        first = asyncio.Event()

        async def progress(now: float, total: float | None, message: str | None) -> None:
            told.append((now, message))
            first.set()

        async with place.client("--profile", "dream", mode=mode) as client:
            await client.list_tools()
            arguments = {"file_path": path, "content": "late"}
            task = asyncio.create_task(
                client.call_tool("write_file", arguments, progress_callback=progress)
            )
            await first.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            held.release()
            arguments = {"file_path": path + ".2", "content": "next"}
            assert not (await client.call_tool("write_file", arguments)).is_error

    run(work())
    assert told[0][0] == 1 and told[0][1]
    assert not os.path.exists(path) and read(path + ".2") == b"next"


ANSWERS: dict[str, tuple[str, str | None, list[str], str | None]] = {
    # the action and the answer in the form; the questions for two calls; what is noted
    "once": ("accept", "Allow once", ["a.py", "a.py"], "allow-once"),
    "session": ("accept", "Allow in this session", ["a.py"], None),
    "deny": ("accept", "Deny", ["a.py", "a.py"], "deny"),
    "decline": ("decline", None, ["a.py", "a.py"], "deny"),
    "cancel": ("cancel", None, ["a.py", "a.py"], "deny"),
}


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("name", ANSWERS)
def test_a_rule_that_asks(place: Place, mode: str, name: str) -> None:
    """A server request in the handshake's revisions, an input-required result in the stateless."""
    action, answer, questions, noted = ANSWERS[name]
    asked: list[str] = []
    path = str(place.project / "a.py")

    async def elicit(context: Any, params: Any) -> Any:
        asked.append(params.message)
        assert params.requested_schema["properties"]["answer"]["enum"]
        content = {"answer": answer} if answer else None
        return types.ElicitResult(action=action, content=content)

    async def work() -> None:
        config = place.config(**ASK)
        options: dict[str, Any] = {"mode": mode, "elicitation_callback": elicit}
        async with place.client("--config", config, **options) as client:
            for content in ("one", "two"):
                arguments = {"file_path": path, "content": content}
                result = await client.call_tool("write_file", arguments)
                assert result.is_error == (noted == "deny")
                if noted:
                    assert said(result)["asked"] == noted

    run(work())
    assert len(asked) == len(questions)
    assert all("write_file" in each and path in each for each in asked)
    assert os.path.exists(path) == (noted != "deny")


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_without_forms_is_not_asked(place: Place, mode: str) -> None:
    async def work() -> None:
        async with place.client("--config", place.config(**ASK), mode=mode) as client:
            arguments = {"file_path": str(place.project / "a.py"), "content": "x"}
            result = await client.call_tool("write_file", arguments)
            assert result.is_error and said(result)["asked"] == "no-approver"

    run(work())
    assert not os.path.exists(place.project / "a.py")


def test_the_client_s_first_root_is_the_project(place: Place) -> None:
    async def roots(context: Any) -> Any:
        first, second = place.project.as_uri(), place.elsewhere.as_uri()
        return types.ListRootsResult(roots=[types.Root(uri=first), types.Root(uri=second)])

    async def work() -> None:
        given: dict[str, Any]
        for given, right in (({"list_roots_callback": roots}, True), ({}, False)):
            async with place.client(project=False, mode="legacy", **given) as client:
                seen = await client.call_tool("read_memory", {"file_path": place.topic})
                assert seen.is_error is not right

    run(work())


@pytest.mark.parametrize("mode", ERAS)
def test_a_prefix_before_the_tools_names(place: Place, mode: str) -> None:
    async def work() -> None:
        async with place.client("--tool-prefix", "mem_", mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["mem_read_file", "mem_read_memory", "mem_write_file", "mem_edit"]
            assert "mem_read_memory" in client.instructions
            seen = await client.call_tool("mem_read_memory", {"file_path": place.topic})
            assert text(seen) == TOPIC

    run(work())


@pytest.mark.parametrize("mode", ERAS)
def test_two_servers_of_the_same_kind_at_once(place: Place, mode: str) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            twins = [
                await stack.enter_async_context(place.client("--profile", "dream", mode=mode))
                for _ in range(2)
            ]
            paths = [str(place.memory / f"{index}.md") for index in range(20)]
            results = await asyncio.gather(
                *(
                    twins[index % 2].call_tool("write_file", {"file_path": path, "content": path})
                    for index, path in enumerate(paths)
                )
            )
            assert not any(result.is_error for result in results)
            for twin in twins:
                for path in paths:
                    seen = await twin.call_tool("read_memory", {"file_path": path})
                    assert text(seen) == path

    run(work())


def test_a_client_that_only_looks_whether_we_start(place: Place) -> None:
    """Some hosts start a server once only to see that it does: that leaves nothing behind."""
    before = sorted(os.walk(place.base / "memory"))

    async def work() -> None:
        parameters = mcp.StdioServerParameters(
            command=sys.executable, args=list(SERVE[1:]), env=clean_env(HOME=str(place.base))
        )
        async with mcp.stdio_client(parameters):
            pass
        for mode in ERAS:
            async with place.client(mode=mode):
                pass

    run(work())
    assert sorted(os.walk(place.base / "memory")) == before
    assert not (place.base / "home").exists()
