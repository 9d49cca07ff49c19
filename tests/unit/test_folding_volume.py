"""A real volume that folds names, and one that normalises them too: the policy holds there."""

import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pinfold.app import Gateway
from pinfold.doctor import Case, examine, is_wrong
from pinfold.explaining import explain
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.decision import ExplainParams
from pinfold_protocol.session import SessionOpenParams
from support import Embedded, Layout, cases, decision, kind, read, snapshot, write

pytestmark = pytest.mark.slow

FUSE = Path(__file__).parents[1] / "folding_fuse.py"


@pytest.fixture(scope="module", params=["stable inodes", "own inodes", "normalising"])
def volume(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A mounted volume that folds names."""
    try:
        importlib.import_module("mfusepy")
    except (ImportError, OSError) as error:  # the package, or the library that it needs
        pytest.skip(f"FUSE is not to be had here: {error}")
    if not shutil.which("fusermount3") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("FUSE is not to be had here (fusermount3, /dev/fuse)")
    base = tmp_path_factory.mktemp("folding").resolve()
    mount = base / "mount"
    for each in (base / "backing", mount):
        each.mkdir()
    more = {"own inodes": ["--own-inodes"], "normalising": ["--normalise"]}.get(request.param, [])
    command = [sys.executable, str(FUSE), str(base / "backing"), str(mount), *more]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        deadline = time.monotonic() + 10
        while not os.path.ismount(mount):
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                pytest.skip("a FUSE volume could not be mounted here")
            time.sleep(0.01)
        yield mount
        subprocess.run(["fusermount3", "-u", str(mount)], check=False)
        server.wait(10)


@pytest.fixture
def base(volume: Path) -> Path:
    place = volume / f"case{len(os.listdir(volume))}"
    place.mkdir()
    return place


# Two names that differ in case are one name here.
IMPOSSIBLE = {
    "pInNeD existing as a distinct directory on a case-sensitive filesystem",
    "pinned links inside memory: case variant of the target path",
    "case variant of pinned is the link (PINNED -> pinned)",
}


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in cases("policy.json")
        if case["category"] not in ("base", "shell") and case["name"] not in IMPOSSIBLE
    ],
    ids=lambda case: str(case["name"]),
)
def test_the_vectors_hold(base: Path, case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if case["category"] == "hardlink" and "own inodes" in request.node.callspec.id:
        pytest.skip("two names of one file cannot be told where each has an inode of its own")
    layout = Layout(base, case)
    layout.prepare()
    gateway = Gateway(layout.env)

    def opened(**more: Any) -> Any:
        raw = {"profile": "main", "projectRoot": layout.project, **more}
        return gateway.open_session(structure(raw, SessionOpenParams))

    layout.name_roots([unstructure(root) for root in opened().roots])
    layout.lay(case.get("layout", {}))
    session = opened(scope=case["scope"]).session_id
    layout.lay(case.get("layoutLate", {}))
    arguments = {
        k: layout.path(v) if k.endswith("path") else v for k, v in case["arguments"].items()
    }
    found = unstructure(explain(gateway, ExplainParams(session, case["tool"], arguments)))
    assert {member: found[member] for member in case["expect"]} == case["expect"], found["reason"]


@pytest.mark.parametrize(
    "path",
    ["PINNED/r.md", "Pinned/new.md", "pinned/R.MD", "../MEMORY/pinned/r.md", "../Memory/PiNnEd/r.md",
     "al/r.md", "AL/R.md", "Sub/../pinned/r.md", "PINNED", "ſub/../pinned/r.md", "pınned/r.md"],
)  # fmt: skip
@pytest.mark.parametrize("profile", ["dream", "protected main"])
def test_no_spelling_leads_into_pinned(base: Path, path: str, profile: str) -> None:
    place = Embedded(base)
    memory = place.memory
    write(f"{memory}/pinned/r.md", "curated")
    os.makedirs(f"{memory}/sub")
    os.symlink("Pinned", f"{memory}/al")
    scope = {"protectPinned": True} if profile == "protected main" else {}
    session = place.open(profile.rsplit(maxsplit=1)[-1], scope=scope)
    before = snapshot(memory)
    result = place.call(session, "write_file", file_path=f"{memory}/{path}", content="gone")
    assert kind(result) == "denied" and decision(result)["decision"] == "deny"
    edit = {"old_string": "curated", "new_string": "gone"}
    assert kind(place.call(session, "edit", file_path=f"{memory}/{path}", **edit)) == "denied"
    assert {k: v[2] for k, v in snapshot(memory).items()} == {k: v[2] for k, v in before.items()}


@pytest.mark.parametrize(
    "path", ["../MEMORY/pinned/new.md", "../Memory/PINNED/a/b.md", "Pinned/new.md"]
)
def test_a_reserved_directory_that_is_not_there_yet(base: Path, path: str) -> None:
    place = Embedded(base)
    memory = place.memory
    write(f"{memory}/topic.md", "ordinary")  # something by which the volume can be told
    session = place.open("main", scope={"protectPinned": True})
    result = place.call(session, "write_file", file_path=f"{memory}/{path}", content="planted")
    assert decision(result)["rule"] == "pinned" and os.listdir(memory) == ["topic.md"]


def test_ordinary_work_goes_on(base: Path) -> None:
    place = Embedded(base)
    memory = place.memory
    write(f"{memory}/pinned/r.md", "curated")
    session = place.open("dream")
    for content in ("one", "two", "three"):
        result = place.call(
            session, "write_file", file_path=f"{memory}/d/topic.md", content=content
        )
        assert kind(result) is None, result
        assert read(f"{memory}/d/TOPIC.md") == content.encode()
    edit = {"old_string": "three", "new_string": "four"}
    assert kind(place.call(session, "edit", file_path=f"{memory}/d/topic.md", **edit)) is None
    assert os.listdir(f"{memory}/d") == ["topic.md"]


def test_composed_and_decomposed_names_are_one(base: Path) -> None:
    place = Embedded(base)
    memory = place.memory
    write(f"{memory}/pinned/r\u00e8gle.md", "curated")
    session = place.open("dream")
    for name in ("r\u00e8gle.md", "re\u0300gle.md", "RE\u0300GLE.md"):
        result = place.call(session, "write_file", file_path=f"{memory}/pinned/{name}", content="x")
        assert decision(result)["rule"] == "pinned"


@pytest.mark.parametrize("spelling", ["pinned", "Pinned"])
def test_the_doctor_tells_that_names_fold(base: Path, spelling: str) -> None:
    place = Embedded(base)
    write(f"{place.memory}/{spelling}/r.md", "curated")
    session = place.open("dream")
    found = examine(Case(lambda rules: (place.gateway, session), {"HOME": str(base)}))
    here = [each for each in found if each.about.startswith("project root")]
    names = {each.name for each in here}
    assert {"root-folds-names", "root-remote", "pinned"} <= names and not is_wrong(here)
    assert os.listdir(place.memory) == [spelling]
