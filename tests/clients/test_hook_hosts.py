"""A real agent host with its built-in tools and only our hook, and a scripted model."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.peers import HOSTS
from clients.scripted_model import Call, ScriptedModel, Step, scripted_model
from clients.test_mcp_hosts import HOSTS_TO_TRY, Run, qwen, run_host
from support import SERVE, Embedded, clean_env, read, write

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]

TOPIC = "Invoices are in cents; the oldest is of 2019."
CURATED = "Never round an amount."
FULL = 127_000
"""Tokens of a conversation that is about to be compacted."""
AFTERWARDS = 6
"""Steps after a compaction: its hook runs beside them."""


class Forgetful(ScriptedModel):
    """Takes its steps by how many there were, since a compaction takes the results away. Once,
    before the last steps, the conversation is said to be full."""

    def __init__(self, steps: Any) -> None:
        super().__init__(steps)
        self._done = 0

    def next(self, offered: list[tuple[str, str]], results: list[str]) -> Call | None:
        if not offered:  # the host wants a summary
            return None
        self.results += results[len(self.results) :]
        self.used = FULL if self._done == len(self.steps) - AFTERWARDS else 10
        if self._done == len(self.steps):
            return None
        step = self.steps[self._done]
        self._done += 1
        if step.tool not in [name for _, name in offered]:
            self.trouble.append(f"{step.tool} is not among {offered}")
        return Call(step.tool, step.arguments)


def hooked(run: Run) -> tuple[list[str], dict[str, str]]:
    """Qwen Code as it is, with the entry that `--install` writes."""
    arguments, env = qwen(run)
    path = run.home / ".qwen/settings.json"
    settings = json.loads(path.read_text())
    del settings["mcpServers"]
    settings["model"]["generationConfig"] = {"contextWindowSize": 128_000}
    path.write_text(json.dumps(settings, indent=2))
    subprocess.run(
        [*run.serve[:-1], "hook", "--install", "--host", "qwen-code", "--yes"],
        check=True, capture_output=True, env=clean_env(HOME=str(run.home)),
    )  # fmt: skip
    return arguments, env | run.env


def test_qwen_code_with_its_own_tools(tmp_path: Path) -> None:
    host = HOSTS_TO_TRY["qwen-code"]._replace(start=hooked)
    if not (HOSTS / "node_modules" / host.program).exists():
        pytest.skip("qwen-code could not be installed: see `make test-clients`")
    project, home = tmp_path / "project", tmp_path / "home"
    memory = Path(Embedded(tmp_path).memory)
    home.mkdir()
    topic = write(memory / "billing.md", TOPIC)
    pinned = write(memory / "pinned/rules.md", CURATED)
    ordinary = write(project / "a.txt", "before")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    steps = [
        Step("read_file", {"file_path": pinned}),
        Step("read_file", {"file_path": topic}),
        Step("write_file", {"file_path": pinned, "content": "mine"}),
        Step("edit", {"file_path": f" {pinned}", "old_string": "Never", "new_string": "Always"}),
        Step("write_file", {"file_path": topic, "content": "learnt"}),
        Step("read_file", {"file_path": ordinary}),
        Step("edit", {"file_path": ordinary, "old_string": "before", "new_string": "after"}),
        *(Step("read_file", {"file_path": ordinary, "limit": i + 1}) for i in range(AFTERWARDS)),
    ]
    with scripted_model(steps, Forgetful) as model:
        env = {"QWEN_CODE_MEMORY_BASE_DIR": str(tmp_path / "memory")}
        serve = [*SERVE]
        said = run_host(host, Run(home, project, model, serve, env))
    shutil.rmtree(home, ignore_errors=True)
    assert not model.trouble, (model.trouble, said)
    assert read(pinned).decode() == CURATED
    assert read(topic) == b"learnt" and read(ordinary) == b"after"
    refused = [result for result in model.results if "pinfold: Pinned project memory" in result]
    assert len(refused) == 2, model.results
    assert any(CURATED in result for result in model.results)
    last = json.dumps(model.bodies[-1])
    assert f"- {pinned} (pinned, project memory)" in last, said
    assert f"- {topic} (project memory, changed since you read it)" in last
