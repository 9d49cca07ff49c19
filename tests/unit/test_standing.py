"""What is remembered of a path is what a fresh look would find, whatever happened in between."""

import gc
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinfold.app import Gateway
from pinfold.paths import linux
from pinfold.paths.errors import WouldBlock
from pinfold.paths.kernel import platform
from pinfold.paths.opened import Opened, identity
from pinfold.paths.standing import MOST, Standing
from pinfold.paths.walk import glance
from pinfold.session import Session
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.session import SessionOpenParams
from pinfold_protocol.tools import ToolsCallParams
from support import Embedded, kind, remove, write

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
                try:
                    if standing.is_plain(f"{base}/{each}"):
                        assert wanted[0] == f"{base}/{each}"
                    assert told(look(standing, f"{base}/{each}", cached=True)) == wanted
                except WouldBlock:
                    pass


MOVES = ("root to A", "root to B", "x to A", "x to B", "x out", "y to B", "A and B change places")


class Place:
    """A root that is a link to A or to B, and files that are moved."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def lay(self, moves: Iterable[str]) -> None:
        """The same place from the start, and what is moved in it."""
        remove(str(self.base))
        for each in ("A/pinned", "B", "out", "project"):
            (self.base / each).mkdir(parents=True)
        (self.base / "A/x").write_text("x")
        (self.base / "out/y").write_text("y")
        (self.base / "root").symlink_to("A")
        for move in moves:
            self.move(move)

    def move(self, name: str) -> None:
        """One step of another process, in one system call; nothing where it cannot be done."""
        what, _, where = name.partition(" to ")
        if name == "A and B change places":
            directory = os.open(self.base, os.O_PATH)
            linux.exchange(directory, b"A", b"B")
            os.close(directory)
        elif what == "root":
            (self.base / "new").symlink_to(where)
            (self.base / "new").rename(self.base / "root")
        else:
            what, where = what.partition(" ")[0], where or "out"
            for each in ("A", "B", "out"):
                if (self.base / each / what).exists():
                    (self.base / each / what).rename(self.base / where / what)
                    return

    def open(self, profile: str) -> tuple[Gateway, Session]:
        gateway = Gateway({"HOME": str(self.base)})
        memory = {"projectRoot": f"{self.base}/root", "userRoot": f"{self.base}/none"}
        raw = {"profile": profile, "projectRoot": f"{self.base}/project", "memory": memory}
        session = gateway.open_session(structure(raw, SessionOpenParams))
        return gateway, gateway.sessions.get(session.session_id)


def outcome(
    gateway: Gateway, session: Session, tool: str, path: str, *, cached: bool = True
) -> tuple[object, ...]:
    """What a read says, in place if it can be and `cached`."""
    params = ToolsCallParams(session.session_id, tool, {"file_path": path})
    try:
        result = unstructure(gateway.call(params, cached=cached))
    except WouldBlock:
        result = unstructure(gateway.call(params))
    meta = result["_meta"]
    tag, decided = meta.get("pinfold/retention"), meta["pinfold/decision"]
    text = None if result["isError"] else result["content"][0]["text"]
    return kind(result), text, decided and decided["root"], tag and (tag["scope"], tag["path"])


SEEN = ("open_root", "open_entry", "open_resolved", "reopen", "name_of", "seat_at", "seat_of",
        "is_plain", "is_there", "read_cached", "link_text")  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.sampled_from(MOVES), max_size=2),
    st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 14)), max_size=2),
    st.sampled_from(["main", "remember"]),
    st.sampled_from(["read_file", "read_memory"]),
    st.sampled_from(["A/x", "B/x", "root/x", "out/x", "B/y", "root/y"]),
)
def test_each_outcome_is_that_of_a_moment(
    before: list[str], during: list[tuple[str, int]], profile: str, tool: str, name: str
) -> None:
    """A gateway that remembers, and others that move things between its system calls: what a read
    says of its file is what one says that is alone, before or after one of the moves, by one of the
    names of that file. Only a tag may be left out where the file was moved."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Place(Path(temporary).resolve() / "place")
        path = f"{place.base}/{name}"
        during = sorted(during, key=lambda each: each[1])
        states = [[*before, *(move for move, _ in during[:n])] for n in range(len(during) + 1)]
        names = {path}
        for state in states:
            place.lay(state)
            names.add(os.path.realpath(path))
        allowed, where = [], set()
        for state in states:
            place.lay(state)
            same = {f"{place.base}/{each}/{path[-1]}" for each in ("A", "B", "out")}
            for other in names | same:
                told = outcome(*place.open(profile), tool, other)
                # A directory may be opened, and then get another name: what is missing in it, too.
                if other in names or told[0] == "not-found" or os.path.exists(other):
                    allowed.append(told)
                where |= {os.path.realpath(other)} if os.path.exists(other) else set()
        place.lay(before)
        gateway, session = place.open(profile)
        gateway.wake()
        outcome(gateway, session, tool, path)
        found = _with_moves(place, during, lambda: outcome(gateway, session, tool, path))
        gateway.rest()
        if found[3] is None and len(where) > 1:
            allowed = [(*each[:3], None) for each in allowed]
        assert found in allowed


