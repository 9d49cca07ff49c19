"""A read that is answered in place never waits for a file system that is not of this machine."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinfold.app import Gateway
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.standing import Standing
from pinfold.paths.walk import glance
from pinfold_protocol.session import SessionResult
from pinfold_protocol.tools import ToolResult, ToolsCallParams
from support import Embedded, kind, write

ELSEWHERE = "-t devpts -o newinstance none"
"""As FUSE: none of the local ones, and its device has a number that is given out again."""
HERE = "-t tmpfs none"


@contextmanager
def mounted(what: str, point: Path) -> Iterator[Path]:
    done = subprocess.run(
        ["mount", *what.split(), str(point)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


def is_local(path: Path) -> bool:
    try:
        glance(str(path), cached=True).close()
    except WouldBlock:
        return False
    return True


def in_place(gateway: Gateway, session: SessionResult, path: str) -> ToolResult:
    """A read of what the kernel has in its caches by now."""
    params = ToolsCallParams(session.session_id, "read_file", {"file_path": path})
    gateway.call(params)
    return gateway.call(params, cached=True)


def test_a_number_that_is_given_out_again_says_nothing(tmp_path: Path) -> None:
    point = tmp_path.resolve()
    with mounted(HERE, point):
        device = os.stat(point).st_dev
        assert is_local(point)
    with mounted(ELSEWHERE, point):
        again = os.stat(point).st_dev
        assert not is_local(point)
    with mounted(HERE, point):
        assert is_local(point)
    if again != device:
        pytest.skip("another device had the number; nothing was wrong, and nothing was shown")


def test_however_often_the_mount_table_changes_new_mounts_are_known(tmp_path: Path) -> None:
    point = tmp_path.resolve()
    for _ in range(70):
        with mounted(HERE, point):
            assert is_local(point)


def test_what_is_mounted_over_a_place_that_is_held_is_noticed(tmp_path: Path) -> None:
    point, standing = tmp_path.resolve(), Standing()
    standing.wake()
    try:
        with glance(str(point)) as opened:
            standing.keep(str(point), opened)
        assert standing.again(str(point), cached=True) is not None
        with mounted(ELSEWHERE, point):
            assert standing.again(str(point), cached=True) is None
            assert not is_local(point)
    finally:
        standing.rest()  # what is held keeps a volume busy


def test_nor_for_what_is_mounted_on_pinned(tmp_path: Path) -> None:
    place = Embedded(tmp_path.resolve())
    session = place.open("dream")
    path = write(f"{place.memory}/a.md", "x")
    pinned = Path(place.memory) / "pinned"
    pinned.mkdir()
    assert not in_place(place.gateway, session, path).is_error
    with mounted(ELSEWHERE, pinned), pytest.raises(WouldBlock):
        in_place(place.gateway, session, path)
    assert not in_place(place.gateway, session, path).is_error


def test_without_the_mount_table_nothing_is_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError

    monkeypatch.setattr(platform, "_mounts", fail)
    assert not is_local(tmp_path.resolve())


def test_a_confined_read_in_place_follows_no_link_to_a_sibling(tmp_path: Path) -> None:
    """Looking at the link could wait; without one nothing more is looked at."""
    place = Embedded(tmp_path.resolve())
    session = place.open("remember")
    path = write(f"{place.memory}/a.md", "x")
    assert not in_place(place.gateway, session, path).is_error
    key = Path(place.memory).parent
    key.rename(key.parent / "sibling")
    key.symlink_to("sibling")
    with pytest.raises(WouldBlock):
        in_place(place.gateway, session, path)
    assert kind(place.call(session, "read_file", file_path=path)) is None
