"""A look that fails for want of descriptors or memory, or by a disk, is an error: never a decision,
nor a tag that says less than it should."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pinfold.paths import linux
from pinfold_protocol.session import SessionResult
from support import Embedded, decision, kind, write

NUMBERS = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO]
LOOKS = ("open_root", "open_entry", "open_resolved", "reopen", "name_of")


class Place:
    """A project with memory; `pinned` of the user root is a link to a directory inside of it."""

    def __init__(self, base: Path) -> None:
        self.embedded = Embedded(base)
        memory = self.embedded.memory
        user = f"{base}/memory/memories"
        self.pinned = [
            write(f"{memory}/pinned/a.md", "a"),
            write(f"{user}/kept/b.md", "b"),
            f"{base}/project/alias/a.md",
        ]
        os.symlink("kept", f"{user}/pinned")
        os.symlink(f"{memory}/pinned", f"{base}/project/alias")
        self.plain = [write(f"{memory}/c.md", "c"), write(f"{user}/d/e.md", "e")]
        self.sessions = {name: self.embedded.open(name) for name in ("main", "dream", "remember")}

    def read(self, session: SessionResult, tool: str, path: str) -> str:
        """What a read says of its file: its kind of failure, or what its tag says."""
        result = self.embedded.call(session, tool, file_path=path)
        if result["isError"]:
            assert kind(result) != "denied", decision(result)
            return str(kind(result))
        tag = result["_meta"].get("pinfold/retention")
        return "no tag" if tag is None else f"pinned: {tag['pinned']}"

    def reads(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Each read, and what it says where nothing fails."""
        for name, session in self.sessions.items():
            for tool in ("read_file", "read_memory"):
                for path in (*self.pinned, *self.plain):
                    if name != "remember" or path != self.pinned[2] or tool == "read_memory":
                        wanted = f"pinned: {path in self.pinned}"
                        yield wanted, partial(self.read, session, tool, path)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@contextmanager
def failing(
    monkeypatch: pytest.MonkeyPatch, number: int, turn: int, for_good: bool
) -> Iterator[list[int]]:
    """The look of this turn fails, and all after it if `for_good`. Gives how many there were."""
    count = [0]

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def look(*arguments: Any) -> Any:
            count[0] += 1
            if count[0] == turn or (for_good and count[0] > turn):
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        return look

    with monkeypatch.context() as patch:
        for each in LOOKS:
            patch.setattr(linux, each, wrapped(getattr(linux, each)))
        yield count


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_whichever_look_fails_a_read_says_so_or_all_of_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int, for_good: bool
) -> None:
    failed = 0
    for wanted, read in place.reads():
        assert read() == wanted
        turn, count = 0, [1]
        while turn < count[0]:
            turn += 1
            with failing(monkeypatch, number, turn, for_good) as count:
                found = read()
            assert found in (wanted, "io"), turn
            failed += found == "io"
    assert failed > 20


def test_with_few_descriptors_a_read_says_so_or_all_of_it(place: Place) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found: set[str] = set()
    used = max(map(int, os.listdir("/proc/self/fd"))) + 1
    free = [os.dup(0)]  # the numbers that are free below count as well
    while free[-1] < used:
        free.append(os.dup(0))
    try:
        for wanted, read in place.reads():
            for left in range(14):
                resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1] + 1 + left, hard))
                try:
                    said = read()
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert said in (wanted, "io"), left
                found.add(said)
    finally:
        for each in free:
            os.close(each)
    assert found == {"io", "pinned: True", "pinned: False"}


def test_a_reserved_directory_that_cannot_be_seen_hides_no_other(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one root's pinned/ is may be a secret: that of the others is told, and its own name."""
    real = linux.open_entry

    def look(directory: int, name: bytes) -> int:
        if name == b"pinned" and b"/projects/" in linux.name_of(directory):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(directory, name)

    monkeypatch.setattr(linux, "open_entry", look)
    for session in place.sessions.values():
        for path in place.pinned[:2]:
            assert place.read(session, "read_memory", path) == "pinned: True"
        for path in place.plain:
            assert place.read(session, "read_memory", path) == "pinned: False"
