"""What our own work costs, as ratios in one run: the decision, many sessions, a write.

The decision is compared with a whole read by a bare loop (a request down a pipe, orjson, open,
read, and the answer back), a write with the same system calls made by hand. Usage: python
benchmarks/own.py [--rounds N] [--files N] [--sessions N] [--json FILE]
"""

import argparse
import fcntl
import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from speakers import BareOrjson

from pinfold.app import Gateway
from pinfold.paths.kernel import platform
from pinfold.tools.registry import as_call
from pinfold_protocol.session import MemoryOptions, SessionOpenParams
from pinfold_protocol.tools import ToolsCallParams

DEEP = "a/b/c/d/e/f"
TEXT = ("The invoices are in cents, and the oldest of them is of 2019.\n" * 67)[:4096]
_BATCH = 50

LOOP = "bare loop: a read of 4 KiB"
READ, CHANGE = "deciding about a read", "deciding about a change"
FEW, MANY = "with few files", "with many files"
GOALS: dict[str, tuple[str, float]] = {
    f"{READ}, {FEW} / {LOOP}": ("≤", 1.5),
    f"{READ}, {MANY} / {LOOP}": ("≤", 1.5),
    f"{CHANGE}, {FEW} / {LOOP}": ("≤", 4.0),
    f"{CHANGE}, {MANY} / {LOOP}": ("≤", 4.0),
    "a session: KiB": ("≤", 8.0),
    "a call with many sessions / with one": ("≤", 1.1),
    "write_file of 4 KiB / the same calls by hand": ("≤", 1.5),
    "the same without fsync": ("≤", 1.5),
}


class Place:
    """A project with memory, and a session that protects it, as a process has it: the same roots
    are looked at anew for every decision."""

    def __init__(self, base: str, files: int) -> None:
        self.project = f"{base}/project"
        memory = f"{base}/memory/{DEEP}"
        for root in ("project", "user"):
            os.makedirs(f"{memory}/{root}/pinned")
        os.makedirs(f"{self.project}/.qwen/team-memory")
        for index in range(files):
            where = f"{memory}/{'project' if index % 2 else 'user'}/{index % 100}"
            os.makedirs(where, exist_ok=True)
            Path(f"{where}/{index}.md").touch()
        self.path = f"{memory}/project/topic.md"
        Path(self.path).write_text(TEXT, encoding="utf-8")
        self.options = MemoryOptions(
            project_root=f"{memory}/project",
            user_root=f"{memory}/user",
            team_root=f"{self.project}/.qwen/team-memory",
        )
        self.gateway = Gateway()
        self.gateway.wake()
        self.open("bench")
        self.session = self.gateway.sessions.get("bench")

    def open(self, session_id: str) -> None:
        """One more session."""
        self.gateway.open_session(
            SessionOpenParams("dream", self.project, session_id=session_id, memory=self.options)
        )

    def decide(self, tool: str) -> None:
        """Open, gather facts, decide."""
        cached = tool == "read_file"
        with self.gateway.calls.decided(self.session, as_call(tool), self.path, cached=cached):
            pass

    def read(self) -> None:
        """The whole call."""
        self.gateway.call(
            ToolsCallParams("bench", "read_file", {"file_path": self.path}), cached=True
        )

    def write(self, text: str) -> None:
        """The whole call."""
        arguments = {"file_path": self.path, "content": text}
        result = self.gateway.call(ToolsCallParams("bench", "write_file", arguments))
        assert not result.is_error, result.content


class Loop:
    """The bare loop as a process, asked for one file."""

    def __init__(self, base: str, path: str) -> None:
        self._speaker = BareOrjson(base)
        self._speaker.initialize()
        self._request = self._speaker.request(
            "tools/call", {"name": "read_file", "arguments": {"file_path": path}}
        )

    def read(self) -> None:
        """One read, there and back."""
        self._speaker.send(self._request)
        self._speaker.next()

    def end(self) -> None:
        """End it."""
        self._speaker.end()


