"""Listing memory topics against reading the same files by hand, as ratios.

By hand: os.scandir, then open, read and close each file, once with the system calls alone and once
with `open()`. Taken in turn in one run; absolute times on a shared machine mean nothing. Usage:
python benchmarks/memory_index.py [--topics N] [--rounds N]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pinfold.app import Gateway
from pinfold.library import index
from pinfold_protocol.session import SessionOpenParams

TOPIC = """---
name: Topic {0}
description: What somebody once said about the {0}th thing, in a line
type: {1}
---

"""
TYPES = ("user", "feedback", "project", "reference")
BODY = "A line of what there is to know about it, as long as lines usually are.\n" * 12


def by_system_calls(root: str) -> None:
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        handle = os.open(f"{root}/{name}", os.O_RDONLY)
        os.read(handle, 65536)
        os.close(handle)


def by_open(root: str) -> None:
    with os.scandir(root) as entries:
        for entry in entries:
            with open(entry.path, "rb") as file:
                file.read()


def measure(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of each, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = os.path.realpath(temporary)
        gateway = Gateway({"QWEN_CODE_MEMORY_BASE_DIR": f"{base}/memory", "HOME": base})
        opened = gateway.open_session(SessionOpenParams("dream", base))
        session, root = gateway.sessions.get(opened.session_id), opened.roots[0].path
        os.makedirs(root)
        for number in range(options.topics):
            text = TOPIC.format(number, TYPES[number % 4]) + BODY
            Path(f"{root}/topic-{number}.md").write_text(text, encoding="utf-8")
        assert len(index(gateway, session, limit=options.topics).documents) == options.topics
        medians = measure(
            {
                "system calls": lambda: by_system_calls(root),
                "open()": lambda: by_open(root),
                "the newest 200": lambda: index(gateway, session),
                "all of them": lambda: index(gateway, session, limit=options.topics),
            },
            options.rounds,
        )
    print(f"{options.topics:,} topics, by hand = 1, median of {options.rounds} rounds")
    print(f"{'memory/index':>16}  {'system calls':>12}  {'open()':>8}")
    for name in ("the newest 200", "all of them"):
        ratios = (medians[name] / medians[hand] for hand in ("system calls", "open()"))
        print("{:>16}  {:>12.2f}  {:>8.2f}".format(name, *ratios))


if __name__ == "__main__":
    main()
