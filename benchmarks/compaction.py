"""Planning a compaction against `json.loads` of the same history, and its growth, as ratios.

Side by side in one run; absolute times on a shared machine mean nothing. Usage:
python benchmarks/compaction.py [--rounds N] [--chars N]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from pinfold.compaction import Evidence, compact
from pinfold_protocol.compaction import CompactParams, CompactSettings, ForceTrigger, Format

SIZES = (1_000, 10_000, 100_000)
MEMORY = "/memory/"


def gemini(index: int, path: str, text: str) -> list[Any]:
    call = {"id": f"c{index}", "name": "read_file", "args": {"file_path": path}}
    said = {"id": f"c{index}", "name": "read_file", "response": {"output": text}}
    return [
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": said}]},
    ]


def openai(index: int, path: str, text: str) -> list[Any]:
    function = {"name": "read_file", "arguments": json.dumps({"file_path": path})}
    call = {"id": f"c{index}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{index}", "content": text},
    ]


def anthropic(index: int, path: str, text: str) -> list[Any]:
    use = {"type": "tool_use", "id": f"c{index}", "name": "read_file", "input": {"file_path": path}}
    said = {"type": "tool_result", "tool_use_id": f"c{index}", "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [said]}]


def records(index: int, path: str, text: str) -> list[Any]:
    return [{"tool": "read_file", "callId": f"c{index}", "path": path, "chars": len(text)}]


MAKERS: dict[Format, Callable[[int, str, str], list[Any]]] = {
    "gemini": gemini,
    "openai": openai,
    "anthropic": anthropic,
    "records": records,
}


def history(style: Format, results: int, chars: int) -> list[Any]:
    """Every tenth read is of managed memory; each is of a file of its own."""
    made: list[Any] = []
    for index in range(results):
        path = f"{MEMORY if index % 10 == 0 else '/src/'}{index}.md"
        made += MAKERS[style](index, path, "x" * chars)
    return made


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The median of several runs."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--chars", type=int, default=2_000, help="of each result")
    options = parser.parse_args()
    evidence = Evidence(lambda path: path.startswith(MEMORY))
    print(f"results of {options.chars} characters; json.loads of the same history = 1")
    print(f"{'format':>10}  {'results':>8}  {'plan/loads':>10}  {'per result, 1,000 = 1':>21}")
    for style in MAKERS:
        first = 0.0
        for size in SIZES:
            if size * options.chars > 1 << 29:
                continue
            text = json.dumps(history(style, size, options.chars))
            parsed = json.loads(text)
            params = CompactParams(style, parsed, ForceTrigger(), settings=CompactSettings())
            parsing = seconds(lambda text=text: json.loads(text), options.rounds)  # type: ignore[misc]
            planning = seconds(lambda params=params: compact(params, evidence), options.rounds)  # type: ignore[misc]
            first = first or planning / size
            growth = planning / size / first
            print(f"{style:>10}  {size:>8,}  {planning / parsing:>10.2f}  {growth:>21.2f}")


if __name__ == "__main__":
    main()
