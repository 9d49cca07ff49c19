"""The asyncio client, against a real gateway and against programs that are none."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from fronts import upstream
from pinfold_protocol.client import Client, ConnectionLost
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import MemoryOptions
from pinfold_protocol.tools import DETAILS_KEY
from support import clean_env, write


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main

    asyncio.run(bounded())


def test_a_session_from_beginning_to_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Client.spawn(env=clean_env(HOME=str(tmp_path))) as client:
            assert client.server["serverInfo"]["name"] == "pinfold"
            memory = MemoryOptions(project_root=str(tmp_path / "memory"))
            session = await client.open_session(
                "dream", str(tmp_path), session_id="s", scope={"userMemory": True}, memory=memory
            )
            assert session.opened.scope.user_memory and session.opened.scope.protect_pinned
            path = f"{tmp_path}/memory/t.md"
            done = await session.call("write_file", {"file_path": path, "content": "x" * 3_000_000})
            assert not done.is_error and done.meta[DETAILS_KEY]["created"]
            result = await session.call("read_file", {"file_path": path, "limit": 1}, "call 1")
            assert len(result.text) == 3_000_000
            with pytest.raises(RpcError) as caught:
                await client.request("session/close", {"sessionId": "nobody"})
            assert caught.value.code == -32010
            with pytest.raises(ValueError):
                await client.request("session/list", {"x": float("nan")})
            assert await session.close() == {"calls": 2, "denials": 0}
        assert await client.close() == 0

    run(main())


def test_a_session_tells_its_tools_and_its_memory(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Client.spawn(env=clean_env(HOME=str(tmp_path))) as client:
            memory = MemoryOptions(project_root=str(tmp_path / "memory"))
            session = await client.open_session("dream", str(tmp_path), memory=memory)
            tools = await session.tools()
            assert [tool.name for tool in tools] == session.opened.tools
            assert all(tool.input_schema["type"] == "object" for tool in tools)
            assert (await session.index()).documents == []
            write(tmp_path / "memory/pinned/a.md", "---\nname: A\ntype: project\n---\n")
            (found,) = (await session.index()).documents
            assert (found.relative_path, found.pinned) == ("pinned/a.md", True)

    run(main())


def test_options_that_are_refused_leave_no_process(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(RpcError):
            await Client.spawn(options={"memroy": {}})

    run(main())


def test_cancelling_the_task_cancels_the_request(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Client.spawn() as client:
            task = asyncio.create_task(client.request("session/list"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await client.request("session/list") == {"sessions": []}

    run(main())


NO_GATEWAY = [
    ("mute", "import sys; sys.stdin.read()"),
    ("echo", "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"),
    ("no frames", "print('hello', flush=True); import sys; sys.stdin.read()"),
    (
        "no JSON",
        r"print('Content-Length: 2\r\n\r\n{]', end='', flush=True); import sys; sys.stdin.read()",
    ),
    (
        "a list",
        r"print('Content-Length: 3\r\n\r\n[1]', end='', flush=True); import sys; sys.stdin.read()",
    ),
    ("dies", "pass"),
]


@pytest.mark.parametrize(
    "program", [row[1] for row in NO_GATEWAY], ids=[row[0] for row in NO_GATEWAY]
)
def test_what_is_no_gateway_is_told_or_can_be_timed_out(program: str) -> None:
    async def main() -> None:
        with pytest.raises((ConnectionLost, TimeoutError)):
            async with asyncio.timeout(0.5):
                await Client.spawn([sys.executable, "-c", program])

    run(main())


def test_a_gateway_that_is_killed_fails_what_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def main() -> None:
        client = await Client.spawn()
        session = await client.open_session("main", str(tmp_path))
        path = write(tmp_path / "f", "x")
        waiting = asyncio.create_task(session.call("read_file", {"file_path": path}))
        client._process.kill()
        with pytest.raises(ConnectionLost):
            await waiting
            while True:  # the answer may have come first
                await session.call("read_file", {"file_path": path})
        assert await client.close() == -9
        assert await client.close() == -9

    run(main())


def test_a_callback_that_fails_is_not_the_gateway_s_end(tmp_path: Path) -> None:
    async def main() -> None:
        told: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: told.append(context["message"])
        )
        async with await Client.spawn(env=clean_env(HOME=str(tmp_path))) as client:

            def fail(method: str, params: Any) -> None:
                raise KeyError(method)

            client.on_notification = fail
            session = await client.open_session(
                "dream", str(tmp_path), memory=MemoryOptions(project_root=str(tmp_path / "m"))
            )
            new = {"file_path": f"{tmp_path}/m/t.md", "content": "x"}
            assert not (await session.call("write_file", new)).is_error
            assert told == ["on_notification failed for memory/didChange"]

    run(main())


def test_a_session_in_front_of_an_upstream(tmp_path: Path) -> None:
    async def main() -> None:
        options = {"upstreams": {"bad": upstream(tmp_path / "log")}}
        async with await Client.spawn(env=clean_env(), options=options) as client:
            session = await client.open_session("main", str(tmp_path), backend="bad")
            result = await session.call("read_it", {"path": write(tmp_path / "a", "behind it")})
            assert not result.is_error and result.meta[DETAILS_KEY]["upstream"] == "bad"
            with pytest.raises(RpcError, match="'none'"):
                await client.open_session("main", str(tmp_path), backend="none")

    run(main())
