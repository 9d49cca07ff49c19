"""Examples that need what others wrote: the real anthropic package, LangChain, Node and tsc."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import anthropic_loop
from clients.peers import node
from pinfold_protocol.client import Client
from python_host.place import place
from stage import EXAMPLES, run
from support import SERVE, clean_env

pytestmark = pytest.mark.client
HOST = EXAMPLES / "typescript_host"
TSC = EXAMPLES.parent / "editors/vscode/node_modules/typescript/bin/tsc"


@pytest.mark.parametrize(
    ("module", "cleared"),
    [("anthropic_loop", "3 old results"), ("langchain_loop", "4 old results")],
)
def test_a_loop_keeps_its_memory(module: str, cleared: str, tmp_path: Path) -> None:
    printed = run(module, tmp_path)
    assert cleared in printed and "the memory read is still there" in printed


async def _with_anthropic(stand_in: anthropic_loop.StandIn) -> str:
    """The loop with the package itself, whose requests the stand-in answers after validation."""
    import anthropic
    import pydantic
    from anthropic import _base_client as base  # whichever httpx this version is built on
    from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming

    httpx: Any = getattr(base, "httpx2", None) or getattr(base, "httpx")  # noqa: B009
    shape = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)

    def handle(request: Any) -> Any:
        assert request.headers["anthropic-beta"] == anthropic_loop.BETA
        body = json.loads(request.content)
        shape.validate_python(body)
        return httpx.Response(200, json=stand_in.respond(body))

    with place() as at:
        stand_in._calls = anthropic_loop.script(at)
        transport = httpx.MockTransport(handle)
        async with (
            anthropic.AsyncAnthropic(
                api_key="none",
                base_url="http://localhost",
                http_client=httpx.AsyncClient(transport=transport),
            ) as api,
            await Client.spawn() as client,
        ):
            session = await client.open_session("extraction", at.project, memory=at.memory)
            return await anthropic_loop.converse(api.beta.messages, session, "When?")


def test_the_real_anthropic_client_takes_the_stand_in_s_place() -> None:
    pytest.importorskip("anthropic", reason="anthropic comes with make test-clients")
    stand_in = anthropic_loop.StandIn([], "On Tuesdays.")
    assert asyncio.run(_with_anthropic(stand_in)) == "On Tuesdays."
    assert anthropic_loop.check(stand_in.seen)[1] == 3


def test_a_check_that_finds_memory_gone_says_so() -> None:
    lost = [{"role": "user", "content": [{"type": "tool_result", "content": "[cleared]"}]}]
    with pytest.raises(AssertionError, match="memory was lost"):
        anthropic_loop.check([lost])


def typescript_host(main: Path, base: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """A run of it, whose temporary files are in `base` and must be gone."""
    result = subprocess.run(
        [node(), str(main), *command],
        env=clean_env(HOME=str(base / "home"), TMPDIR=str(base)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert os.listdir(base) == [], "it left something behind"
    return result


def test_the_typescript_host_runs_on_node_alone(tmp_path: Path) -> None:
    result = typescript_host(HOST / "main.ts", tmp_path, *SERVE)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "On Tuesdays.",
        "the pinned document is unharmed; its read survived a compaction",
        "6 calls, 1 denied, 1 question",
    ]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["true"], "the gateway"),
        (["cat"], "not known here"),
        (["echo", "Content-Type: none\r\n\r\n"], "the gateway"),
        (["/no/such/program"], "ENOENT"),
    ],
    ids=["nothing", "its own words", "no frames", "no program"],
)
def test_a_typescript_host_without_a_gateway_ends_and_says_so(
    command: list[str], told: str, tmp_path: Path
) -> None:
    result = typescript_host(HOST / "main.ts", tmp_path, *command)
    assert result.returncode == 1 and told in result.stderr, result.stderr


def test_the_typescript_host_fails_where_nothing_is_protected(tmp_path: Path) -> None:
    """Its two files run anywhere: the contract's types are nothing to Node."""
    copy, base = tmp_path / "copy", tmp_path / "base"
    shutil.copytree(HOST, copy)
    base.mkdir()
    main = copy / "main.ts"
    text = main.read_text("utf-8")
    assert text.count("protectPinned: true") == 1
    main.write_text(text.replace("protectPinned: true", "protectPinned: false"), "utf-8")
    result = typescript_host(main, base, *SERVE)
    assert result.returncode == 1 and "AssertionError" in result.stderr, result.stderr


def test_the_typescript_host_has_the_contract_s_types() -> None:
    assert TSC.exists(), "run `make test-clients`"
    command = [node(), str(TSC), "-p", str(HOST)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert result.returncode == 0, result.stdout
