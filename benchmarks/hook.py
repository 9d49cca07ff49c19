"""What `pinfold hook` costs, spawn to exit, against `python -c pass`, side by side in one run.

Absolute times on a shared machine mean nothing; read the ratios. The hook is started as its
installed entry starts it. Usage: python benchmarks/hook.py [--rounds N] [--json FILE]
"""

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pinfold
import pinfold_protocol

BARE = "python -c pass"
GOALS = {"a write": 2.5, "a read": 2.5, "a tool that is not known": 2.5, "after a read": 2.5}
GOALS |= {"a write, with rules": 5.0, "a shell command": 5.0}


def program() -> list[str]:
    """`pinfold` beside this Python, else as a module."""
    own = shutil.which("pinfold", path=str(Path(sys.executable).parent))
    return [own] if own else [sys.executable, "-m", "pinfold"]


def cases(base: Path) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """What is measured: flags and event by name."""
    project = base / "project"
    project.mkdir()
    topic = base / ".claude/projects" / str(project).replace("/", "-") / "memory/topic.md"
    topic.parent.joinpath("pinned").mkdir(parents=True)
    topic.write_text("---\ntype: user\n---\ntext\n")
    rules = base / "rules.json"
    rules.write_text(json.dumps([{"decision": "ask", "tools": ["Write"], "paths": ["src/**"]}]))
    flags = ["--host", "claude-code", "--scope", "protectPinned=true"]
    common = {"session_id": "s", "cwd": str(project), "hook_event_name": "PreToolUse"}
    write = {**common, "tool_name": "Write", "tool_input": {"file_path": str(topic), "content": ""}}
    read = {**common, "tool_name": "Read", "tool_input": {"file_path": str(project / "a.md")}}
    shell = {**common, "tool_name": "Bash", "tool_input": {"command": "git status && ls -la"}}
    unknown = {**common, "tool_name": "mcp__x__y", "tool_input": {"a": ["b", {"c": "d/e"}]}}
    return {
        "a write": (flags, write),
        "a read": (flags, read),
        "a tool that is not known": (flags, unknown),
        "after a read": (flags, {**read, "hook_event_name": "PostToolUse"}),
        "a write, with rules": ([*flags, "--rules", str(rules)], write),
        "a shell command": ([*flags, "--scope", "shell=read-only"], shell),
    }


def seconds(command: list[str], event: bytes, env: dict[str, str]) -> float:
    """Spawn to exit."""
    began = time.perf_counter()
    done = subprocess.run(command, input=event, capture_output=True, check=False, env=env)
    took = time.perf_counter() - began
    assert done.returncode == 0 and not done.stderr, done
    return took


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians in seconds and their ratio to the bare interpreter, by case."""
    for package in (pinfold, pinfold_protocol):  # as an installed wheel is
        compileall.compile_dir(str(Path(str(package.__file__)).parent), quiet=1)
    with tempfile.TemporaryDirectory() as base:
        env = os.environ | {"HOME": base, "XDG_STATE_HOME": f"{base}/state"}
        env.pop("CLAUDE_CONFIG_DIR", None)
        wanted: dict[str, tuple[list[str], bytes]] = {BARE: ([sys.executable, "-c", "pass"], b"")}
        for name, (flags, asked) in cases(Path(base)).items():
            wanted[name] = [*program(), "hook", *flags], json.dumps(asked).encode()
        times: dict[str, list[float]] = {name: [] for name in wanted}
        for _ in range(rounds):
            for name, (command, event) in wanted.items():
                times[name].append(seconds(command, event, env))
    bare = statistics.median(times[BARE])
    return {
        name: {"median": statistics.median(each), "ratio": statistics.median(each) / bare}
        for name, each in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    results = measure(options.rounds)
    print(f"{'spawn to exit':28} {'ms':>8} {'ratio':>7} {'goal':>6}")
    for name, result in results.items():
        goal = f"{GOALS[name]:6.1f}" if name in GOALS else ""
        print(f"{name:28} {result['median'] * 1e3:8.1f} {result['ratio']:7.2f} {goal}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
