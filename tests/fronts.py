"""Gateways in front of an upstream of our own, for several tests."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pinfold_protocol.convert import structure
from pinfold_protocol.session import ConnectionOptions
from support import Embedded, read

BAD = str(Path(__file__).parent / "bad_upstream.py")
TOOLS: dict[str, Any] = {
    "read_it": {
        "paths": {"path": "read"},
        "serves": "read_file",
        "words": {"file_path": "path"},
    },
    "write_it": {
        "paths": {"path": "write"},
        "arguments": ["content"],
        "serves": "write_file",
        "words": {"file_path": "path", "content": "content"},
    },
    "drop_it": {"paths": {"path": "delete"}},
    "move_it": {"paths": {"from": "move-from", "to": "move-to"}},
    "read_many": {"paths": {"all": "read"}},
}


def upstream(log: Path, *habits: str, **more: Any) -> dict[str, Any]:
    """The options of one that misbehaves."""
    args = ["-I", BAD, str(log), *habits]
    return {"command": sys.executable, "args": args, "tools": TOOLS, **more}


def said(log: Path, method: str) -> list[dict[str, Any]]:
    """What it was sent, of one method (of none: answers)."""
    lines = read(log).decode().splitlines() if log.exists() else []
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    return [each for each in messages if each.get("method", "") == method]


def started(log: Path) -> list[int]:
    """The processes that it was, in order."""
    lines = read(log).decode().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("start ")]


def runs(process: int) -> bool:
    """Whether a process is there, and not only waited for."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Front(Embedded):
    """An embedded gateway that has one upstream, called `up`."""

    def __init__(self, base: Path, *habits: str, **more: Any) -> None:
        super().__init__(base)
        self.log = base / "log"
        options = {"upstreams": {"up": upstream(self.log, *habits, **more)}}
        self.gateway.set_options(structure(options, ConnectionOptions))
        os.makedirs(self.memory, exist_ok=True)

    def __enter__(self) -> "Front":
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.close()