def by_hand(path: str, text: str) -> None:
    """What a write is made of: what was there, a file without a name, its bytes, the lock of the
    directory, a name, the exchange, and the old file removed."""
    with open(path, "rb") as old:
        hashlib.sha256(old.read()).hexdigest()
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    new = platform.open_nameless(directory, 0o600)
    try:
        os.write(new, text.encode())
        os.fchmod(new, 0o644)
        os.fsync(new)
        fcntl.flock(directory, fcntl.LOCK_EX)
        platform.link_nameless(new, directory, b".bench-temporary")
        platform.exchange(directory, b".bench-temporary", os.fsencode(os.path.basename(path)))
        os.unlink(b".bench-temporary", dir_fd=directory)
        os.fsync(directory)
    finally:
        os.close(new)
        os.close(directory)


def in_turn(
    works: dict[str, Callable[[], object]], rounds: int, batch: int = _BATCH
) -> dict[str, list[float]]:
    """Seconds of each by round: the median of a batch, the works alternating."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times = []
            for _ in range(batch):
                began = time.perf_counter()
                work()
                times.append(time.perf_counter() - began)
            found[name].append(statistics.median(times))
    return found


@contextmanager
def without_sync() -> Iterator[None]:
    """For both sides of a comparison."""
    real = os.fsync
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = real


def _ratio(mine: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """Of the medians, and the least and most of a round."""
    single = [a / b for a, b in zip(mine, theirs, strict=True)]
    return statistics.median(mine) / statistics.median(theirs), min(single), max(single)


def _resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * (os.sysconf("SC_PAGE_SIZE") >> 10)


Found = dict[str, tuple[float, float, float]]


def decisions(base: str, rounds: int, files: int) -> Found:
    """Of a read and of a change, with few files below the roots and with many."""
    few, many = Place(f"{base}/few", 10), Place(f"{base}/many", files)
    loop = Loop(f"{base}/few", few.path)
    try:
        works: dict[str, Callable[[], object]] = {LOOP: loop.read}
        for what, place in ((FEW, few), (MANY, many)):
            works[f"{READ}, {what}"] = partial(place.decide, "read_file")
            works[f"{CHANGE}, {what}"] = partial(place.decide, "edit")
        times = in_turn(works, rounds)
    finally:
        loop.end()
    return {f"{n} / {LOOP}": _ratio(each, times[LOOP]) for n, each in times.items() if n != LOOP}


def sessions(base: str, rounds: int, count: int) -> Found:
    """What each costs while it is open, and what a call costs then."""
    alone, crowded = Place(f"{base}/alone", 10), Place(f"{base}/crowded", 10)
    before = _resident_kib()
    for index in range(count):
        crowded.open(f"session-{index}")
    each = (_resident_kib() - before) / count
    times = in_turn({"alone": alone.read, "crowded": crowded.read}, rounds)
    return {
        "a session: KiB": (each, each, each),
        "a call with many sessions / with one": _ratio(times["crowded"], times["alone"]),
    }


def writes(base: str, rounds: int) -> Found:
    """With the sync and without it."""
    place = Place(f"{base}/writes", 10)
    texts = iter(range(10**9))
    other = f"{os.path.dirname(place.path)}/by-hand.md"
    Path(other).write_text(TEXT, encoding="utf-8")
    works: dict[str, Callable[[], object]] = {
        "ours": lambda: place.write(f"{next(texts):09}{TEXT[9:]}"),
        "by hand": lambda: by_hand(other, f"{next(texts):09}{TEXT[9:]}"),
    }
    synced = in_turn(works, rounds, 20)
    with without_sync():
        unsynced = in_turn(works, rounds, 20)
    return {
        "write_file of 4 KiB / the same calls by hand": _ratio(synced["ours"], synced["by hand"]),
        "the same without fsync": _ratio(unsynced["ours"], unsynced["by hand"]),
    }


def draw(found: Found) -> None:
    """One line each: the ratio, its spread, the goal."""
    for name, (middle, low, high) in found.items():
        sign, goal = GOALS[name]
        print(f"{name:64}{middle:8.2f} ({low:.2f}–{high:.2f}){sign:>4}{goal:5.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = os.path.realpath(temporary)
        found = {
            **decisions(base, options.rounds, options.files),
            **sessions(base, options.rounds, options.sessions),
            **writes(base, options.rounds),
        }
    draw(found)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