def _with_moves(
    place: Place, moves: list[tuple[str, int]], work: Callable[[], tuple[object, ...]]
) -> tuple[object, ...]:
    """Work, and before its system call of each number a move."""
    left, count = list(moves), 0

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            while left and left[0][1] <= count:
                place.move(left.pop(0)[0])
            count += 1
            return real(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for each in SEEN:
            patch.setattr(linux, each, wrapped(getattr(linux, each)))
        return work()


@pytest.mark.parametrize("cached", [True, False])
def test_a_file_that_leaves_before_its_directory_becomes_memory_was_never_in_it(
    tmp_path: Path, cached: bool
) -> None:
    """Whenever the two happen, together, between two system calls of a read."""
    place = Place(tmp_path.resolve() / "place")
    for turn in range(20):
        place.lay(["root to B"])
        gateway, session = place.open("remember")
        path = f"{place.base}/A/x"
        if cached:
            gateway.wake()
        assert outcome(gateway, session, "read_file", path)[0] == "denied"
        moves = [("x out", turn), ("root to A", turn)]
        read = partial(outcome, gateway, session, "read_file", path, cached=cached)
        assert _with_moves(place, moves, read)[0] in ("denied", "not-found"), turn
        gateway.rest()


def test_a_file_that_comes_when_the_root_has_gone_is_outside(tmp_path: Path) -> None:
    """However many reads came together: what one saw of the roots is no answer to another."""
    place = Place(tmp_path.resolve() / "place")
    place.lay(())
    gateway, session = place.open("remember")
    gateway.wake()
    try:
        for _ in range(3):
            told = outcome(gateway, session, "read_file", f"{place.base}/A/x")
            assert told == (None, "x", "project", ("project", f"{place.base}/A/x"))
        place.move("root to B")
        (place.base / "A/secret").write_text("secret")
        (place.base / "B/here").write_text("here")
        told = outcome(gateway, session, "read_file", f"{place.base}/A/secret")
        assert told == ("denied", None, None, None)
        told = outcome(gateway, session, "read_file", f"{place.base}/root/here")
        assert told == (None, "here", "project", ("project", f"{place.base}/B/here"))
    finally:
        gateway.rest()


def test_a_file_that_keeps_moving_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path.resolve() / "place")
    place.lay(())
    gateway, session = place.open("remember")
    monkeypatch.setattr(Opened, "stands", lambda self: False)
    told = outcome(gateway, session, "read_file", f"{place.base}/A/x")
    assert told == ("changed-underfoot", None, None, None)
    gateway, session = place.open("main")
    assert outcome(gateway, session, "read_file", f"{place.base}/A/x")[0] is None


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
    gc.collect()  # what other tests left would be given back in the middle of one that counts
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
