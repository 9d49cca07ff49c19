"""A home, a project and its memory for a real editor, and what it did there."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import DEADLINE, clean_env, write

REPOSITORY = Path(__file__).parents[2]
DRIVE = Path(__file__).parent / "drive"
EDITORS = REPOSITORY / "editors"

INDEX = (
    "# Memory\n\n- [Releases](feedback/releases.md): how we release\n- [Gone](user/gone.md): lost\n"
)
RELEASES = (
    "---\nname: Releases\ndescription: how we release\ntype: feedback\n---\n\n"
    "Tag on Fridays 😀 never.\nAsk before a tag.\n"
)
RULES = "---\nname: Rules\ndescription: what stays\ntype: user\n---\n\nNever force-push.\n"
BAD = "---\nname: Bad\ndescription: no such type\ntype: wisdom\n---\n"


def need(program: str, package: str) -> str:
    """Where a program is; the test is skipped, with the reason, where it is not."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: {package}); `make test-editors` tries to")
    return found


class Desk:
    """An empty home, a project with memory in it, and `pinfold` on the PATH."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.project = base / "project"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()
        self._started = base / "started"
        self._told = base / "told.jsonl"
        self.starter = base / "bin/pinfold"
        self.serve()
        self.env = clean_env(
            HOME=str(self.home),
            PATH=f"{self.starter.parent}:{os.environ['PATH']}",
            LC_ALL="C.UTF-8",
            TERM="dumb",
            **{
                f"XDG_{name}_HOME": str(self.home / f".{name.lower()}")
                for name in ("CONFIG", "DATA", "STATE", "CACHE")
            },
        )
        self.memory = self._memory()
        self.index = self._lay("MEMORY.md", INDEX)
        self.topic = self._lay("feedback/releases.md", RELEASES)
        self.bad = self._lay("user/bad.md", BAD)
        self.pinned = self._lay("pinned/rules.md", RULES)

    def serve(self, *before: str | Path) -> None:
        """What `pinfold` on the PATH is, with `before` in front of it."""
        command = " ".join(map(str, (*before, sys.executable, "-m", "pinfold")))
        write(self.starter, f'#!/bin/sh\necho $$ >> "{self._started}"\nexec {command} "$@"\n')
        self.starter.chmod(0o755)

    def _memory(self) -> Path:
        command = [sys.executable, "-m", "pinfold", "roots", "--json"]
        told = subprocess.run(
            command,
            env=self.env,
            cwd=self.project,
            capture_output=True,
            check=True,
            timeout=DEADLINE,
        )
        return Path(json.loads(told.stdout)["roots"][0]["path"])

    def _lay(self, name: str, text: str) -> Path:
        return Path(write(self.memory / name, text))

    def drive(self, command: Sequence[str | Path], scenario: str, **more: str) -> dict[str, Any]:
        """Run an editor until it ends. It reads what to do from `SCENARIO`, and where from
        `MEMORY`; each line that it writes to `TOLD` is one object, and all of them together are
        what it tells."""
        env = self.env | {
            "SCENARIO": scenario,
            "MEMORY": str(self.memory),
            "TOLD": str(self._told),
            "STARTED": str(self._started),
            "DRIVE": str(DRIVE),
            "EDITORS": str(EDITORS),
        }
        ended = subprocess.run(
            command,
            env=env | more,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * DEADLINE,
        )
        said = (ended.stdout + ended.stderr).decode(errors="replace")
        told: dict[str, Any] = {}
        if self._told.exists():
            for line in self._told.read_text("utf-8").splitlines():
                told |= json.loads(line)
        assert "failed" not in told, (told, said)
        assert told.get("done") is True, (told, said)
        return told

    @property
    def servers(self) -> list[int]:
        """Every gateway that was started, by its process."""
        return [int(each) for each in self._started.read_text("ascii").split()]

    def wait_until_ended(self) -> None:
        """No gateway outlives its editor for long."""
        deadline = time.monotonic() + DEADLINE
        for process in self.servers:
            while _is_gateway(process):
                assert time.monotonic() < deadline, f"{process} still runs"
                time.sleep(0.02)


def _is_gateway(process: int) -> bool:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return b"pinfold" in file.read()
    except (FileNotFoundError, ProcessLookupError):
        return False
