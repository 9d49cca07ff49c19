"""The VS Code extension: its own checks, by the Node from PyPI, and what is packed."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.client, pytest.mark.timeout(180)]
EXTENSION = Path(__file__).parents[2] / "editors/vscode"


def run(script: str) -> str:
    """The output of one of its scripts, which must succeed."""
    assert (EXTENSION / "node_modules").is_dir(), "run `make test-clients`"
    tools = Path(sys.executable).parent
    found = subprocess.run(
        [tools / "npm", "run", "--silent", script],
        cwd=EXTENSION,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize("script", ["lint", "typecheck"])
def test_it_is_clean(script: str) -> None:
    run(script)


def test_its_unit_tests_pass() -> None:
    assert "fail 0" in run("test")


def test_the_package_holds_the_bundle_its_licences_and_nothing_else() -> None:
    run("package")
    with zipfile.ZipFile(EXTENSION / "pinfold.vsix") as packed:
        held = {
            name.removeprefix("extension/")
            for name in packed.namelist()
            if name.startswith("extension/")
        }
        manifest = json.loads(packed.read("extension/package.json"))
    assert held == {
        "LICENSE.txt",
        "dist/THIRD-PARTY.txt",
        "dist/extension.cjs",
        "media/pinfold.png",
        "media/pinfold.svg",
        "package.json",
        "readme.md",
    }
    assert (manifest["publisher"], manifest["license"]) == ("pinfold", "Apache-2.0")
