"""A Node client whose JSON-RPC nobody here wrote: vscode-jsonrpc."""

import json
import subprocess
from pathlib import Path

import pytest

from clients.peers import NODE, node
from support import SERVE, clean_env, decision, details

pytestmark = pytest.mark.client


def test_vscode_jsonrpc_opens_a_session_and_calls_all_four_tools(tmp_path: Path) -> None:
    assert (NODE / "node_modules/vscode-jsonrpc").is_dir(), "run `make test-clients`"
    project = tmp_path / "project"
    project.mkdir()
    result = subprocess.run(
        [node(), str(NODE / "session.mjs"), str(project), *SERVE],
        env=clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(tmp_path / "memory")),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert seen["server"] == "pinfold"
    assert details(seen["write"])["created"] is True
    assert details(seen["edit"])["replacements"] == 1
    for read in (seen["read"], seen["memory"]):
        assert read["content"] == [{"type": "text", "text": "é😀 two\n"}]
        assert read["_meta"]["pinfold/retention"]["scope"] == "project"
    assert seen["denied"]["isError"] and decision(seen["denied"])["rule"] == "pinned"
    assert seen["errors"] == {
        "session/close": -32010,
        "tools/call": -32602,
        "no/such/method": -32601,
    }
    assert seen["cancelled"] in (-32800, "answered")
    assert seen["many"] == 200
    assert seen["closed"] == {"calls": 205, "denials": 1}
    assert seen["status"] == 0 and seen["trouble"] == []
    assert seen["changed"] == ["created", "changed"]
