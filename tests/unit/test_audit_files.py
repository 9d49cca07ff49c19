"""The record's file: many writers, rotation, faults; and reading it while all that goes on."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pinfold.audit import log as log_module
from pinfold.audit.entry import Entry, Trace
from pinfold.audit.line import lost_line
from pinfold.audit.log import Log, Place
from pinfold.audit.reader import Trail
from pinfold.audit.recorder import Recorder
from support import DEADLINE, Seam, read, write
from unit.test_audit import Recorded

SMALL = 1 << 16
LINE = b"x" * 99 + b"\n"


class Told:
    """A recorder of one file, and what it reported."""

    def __init__(self, path: Path, *, keep: int = 3, seam: Any = None, **options: Any) -> None:
        self.path = str(path)
        self.told: list[str] = []
        self.log = Log(Place(self.path, SMALL, keep), seam or (lambda moment: None))
        self.recorder = Recorder(self.log, self.told.append, retry=0.01, **options)

    def record(self, *tools: str) -> None:
        for tool in tools:
            self.recorder.record(Entry("s", tool, Trace()))

    def flush(self) -> None:
        assert self.recorder.flush(DEADLINE)


def tools(lines: Iterator[bytes] | list[bytes]) -> list[Any]:
    """What lines are about: a tool's name, or a number of lost lines."""
    found = (json.loads(line) for line in lines)
    return [members.get("tool") or members["lost"] for members in found]


def all_tools(path: str | Path) -> list[Any]:
    trail = Trail(str(path))
    try:
        return tools([*trail.new(), *trail.rest()])
    finally:
        trail.close()


WRITER = """
import sys, threading
from pinfold.audit.entry import Entry, Trace
from pinfold.audit.log import Log, Place
from pinfold.audit.recorder import Recorder
path, name = sys.argv[1:]
told = []
recorder = Recorder(Log(Place(path, 1 << 16, 100)), told.append)
print("ready", flush=True); sys.stdin.readline()
def work(thread):
    for n in range(150):
        recorder.record(Entry("s", f"{name}-{thread}-{n}", Trace("/" + "p" * (n * 7 % 900))))
threads = [threading.Thread(target=work, args=(t,)) for t in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert recorder.close(20) and not told, told
"""


