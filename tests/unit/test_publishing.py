"""How a change is published: modes, temporaries, and what happens between two system calls."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pinfold.calls import Cancelled, Ticket
from pinfold.paths import linux
from pinfold_protocol.session import ScopePatch
from pinfold_protocol.tools import ToolsCallParams
from support import Bench, Embedded, decision, kind, read, snapshot, write

PATCH = ScopePatch(protect_pinned=True, given=("protectPinned",))

MOMENTS = ("opened", "written", "decided", "exchanged")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444, 0o4755, 0o2750])
def test_permission_bits_are_kept_and_nothing_more(bench: Bench, mode: int) -> None:
    path = write(f"{bench.memory}/t.md", "old")
    os.chmod(path, mode)
    modes: list[int] = []
    bench.seam.at("exchanged", lambda: modes.append(os.stat(path).st_mode & 0o7777))
    assert kind(bench.write(path)) is None
    assert modes == [os.stat(path).st_mode & 0o7777] == [mode & 0o777]  # from its first moment on
    assert sorted(os.listdir(bench.memory)) == ["pinned", "t.md"]


def test_a_new_file_gets_what_the_umask_leaves(bench: Bench) -> None:
    old = os.umask(0o027)
    try:
        assert kind(bench.write(f"{bench.memory}/d/t.md")) is None
    finally:
        os.umask(old)
    assert os.stat(f"{bench.memory}/d/t.md").st_mode & 0o7777 == 0o640
    assert os.stat(f"{bench.memory}/d").st_mode & 0o7777 == 0o750


def test_attributes_and_owner_are_kept(bench: Bench) -> None:
    path = write(f"{bench.memory}/t.md", "old")
    os.chown(path, 12345, 23456)
    os.setxattr(path, "user.note", b"kept")
    assert kind(bench.write(path)) is None
    assert (os.stat(path).st_uid, os.stat(path).st_gid) == (12345, 23456)
    assert os.getxattr(path, "user.note") == b"kept"


def test_c146_other_files_that_look_like_temporaries_are_left_alone(bench: Bench) -> None:
    mine = write(f"{bench.memory}/notes.tmp", "mine")
    odd = write(f"{bench.memory}/.pinfold-short.tmp", "mine")
    linked = write(f"{bench.memory}/.pinfold-0123456789abcdef.tmp", "mine")
    os.link(linked, f"{bench.memory}/second name")
    assert kind(bench.write(f"{bench.memory}/notes.md")) is None
    assert read(mine) == read(odd) == read(linked) == b"mine"


def test_what_a_killed_writer_left_is_removed_by_the_first_write(bench: Bench) -> None:
    left = write(f"{bench.memory}/.pinfold-0123456789abcdef.tmp", "half")
    link = f"{bench.memory}/.pinfold-0123456789abcdee.tmp"
    os.symlink("pinned/p.md", link)
    inside = write(f"{bench.memory}/pinned/.pinfold-0123456789abcdef.tmp", "half")
    assert kind(bench.write(f"{bench.memory}/t.md")) is None
    assert not os.path.exists(left) and os.path.islink(link)
    assert kind(bench.write(f"{bench.memory}/pinned/new.md", session=bench.main)) is None
    assert os.path.exists(inside)  # never in a reserved directory


def swap(path: str, target: str) -> Callable[[], None]:
    """Move a directory away and put a link in its place."""

    def action() -> None:
        os.rename(path, path + ".moved")
        os.symlink(target, path)

    return action


@pytest.mark.parametrize("moment", MOMENTS[:3])
@pytest.mark.parametrize("existing", [True, False])
def test_c115_a_parent_that_is_swapped(bench: Bench, moment: str, existing: bool) -> None:
    target = f"{bench.memory}/d/p.md" if existing else f"{bench.memory}/d/new.md"
    os.makedirs(f"{bench.memory}/d")
    if existing:
        write(target, "old")
    before = snapshot(f"{bench.memory}/pinned")
    bench.seam.at(moment, swap(f"{bench.memory}/d", f"{bench.memory}/pinned"))
    result = bench.write(target)
    # At the last moment the directory's new name is seen; then it is all done again, and denied.
    assert kind(result) == "denied" and decision(result)["rule"] == "pinned"
    assert snapshot(f"{bench.memory}/pinned") == before
    assert os.listdir(f"{bench.memory}/d.moved") == (["p.md"] if existing else [])
    if existing:
        assert read(f"{bench.memory}/d.moved/p.md") == b"old"


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_directory_itself_is_moved_into_pinned(bench: Bench, moment: str) -> None:
    target = write(f"{bench.memory}/d/t.md", "old")
    moved = f"{bench.memory}/pinned/d"
    bench.seam.at(moment, lambda: os.rename(f"{bench.memory}/d", moved))
    result = bench.write(target)
    assert read(f"{moved}/t.md") == b"old"  # whatever was exchanged was exchanged back
    assert os.listdir(moved) == ["t.md"]
    # Afterwards d is missing: it is made anew, as in the order in which the move came first.
    assert kind(result) is None and read(target) == b"new"


@pytest.mark.parametrize("moment", MOMENTS[:3])
@pytest.mark.parametrize("what", ["link", "directory", "fifo", "file", "hard link", "gone"])
def test_c118_something_else_appears_at_the_target(bench: Bench, moment: str, what: str) -> None:
    target = write(f"{bench.memory}/t.md", "old")

    def appear() -> None:
        os.unlink(target)
        if what == "link":
            os.symlink("pinned/p.md", target)
        elif what == "directory":
            os.mkdir(target)
        elif what == "fifo":
            os.mkfifo(target)
        elif what == "file":
            write(target, "theirs")
        elif what == "hard link":
            os.link(bench.pinned, target)

    bench.seam.at(moment, appear)
    result = bench.write(target)
    expected = {
        "link": "denied",
        "directory": "is-directory",
        "fifo": "not-a-regular-file",
        "hard link": "denied",
    }
    assert kind(result) == expected.get(what)
    assert read(bench.pinned) == b"curated"
    if what in ("file", "gone"):
        assert read(target) == b"new"
    assert sorted(os.listdir(bench.memory)) == ["pinned", "t.md"]


@pytest.mark.parametrize("moment", ["opened", "written", "decided", "parents", "linked"])
def test_missing_parents_that_are_moved_away(bench: Bench, moment: str) -> None:
    """The new directory is moved into pinned/ as soon as it is there; nothing stays in it."""
    target = f"{bench.memory}/a/b/t.md"
    moved = f"{bench.memory}/pinned/a"

    def move() -> None:
        if os.path.exists(f"{bench.memory}/a"):
            os.rename(f"{bench.memory}/a", moved)
        else:
            os.symlink("pinned", f"{bench.memory}/a")

    before = snapshot(f"{bench.memory}/pinned")
    bench.seam.at(moment, move)
    result = bench.write(target)
    files = [path for path in snapshot(f"{bench.memory}/pinned") if path.endswith(".md")]
    assert files == [bench.pinned]
    if moment in ("opened", "written", "decided"):
        assert kind(result) == "denied" and snapshot(f"{bench.memory}/pinned") == before
    else:
        assert kind(result) is None and read(target) == b"new"


@pytest.mark.parametrize("moment", ["opened", "written", "decided", "parents"])
def test_a_directory_that_vanishes_is_made_again(bench: Bench, moment: str) -> None:
    target = f"{bench.memory}/d/e/t.md" if moment == "parents" else f"{bench.memory}/d/t.md"
    if moment != "parents":
        os.mkdir(f"{bench.memory}/d")
    bench.seam.at(moment, lambda: shutil.rmtree(f"{bench.memory}/d"))
    assert kind(bench.write(target)) is None and read(target) == b"new"


@pytest.mark.parametrize("noreplace", [True, False])
def test_somebody_s_directory_at_the_target_comes_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, noreplace: bool
) -> None:
    target = write(f"{bench.memory}/t", "old")
    if not noreplace:

        def missing(*_: object) -> None:
            raise OSError(errno.EINVAL, "")

        monkeypatch.setattr(linux, "rename_new", missing)

    def become() -> None:
        os.unlink(target)
        write(f"{target}/keep", "theirs")
        bench.seam.at("exchanged", lambda: os.rename(target, f"{target}.moved"))

    bench.seam.at("decided", become)
    assert kind(bench.write(target)) == "is-directory"
    assert read(f"{target}/keep") == b"theirs" and read(f"{target}.moved") == b"new"
    assert sorted(os.listdir(bench.memory)) == ["pinned", "t", "t.moved"]


def test_a_path_that_is_too_long_leaves_nothing(bench: Bench) -> None:
    here = os.open(bench.project, os.O_RDONLY)
    deep = bench.project
    while len(deep) < 3800:
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here, deep = below, f"{deep}/{'d' * 200}"
    os.close(here)
    os.symlink(deep, f"{bench.project}/ln")
    result = bench.write(f"ln/{'x' * 250}/{'y' * 200}/f.txt", session=bench.main)
    assert result["isError"] and os.listdir(f"{bench.project}/ln") == []


def test_the_scope_in_force_at_the_last_moment_counts(bench: Bench) -> None:
    session = bench.place.open("main")

    def narrow() -> None:
        bench.place.gateway.sessions.get(session.session_id)._overrides["protect_pinned"] = True
        found = bench.place.gateway.sessions.get(session.session_id)
        found.effective = found._compute()

    bench.seam.at("written", narrow)
    result = bench.write(bench.pinned, session=session)
    assert kind(result) == "denied" and decision(result)["source"] == "override"
    assert read(bench.pinned) == b"curated"


def test_configure_answers_when_nothing_wider_is_unpublished(bench: Bench) -> None:
    """Configured while a change is between its last decision and its publication."""
    session = bench.place.open("main")
    found = bench.place.gateway.sessions.get(session.session_id)
    order: list[str] = []

    def narrow() -> None:
        found.configure(PATCH)
        order.append("configured")

    configured = threading.Thread(target=narrow)

    def configure() -> None:
        configured.start()
        configured.join(0.2)
        assert configured.is_alive()
        order.append("published")

    bench.seam.at("decided", configure)
    assert kind(bench.write(bench.pinned, session=session)) is None
    configured.join(10)
    assert order == ["published", "configured"]
    assert kind(bench.write(bench.pinned, "again", session=session)) == "denied"


def test_a_change_that_gives_up_says_what_was_decided(bench: Bench) -> None:
    path = write(f"{bench.memory}/t.md", "old")

    def again() -> None:
        write(path, f"theirs {len(bench.seam.seen)}")
        bench.seam.at("written", again)

    bench.seam.at("written", again)
    result = bench.write(path)
    assert kind(result) == "changed-underfoot" and decision(result)["decision"] == "allow"
    assert read(path).startswith(b"theirs")


def test_c184_cancelled_before_or_done_but_never_both(bench: Bench) -> None:
    params = ToolsCallParams(
        bench.dream.session_id,
        "write_file",
        {"file_path": f"{bench.memory}/t.md", "content": "new"},
    )
    for moment, late in (
        ("opened", False),
        ("written", False),
        ("decided", True),
        ("linked", True),
    ):
        ticket = Ticket()
        answers: list[bool] = []
        bench.seam.at(moment, lambda: answers.append(ticket.cancel()))  # noqa: B023
        if late:
            assert not bench.place.gateway.call(params, ticket).is_error
            assert answers == [False]
            os.unlink(f"{bench.memory}/t.md")
        else:
            with pytest.raises(Cancelled):
                bench.place.gateway.call(params, ticket)
            assert answers == [True] and os.listdir(bench.memory) == ["pinned"]


def test_plain_rename_where_exchange_is_missing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise OSError(errno.EINVAL, "")

    monkeypatch.setattr(linux, "exchange", missing)
    monkeypatch.setattr(linux, "open_nameless", missing)
    path = write(f"{bench.memory}/t.md", "old")
    os.chmod(path, 0o640)
    assert kind(bench.write(path)) is None and read(path) == b"new"
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert kind(bench.write(f"{bench.memory}/d/e/new.md")) is None
    assert read(f"{bench.memory}/d/e/new.md") == b"new"
    bench.seam.at("decided", swap(f"{bench.memory}/d", f"{bench.memory}/pinned"))
    assert kind(bench.write(f"{bench.memory}/d/e/new.md", "newer")) == "denied"
    assert sorted(os.listdir(bench.memory)) == ["d", "d.moved", "pinned", "t.md"]
    assert os.listdir(f"{bench.memory}/d.moved/e") == ["new.md"]


UNPRIVILEGED = """
import json, os, sys
base = sys.argv[1]
sys.path[:0] = sys.argv[3:]
from support import Embedded, kind
from pathlib import Path
place = Embedded(Path(base))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
session = place.open("main")
for name, tool, more in json.loads(sys.argv[2]):
    print(kind(place.call(session, tool, file_path=f"{base}/project/{name}", **more)))
