"""Faults: full disks, read-only mounts, immutable files, killed writers, many writers at once."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pinfold.paths.errors import from_errno
from pinfold.paths.kernel import platform
from support import Embedded, decision, details, kind, read, snapshot, write

ERRNOS = [
    ("ENOENT", "not-found"),
    ("ENOTDIR", "not-found"),
    ("ELOOP", "invalid-path"),
    ("ENAMETOOLONG", "invalid-path"),
    ("EACCES", "permission"),
    ("EPERM", "permission"),
    ("ENOSPC", "no-space"),
    ("EDQUOT", "no-space"),
    ("EROFS", "read-only-filesystem"),
    ("EIO", "io"),
    ("EBUSY", "io"),
    ("EMFILE", "io"),
]


ADVICE = [
    ("EBUSY", "mount point"),
    ("EAGAIN", "nothing to read"),
    ("EIO", "disk may fail"),
    ("EMFILE", "Try again later"),
    ("EINVAL", "Invalid argument (EINVAL). The system cannot do that here"),
]


@pytest.mark.parametrize(("name", "words"), ADVICE)
def test_what_has_no_kind_of_its_own_says_what_is_true(name: str, words: str) -> None:
    message = from_errno(getattr(errno, name), "/f").message
    assert words in message and name in message
    assert ("disk" in message) is (name == "EIO")


@pytest.mark.parametrize(("name", "expected"), ERRNOS)
def test_the_system_s_errors_have_their_kinds(name: str, expected: str) -> None:
    error = from_errno(getattr(errno, name), "/f")
    assert error.kind == expected and error.message.startswith("/f: ")


Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts that go away again; skips where mounting is not permitted."""
    mounted: list[Path] = []

    def attach(name: str, *options: str, file: bool = False) -> Path:
        point = tmp_path / name
        if file:
            point.touch()
        else:
            point.mkdir()
        for step in options:
            done = subprocess.run(
                ["mount", *step.split(), str(point)], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
            if point not in mounted:
                mounted.append(point)
        return point

    yield attach
    for point in reversed(mounted):
        subprocess.run(["umount", "-l", str(point)], check=False, capture_output=True)


def no_debris(directory: Path | str) -> bool:
    return not [path for path in snapshot(directory) if ".pinfold-" in path]


def test_a_full_disk_leaves_the_old_bytes(tmp_path: Path, mount: Mount) -> None:
    disk = mount("disk", "-t tmpfs -o size=256k none")
    place = Embedded(tmp_path)
    session = place.open()
    path = write(disk / "t.md", "old")
    for name in ("t.md", "new.md", "d/e/new.md"):
        result = place.call(
            session, "write_file", file_path=f"{disk}/{name}", content="x" * 1_000_000
        )
        assert kind(result) == "no-space"
    assert read(path) == b"old" and os.listdir(disk) == ["t.md"]
    assert kind(place.call(session, "write_file", file_path=path, content="y" * 100_000)) is None
    # Now there is no room for both the old and the new.
    result = place.call(session, "write_file", file_path=path, content="z" * 200_000)
    assert kind(result) == "no-space" and read(path) == b"y" * 100_000 and no_debris(disk)


def test_a_disk_without_inodes(tmp_path: Path, mount: Mount) -> None:
    disk = mount("disk", "-t tmpfs -o nr_inodes=4 none")
    place = Embedded(tmp_path)
    session = place.open()
    for name in "ab":
        write(disk / name, "old")
    results = [
        kind(place.call(session, "write_file", file_path=f"{disk}/{name}", content="x"))
        for name in ("c", "d", "e/f/g", "a")
    ]
    assert results[-2:] == ["no-space", "no-space"] and no_debris(disk)
    assert read(disk / "a") == b"old" and not (disk / "e").exists()


def test_a_read_only_mount(tmp_path: Path, mount: Mount) -> None:
    source = tmp_path / "source"
    path = write(source / "t.md", "old")
    fixed = mount("fixed", f"--bind {source}", f"-o remount,ro,bind {source}")
    place = Embedded(tmp_path)
    session = place.open()
    make = {"old_string": "", "new_string": "x"}
    calls: list[tuple[str, str, dict[str, str]]] = [
        *(("write_file", name, {"content": "x"}) for name in ("t.md", "new.md", "d/new.md")),
        *(("edit", name, make) for name in ("new.md", "d/new.md")),
        ("edit", "t.md", {"old_string": "old", "new_string": "x"}),
    ]
    for tool, name, more in calls:
        for dry in (False, True):
            path_there = f"{fixed}/{name}"
            result = place.call(session, tool, file_path=path_there, dry_run=dry, **more)
            assert kind(result) == "read-only-filesystem", (tool, name, dry, result)
    assert kind(place.call(session, "read_file", file_path=f"{fixed}/t.md")) is None
    assert read(path) == b"old" and os.listdir(source) == ["t.md"]


def test_a_file_that_is_a_mount_is_refused_and_whole(tmp_path: Path, mount: Mount) -> None:
    source = write(tmp_path / "source.md", "old")
    target = mount("target.md", f"--bind {source}", file=True)
    place = Embedded(tmp_path)
    result = place.call(place.open(), "write_file", file_path=str(target), content="x")
    assert kind(result) == "io" and read(source) == b"old"
    said = result["content"][0]["text"]
    assert "mount point" in said and "EBUSY" in said and "disk" not in said
    assert no_debris(tmp_path)


@pytest.mark.parametrize("bound", ["memory", "memory/pinned"])
def test_a_bind_mount_of_pinned_is_pinned_by_identity(
    tmp_path: Path, mount: Mount, bound: str
) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    curated = write(f"{memory}/pinned/rules.md", "curated")
    below = "pinned/" if bound == "memory" else ""
    point = mount("elsewhere", f"--bind {memory}{bound.removeprefix('memory')}")
    session = place.open("main", scope={"protectPinned": True})
    for name in (f"{below}rules.md", f"{below}new.md", f"{below}a/b.md"):
        result = place.call(session, "write_file", file_path=f"{point}/{name}", content="mine")
        assert (kind(result), decision(result)["match"]) == ("denied", "identity"), name
    assert read(curated) == b"curated" and os.listdir(f"{memory}/pinned") == ["rules.md"]


def test_a_read_through_a_mount_of_what_is_pinned_is_tagged_so(
    tmp_path: Path, mount: Mount
) -> None:
    """By its name it is ordinary memory; a host that keeps pinned documents must keep this one."""
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/pinned/rules.md", "curated")
    write(f"{memory}/topic.md", "ordinary")
    point = mount(os.path.relpath(f"{memory}/again", tmp_path), f"--bind {memory}/pinned")
    session = place.open("dream")
    for path, pinned in ((f"{point}/rules.md", True), (f"{memory}/topic.md", False)):
        result = place.call(session, "read_file", file_path=path)
        tag = result["_meta"]["pinfold/retention"]
        assert (tag["path"], tag["pinned"]) == (path, pinned)


@pytest.mark.parametrize("immutable", ["file", "directory"])
def test_what_is_immutable_stays(tmp_path: Path, immutable: str) -> None:
    place = Embedded(tmp_path)
    session = place.open()
    path = write(place.project / "d/t.md", "old")
    fixed = path if immutable == "file" else os.path.dirname(path)
    done = subprocess.run(["chattr", "+i", fixed], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"chattr is not to be had here: {done.stderr.strip()}")
    try:
        assert kind(place.call(session, "write_file", file_path=path, content="x")) == "permission"
        edit = {"old_string": "old", "new_string": "new"}
        assert kind(place.call(session, "edit", file_path=path, **edit)) == "permission"
        new = place.call(session, "write_file", file_path=f"{path}.new", content="x")
        assert kind(new) == (None if immutable == "file" else "permission")
        assert read(path) == b"old" and no_debris(place.project)
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)