def test_many_gateways_lose_and_tear_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, f"w{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for n in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
    for writer in writers:
        writer.communicate(b"go\n", DEADLINE)
        assert writer.returncode == 0
    found = all_tools(path)
    assert len(found) == len(set(found)) == 4 * 3 * 150
    for who in {each.rpartition("-")[0] for each in found}:  # each writer's lines are in order
        mine = [int(each.rpartition("-")[2]) for each in found if each.rpartition("-")[0] == who]
        assert mine == [*range(150)]
    files = [os.path.join(tmp_path, name) for name in os.listdir(tmp_path)]
    assert len(files) > 5 and max(map(os.path.getsize, files)) <= SMALL
    assert {os.stat(file).st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_rotation_bounds_the_size_and_keeps_the_newest(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a"
    one, two = (Log(Place(str(path), SMALL, keep)) for _ in range(2))
    for number in range(4000):
        assert (one, two)[number % 2].append([b"%098d\n" % number]) == 1
    one.close()
    two.close()
    names = ["a", *(f"a.{n}" for n in range(1, keep + 1))]
    assert sorted(os.listdir(tmp_path)) == names
    assert max(os.path.getsize(tmp_path / name) for name in names) <= SMALL
    trail = Trail(str(path))
    found = [int(line) for line in trail.new()]
    trail.close()
    assert found == [*range(found[0], 4000)] and len(found) >= keep * (SMALL // 99)


def test_half_a_line_that_a_crash_left_is_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "a", b'{"time": "2026')
    told = Told(tmp_path / "a")
    told.record("t")
    assert told.recorder.close(DEADLINE)
    first, second = read(path).splitlines()
    assert first == b'{"time": "2026' and json.loads(second)["tool"] == "t"


def test_a_line_that_comes_while_another_gateway_rotates(tmp_path: Path) -> None:
    seam = Seam()
    path = tmp_path / "a"
    one = Log(Place(str(path), SMALL, 2), seam)
    two = Log(Place(str(path), SMALL, 2))
    assert two.append([LINE]) == 1  # has it open

    def meanwhile() -> None:
        started.set()
        two.append([b"two\n"])

    started = threading.Event()
    other = threading.Thread(target=meanwhile)

    def begin() -> None:
        other.start()
        assert started.wait(DEADLINE)

    seam.at("rotating", begin)
    one.append([LINE] * 700)
    other.join(DEADLINE)
    one.close()
    two.close()
    trail = Trail(str(path))
    lines = [*trail.new()]
    trail.close()
    assert lines.count(LINE) == 701 and lines.count(b"two\n") == 1
    assert os.path.exists(f"{path}.1") and not os.path.exists(f"{path}.2")


# Faults: nothing blocks, nothing fails, each trouble is told once

TROUBLES = [
    ("directory", "Is a directory"),
    ("fifo", "it is no regular file"),
    ("link", "Too many levels of symbolic links"),
    ("dangling", "Too many levels of symbolic links"),
    ("parent", "Not a directory"),
    ("long", "File name too long"),
]


@pytest.mark.parametrize(("what", "why"), TROUBLES)
def test_what_is_no_file_is_told_once_and_fails_no_call(
    tmp_path: Path, what: str, why: str
) -> None:
    path = tmp_path / "state/audit.jsonl"
    path.parent.mkdir()
    other = write(tmp_path / "other", "precious")
    if what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what in ("link", "dangling"):
        path.symlink_to(other if what == "link" else tmp_path / "none")
    elif what == "parent":
        path = Path(other) / "audit.jsonl"
    else:
        path = path.with_name("x" * 300)
    place = Recorded(tmp_path, str(path))
    session = place.open()
    for _ in range(3):
        result = place.call(session, "write_file", file_path="t.txt", content="x")
        assert not result["isError"]
    place.gateway.close()
    first, *others = place.troubles
    assert why in first and "calls go on" in first and str(tmp_path) not in first
    assert others == ["the record: lines of it are lost at the end"]
    assert read(other) == b"precious" and not (tmp_path / "none").exists()


UNPRIVILEGED = """
import os, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from unit.test_audit_files import Told
told = Told(Path(sys.argv[1]))
if os.getuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
told.record("a", "b")
assert not told.recorder.close(10)
print(told.told)
"""


def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir(mode=0o555)
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(directory / "a"), tests],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Permission denied") == 1 and os.listdir(directory) == []


FULL = """
import resource, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from unit.test_audit_files import Told
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
told = Told(Path(sys.argv[1]), room=50)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
while told.recorder._lost < 20 or not told.told:
    told.record("t")
assert len(told.told) == 1, told.told
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
told.flush()
told.record("last")
assert told.recorder.close(20)
assert len(told.told) == 1, told.told
"""


def test_a_full_disk_is_told_once_and_what_is_lost_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", FULL, str(path), tests]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr
    found = all_tools(path)  # none is torn
    assert found[-1] == "last" and sum(each for each in found if type(each) is int) >= 20
    before = found.index(next(each for each in found if type(each) is int))
    assert found[:before] == ["t"] * before and before >= 50


def test_a_disk_that_does_not_answer_holds_nobody_up(tmp_path: Path) -> None:
    stuck, let_go = threading.Event(), threading.Event()

    def seam(moment: str) -> None:
        stuck.set()
        let_go.wait(DEADLINE)

    told = Told(tmp_path / "a", seam=seam, room=10)
    told.record("first")
    assert stuck.wait(DEADLINE)
    told.record(*["t"] * 1000)  # returns, or the test times out
    assert not told.recorder.flush(0) and not told.recorder.close(0.05)
    assert told.told == ["the record: lines of it are lost at the end"]
    let_go.set()
    told.flush()
    assert all_tools(told.path) == ["first", *["t"] * 10, 990]


class Failing(Log):
    """A disk that takes nothing at the first and the third time; the first time it thinks long."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.times = 0
        self.thinking, self.go_on = threading.Event(), threading.Event()

    def append(self, lines: list[bytes]) -> int:
        self.times += 1
        if self.times == 1:
            self.thinking.set()
            self.go_on.wait(DEADLINE)
        if self.times in (1, 3):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().append(lines)


def test_lost_ones_are_told_between_those_before_and_after(tmp_path: Path) -> None:
    disk = Failing(Place(str(tmp_path / "a"), SMALL, 1))
    told = Told(tmp_path / "a")
    told.recorder = Recorder(disk, told.told.append, room=2, retry=0.01)
    told.record("a")
    assert disk.thinking.wait(DEADLINE)
    told.record("b", "c", "d")  # there is no room for the last
    disk.go_on.set()
    told.flush()
    told.record("e")
    assert told.recorder.close(DEADLINE) and len(told.told) == 1
    assert all_tools(told.path) == ["a", "b", "c", 1, "e"]


def test_a_file_that_somebody_removes_begins_anew_and_that_is_told_once(tmp_path: Path) -> None:
    told = Told(tmp_path / "d/e/a")
    for number, gone in enumerate(("d/e/a", "d/e/a", "d/e")):
        told.record(f"t{number}")
        told.flush()
        if os.path.isdir(tmp_path / gone):
            os.unlink(told.path)
            os.rmdir(tmp_path / gone)
        else:
            os.unlink(tmp_path / gone)
    told.record("last")
    assert told.recorder.close(DEADLINE)
    assert all_tools(told.path) == ["last"]
    assert told.told == ["the record: somebody removed it; it begins anew"]


def test_a_file_that_another_program_rotates_is_left_to_it(tmp_path: Path) -> None:
    told = Told(tmp_path / "a")
    told.record("one")
    told.flush()
    os.rename(told.path, f"{told.path}.1")
    told.record("two")
    assert told.recorder.close(DEADLINE) and told.told == []
    assert all_tools(told.path) == ["one", "two"] and read(told.path).count(b"\n") == 1


def test_a_lock_that_somebody_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_TRIES", 2)
    told = Told(tmp_path / "a")
    told.record("one")
    told.flush()
    descriptor = os.open(told.path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    told.record("two")
    with pytest.raises(BlockingIOError):
        Log(Place(told.path, SMALL, 1)).append([LINE])
    os.close(descriptor)
    assert told.recorder.close(DEADLINE)
    assert all_tools(told.path) == ["one", "two"]
    assert all("keeps it locked" in each for each in told.told)


# Reading


def rotate(path: Path) -> None:
    for number in range(5, 0, -1):
        if os.path.exists(f"{path}.{number}"):
            os.rename(f"{path}.{number}", f"{path}.{number + 1}")
    os.rename(path, f"{path}.1")


def add(path: Path, *lines: bytes) -> None:
    with open(path, "ab") as file:
        file.write(b"".join(lines))


@pytest.fixture
def trail(tmp_path: Path) -> Iterator[Trail]:
    found = Trail(str(tmp_path / "a"))
    yield found
    found.close()


def test_what_is_added_comes_once_through_any_rotation(tmp_path: Path, trail: Trail) -> None:
    path = tmp_path / "a"
    add(path, b"1\n")
    rotate(path)
    add(path, b"2\n", b"3")
    assert [*trail.new()] == [b"1\n", b"2\n"] and [*trail.new()] == []
    add(path, b"3\n")
    assert [*trail.new()] == [b"33\n"]
    add(path, b"4\n")
    rotate(path)
    assert [*trail.new()] == [b"4\n"]  # and there is no live file just now
    assert [*trail.new()] == []
    for number in range(5, 8):  # several rotations between two looks
        add(path, b"%d\n" % number)
        rotate(path)
    add(path, b"8\n")
    assert [*trail.new()] == [b"5\n", b"6\n", b"7\n", b"8\n"]
    os.truncate(path, 0)
    assert [*trail.new()] == []
    add(path, b"9\n")
    assert [*trail.new()] == [b"9\n"]


def test_a_file_that_was_removed_is_followed_by_the_next(tmp_path: Path, trail: Trail) -> None:
    path = tmp_path / "a"
    add(path, b"old\n")
    rotate(path)
    add(path, b"1\n")
    assert [*trail.new()] == [b"old\n", b"1\n"]
    os.unlink(path)
    assert [*trail.new()] == []
    add(path, b"2\n")
    later = os.stat(f"{path}.1").st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    assert [*trail.new()] == [b"2\n"] and [*trail.new()] == []


def test_a_file_that_ends_in_half_a_line(tmp_path: Path, trail: Trail) -> None:
    path = tmp_path / "a"
    add(path, b"1\n", b"half")
    rotate(path)
    add(path, b"2\n", b"end")
    assert [*trail.new()] == [b"1\n", b"half", b"2\n"]
    assert [*trail.rest()] == [b"end"] and [*trail.rest()] == []


def test_a_line_without_end_takes_bounded_memory(tmp_path: Path, trail: Trail) -> None:
    path = tmp_path / "a"
    add(path, b"x" * 5_000_000, b"\n", b"2\n")
    long, short = trail.new()
    assert len(long) < 1_100_000 and short == b"2\n"


@pytest.mark.parametrize("what", ["nothing", "directory", "fifo"])
def test_what_cannot_be_read(tmp_path: Path, trail: Trail, what: str) -> None:
    if what == "directory":
        (tmp_path / "a").mkdir()
    elif what == "fifo":
        os.mkfifo(tmp_path / "a")
    with pytest.raises(OSError):
        next(trail.new())


def test_a_lost_line_counts_as_a_record(tmp_path: Path) -> None:
    add(tmp_path / "a", lost_line(3))
    assert all_tools(tmp_path / "a") == [3]
