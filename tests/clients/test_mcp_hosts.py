"""Real agent hosts with one entry for us, and a scripted model.

In each the agent reads a memory topic, fails to write below pinned/ in a dream session, and writes
an ordinary topic. What counts is what the model is sent, and the disk.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clients.peers import HOSTS, node
from clients.scripted_model import MODEL, ScriptedModel, Step, scripted_model
from support import SERVE, Embedded, read, write

pytestmark = [pytest.mark.client, pytest.mark.timeout(240)]

TOPIC = "Invoices are in cents; the oldest is of 2019. é😀"
SECONDS = 100
NOWHERE = "http://127.0.0.1:9"


class Run(NamedTuple):
    """One run of a host in a scratch home."""

    home: Path
    project: Path
    model: ScriptedModel
    serve: list[str]
    env: dict[str, str]
    """Of our server: hosts hand on as much of their own environment as they like."""

    def entry(self, *flags: str, **more: Any) -> dict[str, Any]:
        """What most hosts want."""
        command, *arguments = (*self.serve, *flags)
        return {"command": command, "args": arguments, "env": self.env, **more}


class Host(NamedTuple):
    """How to start a host: its program below node_modules, and what prepares a run of it."""

    program: str
    start: Callable[[Run], tuple[list[str], dict[str, str]]]
    """Writes the configuration: the arguments, and the environment."""
    on_node: bool = True
    told: bool = True
    """Whether it shows the model what we say of ourselves."""
    steps: Callable[[list[Step]], list[Step]] = lambda steps: steps


def qwen(run: Run) -> tuple[list[str], dict[str, str]]:
    settings = {
        "mcpServers": {"pinfold": run.entry(trust=True)},
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        "model": {"name": MODEL},
    }
    write(run.home / ".qwen/settings.json", json.dumps(settings))
    arguments = "--auth-type openai --approval-mode yolo --chat-recording=false".split()
    env = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{run.model.address}/v1"}
    return [*arguments, "--max-session-turns", "15", "-p", "go"], env | {"OPENAI_MODEL": MODEL}


def deferred(steps: list[Step]) -> list[Step]:
    """Tools of MCP are searched for first, and then called through another tool."""
    names = [f"mcp__pinfold__{step.tool}" for step in steps]
    wanted = {"query": "select:" + ",".join(dict.fromkeys(names)), "max_results": 9}
    return [
        Step("^tool_search$", wanted),
        *(
            Step("^tool_call$", {"name": name, "arguments": step.arguments})
            for name, step in zip(names, steps)
        ),
    ]


def gemini(run: Run) -> tuple[list[str], dict[str, str]]:
    settings = {
        "mcpServers": {"pinfold": run.entry(trust=True)},
        "security": {
            "auth": {"selectedType": "gemini-api-key"},
            "folderTrust": {"enabled": False},
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    write(run.home / ".gemini/settings.json", json.dumps(settings))
    env = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": run.model.address}
    arguments = "--approval-mode yolo --skip-trust -m gemini-2.5-pro -p go".split()
    return arguments, env


def codex(run: Run) -> tuple[list[str], dict[str, str]]:
    entry = run.entry()
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in entry["env"].items())
    settings = f"""
        model = "{MODEL}"
        model_provider = "scripted"
        check_for_update_on_startup = false
        web_search = "disabled"
        [model_providers.scripted]
        name = "scripted"
        base_url = "{run.model.address}/v1"
        env_key = "SCRIPTED_KEY"
        wire_api = "responses"
        [analytics]
        enabled = false
        [mcp_servers.pinfold]
        command = {json.dumps(entry["command"])}
        args = {json.dumps(entry["args"])}
        env = {{ {env} }}
        required = true
    """
    write(run.home / ".codex/config.toml", settings)
    arguments = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [*arguments, "go"], {"SCRIPTED_KEY": "x"}


def opencode(run: Run) -> tuple[list[str], dict[str, str]]:
    entry = run.entry()
    ours = {
        "type": "local",
        "command": [entry["command"], *entry["args"]],
        "environment": entry["env"],
        "enabled": True,
    }
    limit = {"context": 100_000, "output": 8_000}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{run.model.address}/v1", "apiKey": "x"},
        "models": {MODEL: {"name": MODEL, "tool_call": True, "limit": limit}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"scripted/{MODEL}",
        "small_model": f"scripted/{MODEL}",
        "provider": {"scripted": provider},
        "permission": "allow",
        "mcp": {"pinfold": ours},
    }
    write(run.home / ".config/opencode/opencode.json", json.dumps(settings))
    off = ("MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "AUTOUPDATE")
    return ["run", "go"], {f"OPENCODE_DISABLE_{each}": "1" for each in off}


def continue_cli(run: Run) -> tuple[list[str], dict[str, str]]:
    """It puts nothing before the names of our tools, so that we do it."""
    model = {
        "name": MODEL,
        "provider": "openai",
        "model": MODEL,
        "apiKey": "x",
        "apiBase": f"{run.model.address}/v1",
        "roles": ["chat", "edit"],
        "capabilities": ["tool_use"],
    }
    settings = {"name": "tests", "version": "0.0.1", "schema": "v1", "models": [model]}
    settings["mcpServers"] = [{"name": "pinfold", **run.entry("--tool-prefix", "pinfold_")}]
    path = write(run.home / "config.yaml", json.dumps(settings))  # which is YAML too
    env = {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_GLOBAL_DIR": f"{run.home}/continue"}
    return ["--config", path, "--auto", "-p", "go"], env


def cline(run: Run) -> tuple[list[str], dict[str, str]]:
    """Its own client of MCP, which speaks the oldest revision."""
    settings = run.home / ".cline/data/settings"
    ours = {"mcpServers": {"pinfold": run.entry(disabled=False)}}
    write(settings / "cline_mcp_settings.json", json.dumps(ours))
    provider = {"provider": "openai-compatible", "apiKey": "x", "model": MODEL}
    provider["baseUrl"] = f"{run.model.address}/v1"
    known = {"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    providers: dict[str, Any] = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}}
    providers["providers"] = {"openai-compatible": known}
    write(settings / "providers.json", json.dumps(providers))
    arguments = ["--json", "--auto-approve", "true", "-P", "openai-compatible", "-m", MODEL]
    env = {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_TELEMETRY_DISABLED": "1"}
    env["CLINE_SESSION_BACKEND_MODE"] = "local"  # else it leaves a process behind
    return [*arguments, "-t", "80", "go on"], env


HOSTS_TO_TRY = {
    "qwen-code": Host("@qwen-code/qwen-code/cli.js", qwen, steps=deferred),
    "gemini-cli": Host("@google/gemini-cli/bundle/gemini.js", gemini),
    "codex": Host("@openai/codex/bin/codex.js", codex),
    "opencode": Host("opencode-ai/bin/opencode.exe", opencode, on_node=False),
    "continue": Host("@continuedev/cli/dist/cn.js", continue_cli, told=False),
    "cline": Host("cline/bin/cline", cline, told=False),
}


def run_host(host: Host, run: Run) -> str:
    """Run it to its end, in a group of its own: what it said."""
    program = str(HOSTS / "node_modules" / host.program)
    arguments, env = host.start(run)
    base = {"HOME": str(run.home), "PATH": f"{os.path.dirname(node())}:{os.environ['PATH']}"}
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        base[f"XDG_{name}_HOME"] = str(run.home / f".{name.lower()}")
    base |= {"NO_COLOR": "1", "CI": "1", "TMPDIR": str(run.home)}
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):  # nothing leaves this machine
        base |= {name: NOWHERE, name.lower(): NOWHERE}
    base |= {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
    process = subprocess.Popen(
        [*([node()] if host.on_node else []), program, *arguments],
        env=base | env,
        cwd=run.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "It did not end. " + process.communicate()[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", HOSTS_TO_TRY)
def test_an_agent_in_a_dream_session(tmp_path: Path, name: str) -> None:
    host = HOSTS_TO_TRY[name]
    if not (HOSTS / "node_modules" / host.program).exists():
        pytest.skip(f"{name} could not be installed: see `make test-clients`")
    memory = Path(Embedded(tmp_path).memory)
    topic = write(memory / "billing.md", TOPIC)
    pinned = write(memory / "pinned/rules.md", "curated")
    new = str(memory / "new.md")
    subprocess.run(["git", "init", "-q", str(tmp_path / "project")], check=True)
    home = tmp_path / "home"
    home.mkdir()
    steps = [
        Step("read_memory", {"file_path": topic}),
        Step("write_file", {"file_path": pinned, "content": "mine"}),
        Step("write_file", {"file_path": new, "content": "learnt"}),
    ]
    if host.steps is not deferred:
        steps = [step._replace(tool=f"pinfold.*{step.tool}$") for step in steps]
    with scripted_model(host.steps(steps)) as model:
        env = {"QWEN_CODE_MEMORY_BASE_DIR": str(tmp_path / "memory")}
        serve = [*SERVE, "--profile", "dream", "--project", str(tmp_path / "project")]
        said = run_host(host, Run(home, tmp_path / "project", model, serve, env))
    shutil.rmtree(home, ignore_errors=True)
    assert not model.trouble, (model.trouble, said)
    assert len(model.results) == len(host.steps(steps)), (model.results, said)
    if host.told:
        assert "File tools for a dream session" in json.dumps(model.bodies)
    seen, denied, written = model.results[-3:]
    assert TOPIC in seen
    assert "Denied: Pinned project memory is read-only" in denied
    assert "new.md" in written and "Denied" not in written
    assert read(new) == b"learnt"
    assert read(pinned) == b"curated"