@pytest.mark.parametrize("nameless", [True, False])
def test_an_append_only_directory_keeps_no_temporary(
    tmp_path: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What gets a name there keeps it, so nothing that is to be exchanged may get one."""
    place = Embedded(tmp_path)
    session = place.open()
    path = write(place.project / "d/t.md", "old")
    directory = os.path.dirname(path)
    if not nameless:

        def none(directory: int, mode: int) -> int:
            raise OSError(errno.EOPNOTSUPP, "no nameless files here")

        monkeypatch.setattr(platform, "open_nameless", none)
    done = subprocess.run(["chattr", "+a", directory], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"chattr is not to be had here: {done.stderr.strip()}")
    try:
        for content in ("a", "b"):
            told = place.call(session, "write_file", file_path=path, content=content)
            assert kind(told) == "permission" and "append-only" in told["content"][0]["text"]
        edit = {"old_string": "old", "new_string": "new"}
        assert kind(place.call(session, "edit", file_path=path, **edit)) == "permission"
        new = place.call(session, "write_file", file_path=f"{directory}/new.md", content="x")
        assert kind(new) == (None if nameless else "permission")
        assert sorted(os.listdir(directory)) == (["new.md", "t.md"] if nameless else ["t.md"])
        assert read(path) == b"old"
    finally:
        subprocess.run(["chattr", "-a", directory], check=True)
    assert kind(place.call(session, "write_file", file_path=path, content="x")) is None


WRITER = """
import sys; sys.path[:0] = sys.argv[2:]
from pathlib import Path
from support import Embedded, decision, kind
place = Embedded(Path(sys.argv[1])); session = place.open("dream")
texts = ("a" * 6_000_000 + "\\n", "b" * 6_000_000 + "\\n")
for n in range(10_000):
    print(n, flush=True)
    result = place.call(session, "write_file", file_path=place.memory + "/t.md", content=texts[n % 2])
    assert kind(result) is None, result["content"]
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_c137_a_killed_writer_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Killed at any moment of one of its first writes."""
    place = Embedded(tmp_path)
    memory = place.memory
    path = write(f"{memory}/t.md", "a" * 6_000_000 + "\n")
    random.seed(7)
    seen = set()
    for round_ in range(25):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parents[1])]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for number in range(2 + round_ % 4):
                began = time.monotonic()
                assert writer.stdout.readline() == b"%d\n" % number
            time.sleep(random.uniform(0, time.monotonic() - began))  # as long as one takes
            writer.send_signal(signal.SIGKILL)
        data = read(path)
        assert len(data) == 6_000_001 and len(set(data[:-1])) == 1
        seen.add(data[:1])
    assert seen == {b"a", b"b"}
    # The next gateway's first write removes what was left.
    session = place.open("dream")
    assert (
        kind(place.call(session, "write_file", file_path=f"{memory}/other.md", content="x")) is None
    )
    assert sorted(os.listdir(memory)) == ["other.md", "t.md"]


@pytest.mark.slow
def test_twenty_parallel_edits_from_four_sessions_are_all_there(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    sessions = [place.open(profile) for profile in ("main", "dream", "extraction", "remember")]
    os.symlink("t.md", f"{memory}/alias.md")
    with ThreadPoolExecutor(20) as pool:
        for _ in range(100):
            write(f"{memory}/t.md", "".join(f"[{n}]\n" for n in range(20)))

            def edit(n: int) -> str | None:
                path = f"{memory}/{'alias.md' if n % 5 == 0 else 't.md'}"
                change = {"old_string": f"[{n}]", "new_string": f"<{n}>"}
                return kind(place.call(sessions[n % 4], "edit", file_path=path, **change))

            assert list(pool.map(edit, range(20))) == [None] * 20
            assert read(f"{memory}/t.md") == "".join(f"<{n}>\n" for n in range(20)).encode()


@pytest.mark.slow
def test_readers_never_see_half_a_write(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    session = place.open()
    path = write(place.project / "f.txt", "a" * 300_000)
    torn: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            data = read(path)
            if len(data) != 300_000 or len(set(data)) != 1:
                torn.append(data[:10])

    reader = threading.Thread(target=look)
    reader.start()
    for n in range(40):
        result = place.call(session, "write_file", file_path=path, content="ab"[n % 2] * 300_000)
        assert kind(result) is None and (n == 0 or details(result)["changed"] or n % 2 == 0)
    done.set()
    reader.join()
    assert torn == []
