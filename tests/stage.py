"""Running an example as a stranger does: one command, in `examples/`."""

import subprocess
import sys
from pathlib import Path

from support import clean_env

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(module: str, base: Path) -> str:
    """What an example prints; its memory and its temporary files are below `base`."""
    result = subprocess.run(
        [sys.executable, "-m", module],
        cwd=EXAMPLES,
        env=clean_env(HOME=str(base / "home"), TMPDIR=str(base), PYTHONWARNINGS="error"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout
