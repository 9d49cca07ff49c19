"""What would be published: built, looked into, installed into empty environments, and used there.

`make test-dist` gives it `dist/`; without that it builds its own.
"""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import pinfold
from support import Raw, clean_env

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
INITIALIZE: dict[str, object] = {"processId": None, "capabilities": {}}

# Right, then wrong by its types: both have to be seen from outside of the checkout.
TYPED = """\
from pinfold.compaction import compact
from pinfold_protocol.client import Client
client: Client = compact
"""


def run(*command: str | Path, cwd: Path, status: int = 0, env: Mapping[str, str] = {}) -> str:
    """What that says, in an empty home, with nothing of ours on the way."""
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    outside = {k: v for k, v in clean_env().items() if not k.startswith(("PYTHON", "VIRTUAL_"))}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=outside | {"HOME": str(home)} | dict(env),
        timeout=500,
        check=False,
    )
    assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def environment(at: Path) -> Path:
    """A new one, as anybody makes it; its directory of programs."""
    run(sys.executable, "-m", "venv", at / "venv", cwd=at)
    return at / "venv/bin"


def install(programs: Path, *what: str | Path) -> None:
    """By wheels alone: whoever has no compiler needs none."""
    pip = (programs / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:")
    run(*pip, *what, cwd=programs.parent.parent)


def build(source: Path, into: Path, *kinds: str) -> None:
    run(sys.executable, "-m", "build", *kinds, "--outdir", into, source, cwd=into)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("PINFOLD_DIST"):
        return Path(given)
    made = tmp_path_factory.mktemp("dist")
    build(ROOT, made)
    return made


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    (found,) = dist.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = environment(tmp_path_factory.mktemp("installed"))
    install(programs, wheel)
    return programs


def test_the_version_is_said_once(wheel: Path, sdist: Path) -> None:
    version = pinfold.__version__
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    assert (wheel.name, sdist.name) == (
        f"pinfold-{version}-py3-none-any.whl",
        f"pinfold-{version}.tar.gz",
    )
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", headings[1])


def test_what_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = email.message_from_bytes(
            archive.read(next(name for name in names if name.endswith("/METADATA")))
        )
        pages = archive.read("pinfold/doors/lsp/language.md")
    tops = {name.split("/")[0] for name in names}
    assert tops == {"pinfold", "pinfold_protocol", f"{wheel.name.split('-py3')[0]}.dist-info"}
    for name in ("pinfold/py.typed", "pinfold_protocol/py.typed"):
        assert name in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert pages == (ROOT / "docs/language.md").read_bytes()
    odd = [name for name in names if not name.endswith((".py", "py.typed", ".md"))]
    assert all(".dist-info/" in name for name in odd)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert not metadata.get_all("Project-URL") and not metadata["Author"]
    assert metadata.get_payload().startswith("# pinfold\n")  # type: ignore[union-attr]


def test_nothing_in_either_names_this_machine(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as source:
        found = {name: archive.read(name) for name in archive.namelist()}
        for member in source.getmembers():
            file = source.extractfile(member)
            found[member.name] = file.read() if file else b""
    assert len(found) > 300
    assert [name for name, data in found.items() if str(ROOT).encode() in data] == []
    left = (".pyc", "/.venv", "/node_modules/", "/dist/pinfold", ".vsix", ".egg-info")
    assert [name for name in found if any(part in name for part in left)] == []


def test_the_source_makes_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as source:
        source.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    assert (unpacked / "tests/support.py").exists() and (unpacked / "Makefile").exists()
    build(unpacked, tmp_path, "--wheel")
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_command_works(installed: Path, tmp_path: Path) -> None:
    command = installed / "pinfold"
    assert run(command, "--version", cwd=tmp_path) == f"pinfold {pinfold.__version__}\n"
    assert "unharmed, byte for byte" in run(command, "demo", cwd=tmp_path)
    assert "_shtab_pinfold" in run(command, "completion", "bash", cwd=tmp_path)
    with Raw(clean_env(HOME=str(tmp_path)), (str(command), "serve"), cwd=tmp_path) as raw:
        assert raw.result("initialize", INITIALIZE)["serverInfo"] == {
            "name": "pinfold",
            "version": pinfold.__version__,
        }


def test_both_packages_come_from_the_environment(installed: Path, tmp_path: Path) -> None:
    program = "import pinfold, pinfold_protocol; print(pinfold.__file__, pinfold_protocol.__file__)"
    shown = run(installed / "python", "-c", program, cwd=tmp_path)
    assert all(str(installed.parent) in path for path in shown.split())


def test_its_types_are_there_for_others(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED, "utf-8")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "python")
    shown = run(*mypy, "program.py", cwd=tmp_path, status=1)
    assert shown.count("error:") == 1 and "program.py:3" in shown and "[assignment]" in shown


def test_pipx_runs_it_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path)
    install(programs, "pipx")
    places = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    shown = run(
        programs / "pipx", "run", "--spec", wheel, "pinfold", "demo", cwd=tmp_path, env=places
    )
    assert "unharmed, byte for byte" in shown