"""


def test_lost_permissions_are_told_and_nothing_is_damaged(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    project = str(place.project)
    os.chmod(project, 0o777)
    write(f"{project}/closed/f.txt", "x")
    os.chmod(f"{project}/closed", 0o700)
    write(f"{project}/fixed/f.txt", "x")
    os.chmod(f"{project}/fixed", 0o755)
    foreign = write(f"{project}/foreign.txt", "x")  # writable, but root's
    os.chmod(foreign, 0o666)
    unreadable = write(f"{project}/unreadable.txt", "x")
    os.chmod(unreadable, 0o600)
    read_only = write(f"{project}/readonly.txt", "x")
    os.chown(read_only, 65534, 65534)
    os.chmod(read_only, 0o444)
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and path != Path("/"):
            os.chmod(path, os.stat(path).st_mode | 0o055)
    new = {"content": "y"}
    asked: list[tuple[str, str, dict[str, str], str]] = [
        ("closed/f.txt", "read_file", {}, "permission"),
        ("closed/f.txt", "write_file", new, "permission"),
        ("closed/new/f.txt", "write_file", new, "permission"),
        ("fixed/f.txt", "read_file", {}, "None"),
        ("fixed/new.txt", "write_file", new, "permission"),
        ("fixed/d/new.txt", "write_file", new, "permission"),
        ("foreign.txt", "write_file", new, "permission"),
        ("unreadable.txt", "read_file", {}, "permission"),
        ("unreadable.txt", "write_file", new, "permission"),
        ("readonly.txt", "write_file", new, "permission"),
        ("mine.txt", "write_file", new, "None"),
    ]
    before = snapshot(tmp_path)

    paths = [str(Path(__file__).parents[1]), *(p for p in sys.path if p)]
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            UNPRIVILEGED,
            str(tmp_path),
            json.dumps([a[:3] for a in asked]),
            *paths,
        ],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    if "Permission denied" in result.stderr and not result.stdout:
        pytest.skip("this Python cannot be run by another user here")
    assert result.stdout.split() == [a[3] for a in asked], result.stderr
    after = snapshot(tmp_path)
    assert after.pop(f"{project}/mine.txt")
    assert {k: v for k, v in after.items() if k in before} == before
    assert not [path for path in after if ".pinfold-" in path or path.endswith(("new", "/d"))]
