"""The benchmarks run: what they say is for people, and is not asserted here."""

import subprocess
import sys
from pathlib import Path

import pytest

from support import clean_env

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = {
    "peers.py": ["--rounds", "1", "--calls", "3", "--without-node"],
    "compaction.py": ["--rounds", "1", "--chars", "8"],
    "memory_index.py": ["--rounds", "1", "--topics", "50"],
    "hook.py": ["--rounds", "1"],
    "own.py": ["--rounds", "1", "--files", "20", "--sessions", "5"],
}


def test_each_benchmark_is_run_here() -> None:
    scripts = {path.name for path in BENCHMARKS.glob("*.py")} - {"bare_loop.py", "speakers.py"}
    assert scripts == set(SMALL)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name: str) -> None:
    command = [sys.executable, str(BENCHMARKS / name), *SMALL[name]]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3
