"""Start and read latency against a bare Python loop, side by side in one run, as ratios.

Absolute times on a shared machine mean nothing; read the last column. Usage:
python benchmarks/startup_and_reads.py [--rounds N] [--calls N] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BARE = [sys.executable, str(Path(__file__).parent / "bare_loop.py")]
PINFOLD = [sys.executable, "-m", "pinfold", "serve"]
SERVERS = {"bare loop": BARE, "pinfold": PINFOLD}


class Server:
    """A process that is asked one thing after another."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._last = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        body = json.dumps(message).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._in.flush()
        length = int(self._out.readline().split(b":")[1])
        self._out.readline()
        answer: dict[str, Any] = json.loads(self._out.read(length))
        return answer

    def end(self) -> None:
        self._in.close()
        self.process.wait(10)
        self._out.close()


def measure_round(name: str, base: str, calls: int) -> dict[str, float]:
    """Seconds: spawn to initialize, spawn to the first read, one read (median)."""
    env = os.environ | {"QWEN_CODE_MEMORY_BASE_DIR": f"{base}/memory"}
    path = f"{base}/project/file.txt"
    began = time.perf_counter()
    server = Server(SERVERS[name], env)
    server.ask("initialize", {"processId": os.getpid(), "capabilities": {}})
    initialized = time.perf_counter() - began
    opening = {"profile": "dream", "projectRoot": f"{base}/project", "sessionId": "s"}
    server.ask("session/open", opening)
    params = {"sessionId": "s", "name": "read_file", "arguments": {"file_path": path}}
    answer = server.ask("tools/call", params)
    assert answer["result"]["content"][0]["text"] == "x" * 4096, answer
    first = time.perf_counter() - began
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        server.ask("tools/call", params)
        times.append(time.perf_counter() - start)
    server.end()
    return {
        "spawn to initialize": initialized,
        "spawn to the first read": first,
        "read_file, 4 KiB": statistics.median(times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--json", help="write the medians there")
    options = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as temporary:
        base = os.path.realpath(temporary)
        for root in ("project/.qwen/team-memory", "memory/memories"):
            os.makedirs(f"{base}/{root}")
        Path(f"{base}/project/file.txt").write_text("x" * 4096, encoding="utf-8")
        for _ in range(options.rounds):
            for name in SERVERS:
                rounds[name].append(measure_round(name, base, options.calls))
    medians = {
        name: {what: statistics.median(each[what] for each in found) for what in found[0]}
        for name, found in rounds.items()
    }
    print(f"{f'median of {options.rounds} rounds':28}{'bare loop':>14}{'pinfold':>14}{'ratio':>9}")
    for what, bare in medians["bare loop"].items():
        ours = medians["pinfold"][what]
        print(f"{what:28}{bare * 1e3:11.2f} ms{ours * 1e3:11.2f} ms{ours / bare:9.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(medians, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
