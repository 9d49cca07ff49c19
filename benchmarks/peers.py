"""Start, reads and memory against the servers that people have, side by side in one run, as ratios.

Absolute times on a shared machine mean nothing; read the ratios to the Node server, and their
spread over the rounds. Usage: python benchmarks/peers.py [--rounds N] [--calls N] [--json FILE]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from speakers import SERVER_FS, SPEAKERS, Speaker, node

MIB = 1 << 20
PEER, FLOOR = "Node server-fs", "bare loop, orjson"
IN_FLIGHT = 32
INITIALIZE, FIRST_READ = "spawn to the answer to initialize", "spawn to the first read"
SMALL, PER_SECOND = "read 4 KiB, p50", f"calls per second, {IN_FLIGHT} in flight"
MEDIUM, LARGE, MEMORY = "read 1 MiB", "read 16 MiB", "peak memory after 16 MiB"
ACCENTED = "read 1 MiB, an é in each line"
GOALS: dict[str, tuple[str, float | None]] = {
    INITIALIZE: ("≤", 0.25),
    FIRST_READ: ("≤", 0.45),
    SMALL: ("≤", 0.40),
    PER_SECOND: ("≥", 3.0),
    MEDIUM: ("≤", 0.20),
    ACCENTED: ("", None),
    LARGE: ("≤", 0.25),
    MEMORY: ("≤", 0.6),
}


def lay(base: str) -> dict[str, tuple[str, int]]:
    """A project with memory, and the files to read: path and size by what is measured."""
    for root in ("project/.qwen/team-memory", "memory/memories/pinned"):
        os.makedirs(f"{base}/{root}")
    plain = "The invoices are in cents, and the oldest of them is of 2019 (i).\n"
    files = {
        SMALL: (4096, plain),
        MEDIUM: (MIB, plain),
        ACCENTED: (MIB, plain.replace("(i)", "(é)")),
        LARGE: (16 * MIB, plain),
    }
    found = {}
    for number, (name, (size, line)) in enumerate(files.items()):
        path = f"{base}/project/{number}.md"
        text = (line * (size // len(line) + 1)).encode()[: size - 1].decode(errors="ignore")
        Path(path).write_text(text, encoding="utf-8")
        found[name] = (path, len(text))
    return found


def one_round(kind: type[Speaker], base: str, files: Any, calls: int) -> dict[str, float]:
    """Seconds (and calls per second, KiB) by what is measured."""
    found: dict[str, float] = {}
    began = time.perf_counter()
    server = kind(base)
    try:
        server.initialize()
        found[INITIALIZE] = time.perf_counter() - began
        server.open()
        small = server.read_params(files[SMALL][0], whole=False)
        check(server.ask("tools/call", small), files[SMALL][1])
        found[FIRST_READ] = time.perf_counter() - began
        found[SMALL] = median_call(server, small, calls)
        found[PER_SECOND] = per_second(server, small, calls)
        for name, times in ((MEDIUM, 9), (ACCENTED, 9), (LARGE, 3)):
            path, length = files[name]
            params = server.read_params(path, whole=True)
            check(server.ask("tools/call", params), length)
            found[name] = median_call(server, params, times)
        found[MEMORY] = float(server.peak_kib())
    finally:
        server.end()
    return found


def check(answer: dict[str, Any], length: int) -> None:
    """What was measured must have been a read."""
    text = answer["result"]["content"][0]["text"]
    assert len(text) == length, (len(text), length, text[:200])


def median_call(server: Speaker, params: dict[str, Any], calls: int) -> float:
    """One at a time."""
    times = []
    for _ in range(calls):
        request = server.request("tools/call", params)
        began = time.perf_counter()
        server.send(request)
        server.next()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def per_second(server: Speaker, params: dict[str, Any], calls: int) -> float:
    """With so many under way at any time."""
    requests = [server.request("tools/call", params) for _ in range(calls + IN_FLIGHT)]
    server.send(b"".join(requests[:IN_FLIGHT]))
    began = time.perf_counter()
    for request in requests[IN_FLIGHT:]:
        server.next()
        server.send(request)
    took = time.perf_counter() - began
    for _ in range(IN_FLIGHT):
        server.next()
    return calls / took


def measure(rounds: int, calls: int, names: list[str]) -> dict[str, list[dict[str, float]]]:
    """All rounds, the servers alternating."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        base = os.path.realpath(temporary)
        files = lay(base)
        for _ in range(rounds):
            for name in names:
                found[name].append(one_round(SPEAKERS[name], base, files, calls))
    return found


def ratios(
    found: dict[str, list[dict[str, float]]], what: str
) -> dict[str, tuple[float, float, float]]:
    """By server: the ratio of the medians to the peer's; the smallest and largest of a round."""
    peer = [each[what] for each in found[PEER if PEER in found else FLOOR]]
    table = {}
    for name, rounds in found.items():
        own = [each[what] for each in rounds]
        single = [mine / theirs for mine, theirs in zip(own, peer, strict=True)]
        middle = statistics.median(own) / statistics.median(peer)
        table[name] = (middle, min(single), max(single))
    return table


def draw(found: dict[str, list[dict[str, float]]]) -> None:
    """One table: ratios to the Node server, with their spread."""
    peer = PEER if PEER in found else FLOOR
    print(f"{'ratio to ' + peer:36}" + "".join(f"{name:>22}" for name in found) + f"{'goal':>9}")
    for what, (sign, goal) in GOALS.items():
        cells = [
            f"{middle:9.3f} ({low:.2f}–{high:.2f})"
            for middle, low, high in ratios(found, what).values()
        ]
        aim = "" if goal is None else f"{sign:>5}{goal:5.2f}"
        print(f"{what:36}" + "".join(f"{cell:>22}" for cell in cells) + aim)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--without-node", action="store_true", help="ratios to the bare loop")
    options = parser.parse_args()
    names = [name for name in SPEAKERS if name != PEER or not options.without_node]
    if PEER in names and (node() is None or not SERVER_FS.exists()):
        sys.exit("`make bench` installs the peers first")
    found = measure(options.rounds, options.calls, names)
    draw(found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
