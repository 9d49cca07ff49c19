"""Examples that need what others wrote: the real anthropic package, LangChain, Node and tsc."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_examples import EXAMPLES, run

import anthropic_loop
from clients.peers import node
from pinfold_protocol.client import Client
from python_host.place import place
from support import SERVE, clean_env

pytestmark = pytest.mark.client
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
        import json

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


def test_the_typescript_host_runs_on_node_alone(tmp_path: Path) -> None:
    result = subprocess.run(
        [node(), str(EXAMPLES / "typescript_host/main.ts"), *SERVE],
        env=clean_env(HOME=str(tmp_path / "home"), TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "On Tuesdays.",
        "the pinned document is unharmed; its read survived a compaction",
        "6 calls, 1 denied, 1 question",
    ]
    assert os.listdir(tmp_path) == []


def test_the_typescript_host_has_the_contract_s_types() -> None:
    assert TSC.exists(), "run `make test-clients`"
    command = [node(), str(TSC), "-p", str(EXAMPLES / "typescript_host")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert result.returncode == 0, result.stdout
