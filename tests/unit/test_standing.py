"""What is remembered of a path is what a fresh look would find, whatever happened in between."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinfold.paths import linux
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.opened import Opened, identity
from pinfold.paths.standing import MOST, Standing
from pinfold.paths.walk import glance
from support import Embedded, remove, write

NAMES = ("a", "b", "c")
PATHS = ("a", "a/b", "a/b/c", "b/c", "b", "c/a/b", "c")
CHANGES = st.tuples(
    st.sampled_from(["mkdir", "write", "link", "remove", "move", "swap"]),
    st.sampled_from(PATHS),
    st.sampled_from(PATHS),
)


def change(base: Path, kind: str, path: str, other: str) -> None:
    """One of the things that other processes do; what cannot be done is not."""
    here, there = base / path, base / other
    try:
        if kind == "mkdir":
            here.mkdir(parents=True)
        elif kind == "write":
            here.write_text("x")
        elif kind == "link":
            here.symlink_to(there)
        elif kind == "remove":
            remove(str(here))
        elif kind == "move":
            here.rename(there)
        else:
            here.rename(base / "aside")
            there.rename(here)
            (base / "aside").rename(there)
    except OSError:
        pass


def awake() -> Standing:
    standing = Standing()
    standing.wake()
    return standing


def look(standing: Standing, path: str, *, cached: bool = False) -> Opened:
    """As a root is looked at."""
    opened = standing.again(path, cached=cached)
    if opened is None:
        opened = glance(path, cached=cached)
        standing.keep(path, opened)
    return opened


def told(opened: Opened) -> tuple[object, ...]:
    with opened:
        status = None if opened.status is None else identity(opened.status)
        parent = opened.parent_identity if opened.missing else None
        return opened.real, opened.missing, status, parent, opened.problem, opened.literal


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.booleans()), max_size=12))
def test_it_tells_what_a_fresh_look_tells(steps: list[tuple[tuple[str, str, str], bool]]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary).resolve()
        standing = awake()
        for (kind, path, other), looked in steps:
            if looked:
                for each in PATHS:
                    look(standing, f"{base}/{each}").close()
            change(base, kind, path, other)
            for each in PATHS:
                wanted = told(glance(f"{base}/{each}"))
                assert told(look(standing, f"{base}/{each}")) == wanted, (kind, path, other, each)
                standing.arrived()
                try:
                    assert told(look(standing, f"{base}/{each}", cached=True)) == wanted
                except WouldBlock:
                    pass


def test_reads_that_came_together_share_a_look_and_later_ones_do_not(tmp_path: Path) -> None:
    """A request may be answered by what was seen after it came, never by what was seen before."""
    base, standing = tmp_path.resolve(), awake()
    root = f"{base}/root"
    (base / "root").mkdir()
    there = told(look(standing, root))
    standing.arrived()
    assert told(look(standing, root, cached=True)) == there
    (base / "root").rename(base / "away")
    assert told(look(standing, root, cached=True)) == there  # it was there when both had come
    gone = told(look(standing, root))  # whoever may wait looks for himself
    assert gone[1] == ("root",)
    (base / "away").rename(root)
    standing.arrived()
    assert told(look(standing, root)) == there
    assert told(look(standing, root, cached=True)) == there


def test_a_place_that_is_renamed_and_reached_by_a_link_has_its_new_name(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    (base / "x").mkdir()
    (base / "root").symlink_to("x")
    standing = awake()
    assert told(look(standing, f"{base}/root"))[0] == f"{base}/x"
    (base / "x").rename(base / "y")
    remove(f"{base}/root")
    (base / "root").symlink_to("y")
    assert told(look(standing, f"{base}/root"))[0] == f"{base}/y"


def test_what_is_mounted_over_a_place_is_seen(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    (base / "root").mkdir()
    (base / "same").mkdir()
    if subprocess.run(
        ["mount", "--bind", base / "root", base / "root"], capture_output=True
    ).returncode:
        pytest.skip("mounting is not permitted here")
    standing = awake()
    try:
        before = told(look(standing, f"{base}/root"))
        assert before == told(glance(f"{base}/root"))
        subprocess.run(["mount", "--bind", base / "same", base / "root"], check=True)
        try:
            assert told(look(standing, f"{base}/root")) == told(glance(f"{base}/root")) != before
        finally:
            standing.rest()  # what is held keeps a volume busy
            subprocess.run(["umount", base / "root"], check=True)
        assert told(look(standing, f"{base}/root")) == before
    finally:
        standing.rest()
        subprocess.run(["umount", base / "root"], check=True)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_descriptors_are_bounded_and_given_back(tmp_path: Path) -> None:
    before, standing = descriptors(), awake()
    for index in range(3 * MOST):
        look(standing, write(tmp_path / f"{index}/root", "x")).close()
        look(standing, f"{tmp_path}/{index}/none/at/all").close()
    assert descriptors() <= before + MOST
    with look(standing, f"{tmp_path}/0/root"), look(standing, f"{tmp_path}/0/root") as again:
        standing.rest()
        assert again.target is not None and os.fstat(again.target)  # somebody is still looking
    del again
    assert descriptors() == before


def test_without_the_kernel_s_help_every_look_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "seat_of", lambda descriptor, cached: None)
    before, standing = descriptors(), awake()
    look(standing, str(tmp_path)).close()
    assert descriptors() == before
    assert told(look(standing, str(tmp_path))) == told(glance(str(tmp_path)))


def test_without_statx_a_dangling_link_still_leads_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.md").symlink_to(tmp_path / "missing.md")
    for statx in (linux._calls().statx, linux._no_statx):
        monkeypatch.setattr(linux._calls(), "statx", statx)
        with glance(f"{tmp_path}/link.md") as opened:
            assert opened.real == f"{tmp_path.resolve()}/missing.md"


def test_a_kernel_that_refuses_to_tell_fails_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = awake()
    look(standing, str(tmp_path)).close()
    monkeypatch.setattr(linux._calls(), "statx", linux._no_statx)
    assert told(look(standing, str(tmp_path))) == told(glance(str(tmp_path)))
    with pytest.raises(WouldBlock):
        look(standing, str(tmp_path), cached=True)


def test_a_gateway_at_rest_holds_nothing(tmp_path: Path) -> None:
    before = descriptors()
    gateway = Embedded(tmp_path)
    session = gateway.open("dream")
    path = write(tmp_path / "project/a", "x")
    gateway.call(session, "read_file", file_path=path)
    assert descriptors() == before
    gateway.gateway.wake()
    gateway.call(session, "read_file", file_path=path)
    assert descriptors() > before
    gateway.gateway.rest()
    assert descriptors() == before
