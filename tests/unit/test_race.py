"""While another process swaps links and directories, no write lands in `pinned/`.

The guarantee as docs/policy.md states it: no outcome that is wrong in every serial order. The other process
moves nothing of ours into `pinned/` itself, so nothing of ours may ever stand there.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support import Embedded, kind, snapshot, write

SWAPPER = """
import os, random, sys, time
memory, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
d, aside, pinned = f"{memory}/d", f"{memory}/aside", f"{memory}/pinned"
def swap_for_link():
    os.rename(d, aside); os.symlink("pinned", d)
def swap_back():
    os.unlink(d); os.rename(aside, d)
def target_becomes_link():
    os.unlink(f"{d}/t.md"); os.symlink("../pinned/p.md", f"{d}/t.md")
def target_becomes_hard_link():
    os.unlink(f"{d}/t.md"); os.link(f"{pinned}/p.md", f"{d}/t.md")
def target_becomes_directory():
    os.unlink(f"{d}/t.md"); os.mkdir(f"{d}/t.md")
def target_becomes_file():
    open(f"{d}/file{random.random()}", "x").close()
    os.rename(max(e.path for e in os.scandir(d) if e.name.startswith("file")), f"{d}/t.md")
def target_goes():
    os.rmdir(f"{d}/t.md") if os.path.isdir(f"{d}/t.md") else os.unlink(f"{d}/t.md")
def parent_becomes_link():
    os.symlink("../pinned", f"{d}/sub")
def parent_goes():
    os.unlink(f"{d}/sub") if os.path.islink(f"{d}/sub") else os.rename(f"{d}/sub", f"{memory}/x{random.random()}")
moves = [swap_for_link, swap_back, target_becomes_link, target_becomes_hard_link, target_goes,
         target_becomes_directory, target_becomes_file, parent_becomes_link, parent_goes]
end, count = time.monotonic() + seconds, 0
while time.monotonic() < end and count < 2_000_000:
    if os.path.islink(d):  # the names below it are pinned/'s own: leave them alone
        move = swap_back
    else:
        move = random.choice(moves)
    try:
        move(); count += 1
    except OSError:
        pass
if os.path.islink(d):
    swap_back()
print(count)
"""

KNOWN = (None, "denied", "is-directory", "changed-underfoot", "not-found", "not-a-regular-file")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_write_lands_in_pinned_while_links_and_directories_are_swapped(
    tmp_path: Path, seed: int
) -> None:
    seconds = 8.0
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/pinned/p.md", "curated")
    write(f"{memory}/d/t.md", "old")
    session = place.open("dream", scope={"staleness": "off"})  # the other process writes, too
    # The other process alone links and unlinks p.md, which changes its count of links and ctime.
    before = {
        path: (value[0], value[1], value[2]) for path, value in snapshot(f"{memory}/pinned").items()
    }
    outcomes: dict[str | None, int] = {}
    odd: list[str] = []
    lock = threading.Lock()

    def writer(number: int, until: float) -> None:
        count = 0
        while time.monotonic() < until:
            count += 1
            name = ("t.md", "sub/new/t.md", "t.md", "../d/t.md")[count % 4]
            path = f"{memory}/d/{name}"
            content = f"ours {number} {count}"
            result = place.call(session, "write_file", file_path=path, content=content)
            with lock:
                outcomes[kind(result)] = outcomes.get(kind(result), 0) + 1
                if kind(result) not in KNOWN:
                    odd.append(result["content"][0]["text"])

    command = [sys.executable, "-c", SWAPPER, memory, str(seconds), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as swapper:
        until = time.monotonic() + seconds
        writers = [threading.Thread(target=writer, args=(n, until)) for n in range(3)]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        output, _ = swapper.communicate(timeout=30)
    assert int(output) > 100, "the other process did nothing"
    after = {
        path: (value[0], value[1], value[2]) for path, value in snapshot(f"{memory}/pinned").items()
    }
    assert after == before
    # It must have been a race: some calls went through, some were denied.
    assert outcomes.get(None, 0) > 20 and outcomes.get("denied", 0) > 0, outcomes
    assert odd == []
    left = [path for path in snapshot(memory) if ".pinfold-" in path]
    assert left == []


@pytest.mark.parametrize("processes", [4])
def test_parallel_edits_from_several_gateways_are_all_there(tmp_path: Path, processes: int) -> None:
    """Between gateways no successful answer is a lost change."""
    place = Embedded(tmp_path)
    path = write(f"{place.memory}/t.md", "".join(f"[{n}]\n" for n in range(80)))
    program = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\n"
        "from support import Embedded, kind\n"
        "place = Embedded(Path(sys.argv[1])); session = place.open('dream')\n"
        "first = int(sys.argv[2])\n"
        "for n in range(first, first + 20):\n"
        "    result = place.call(session, 'edit', file_path=place.memory + '/t.md',\n"
        "                        old_string=f'[{n}]', new_string=f'<{n}>')\n"
        "    print(n, kind(result))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    tests = str(Path(__file__).parents[1])
    running = [
        subprocess.Popen([*command, str(n * 20), tests], stdout=subprocess.PIPE, text=True)
        for n in range(processes)
    ]
    answers = [
        line.split() for each in running for line in each.communicate(timeout=50)[0].splitlines()
    ]
    text = Path(path).read_text("utf-8")
    done = {int(n) for n, error in answers if error == "None"}
    assert len(answers) == 80 and len(done) > 40
    for number in range(80):
        assert (f"<{number}>" in text) is (number in done)
