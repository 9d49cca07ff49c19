"""What a hostile reviewer found once, and must not find again."""

import errno
import os
import resource
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinfold.memory import roots
from pinfold.paths import linux, walk
from pinfold.paths.opened import Opened
from pinfold_protocol.errors import RpcError
from pinfold_protocol.retention import RETENTION_KEY
from support import Bench, Embedded, decision, details, kind, read, snapshot, write

TOO_MANY = [errno.EMFILE, errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EACCES]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def failing(name: bytes, number: int, call: Callable[..., int]) -> Callable[..., int]:
    def wrapper(*arguments: Any) -> int:
        if any(isinstance(a, bytes) and a.split(b"/")[-1] == name for a in arguments):
            raise OSError(number, os.strerror(number))
        return call(*arguments)

    return wrapper


@pytest.mark.parametrize("number", TOO_MANY)
@pytest.mark.parametrize("protecting", [True, False])
def test_a_reserved_directory_that_cannot_be_looked_at_is_not_absent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, protecting: bool
) -> None:
    kept = f"{bench.memory}/keep"
    os.rename(f"{bench.memory}/pinned", kept)
    os.symlink("keep", f"{bench.memory}/pinned")
    session = bench.place.open("main", scope={"protectPinned": protecting})
    monkeypatch.setattr(linux, "open_entry", failing(b"pinned", number, linux.open_entry))
    result = bench.write(f"{kept}/p.md", session=session)
    assert (kind(result) is None) is not protecting
    assert read(f"{kept}/p.md") == (b"curated" if protecting else b"new")


@pytest.mark.parametrize("number", TOO_MANY)
def test_a_root_that_cannot_be_looked_at_is_not_absent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    os.symlink(bench.memory, f"{bench.project}/alias")
    session = bench.place.open("main", scope={"protectPinned": True})

    def glance(path: str, *, cached: bool = False) -> Opened:
        if path == bench.memory:
            return Opened(path, problem=number)
        return walk.glance(path, cached=cached)

    monkeypatch.setattr(roots, "glance", glance)
    result = bench.write(f"{bench.project}/alias/pinned/p.md", session=session)
    assert result["isError"] and read(bench.pinned) == b"curated"


def test_deep_paths_cost_few_descriptors(bench: Bench) -> None:
    deep = f"{bench.project}/" + "d/" * 400
    os.makedirs(deep)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, hard))
    try:
        result = bench.write(f"{deep}f.txt", session=bench.main)
        up = bench.write(f"{deep}{'../' * 399}g.txt", session=bench.main)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert kind(result) is None and kind(up) is None
    assert read(f"{bench.project}/d/g.txt") == b"new"
    assert len(os.listdir("/proc/self/fd")) == used


def test_no_call_leaves_descriptors_behind(bench: Bench) -> None:
    os.symlink("loop", f"{bench.memory}/loop")
    os.symlink(bench.project, f"{bench.memory}/out")
    used = len(os.listdir("/proc/self/fd"))
    for path in (
        "t.md",
        "a/b/c.md",
        "loop",
        "loop/x",
        "out/x",
        "pinned/x",
        "t.md/x",
        "none/../x",
        "../x",
    ):
        for tool in ("read_file", "read_memory", "write_file"):
            more = {"content": "x"} if tool == "write_file" else {}
            for session in (bench.main, bench.dream):
                bench.place.call(session, tool, file_path=f"{bench.memory}/{path}", **more)
                bench.place.explain(session, tool, file_path=f"{bench.memory}/{path}")
    assert len(os.listdir("/proc/self/fd")) == used


def test_a_volume_that_takes_the_exchange_flag_and_renames(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain_rename(directory: int, a: bytes, b: bytes) -> None:
        os.rename(a, b, src_dir_fd=directory, dst_dir_fd=directory)

    monkeypatch.setattr(linux, "exchange", plain_rename)
    path = write(f"{bench.memory}/t.md", "old")
    for content in ("one", "two"):
        assert kind(bench.write(path, content)) is None and read(path) == content.encode()
    assert sorted(os.listdir(bench.memory)) == ["pinned", "t.md"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
@pytest.mark.parametrize("noreplace", [True, False])
def test_a_volume_without_links(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, noreplace: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "")

    def missing(*_: object) -> None:
        raise OSError(errno.EINVAL, "")

    monkeypatch.setattr(linux, "open_nameless", missing)
    monkeypatch.setattr(os, "link", refuse)
    if not noreplace:
        monkeypatch.setattr(linux, "rename_new", missing)
    assert kind(bench.write(f"{bench.memory}/d/new.md")) is None
    assert read(f"{bench.memory}/d/new.md") == b"new" and os.listdir(f"{bench.memory}/d") == [
        "new.md"
    ]


def test_taking_a_new_file_back_spares_another_s(bench: Bench) -> None:
    """The directory moves into pinned/, and its new owner publishes a file of the same name."""
    os.makedirs(f"{bench.memory}/d")

    def move() -> None:
        os.rename(f"{bench.memory}/d", f"{bench.memory}/pinned/d")
        theirs = write(f"{bench.memory}/pinned/d/theirs", "theirs")
        os.rename(theirs, f"{bench.memory}/pinned/d/n.md")

    bench.seam.at("linked", move)
    result = bench.write(f"{bench.memory}/d/n.md")
    assert read(f"{bench.memory}/pinned/d/n.md") == b"theirs"
    assert os.listdir(f"{bench.memory}/pinned/d") == ["n.md"]
    assert kind(result) is None and read(f"{bench.memory}/d/n.md") == b"new"


def test_taking_a_new_file_back_when_it_is_gone(bench: Bench) -> None:
    os.makedirs(f"{bench.memory}/d")

    def move() -> None:
        os.rename(f"{bench.memory}/d", f"{bench.memory}/pinned/d")
        os.unlink(f"{bench.memory}/pinned/d/n.md")

    bench.seam.at("linked", move)
    assert kind(bench.write(f"{bench.memory}/d/n.md")) is None
    assert os.listdir(f"{bench.memory}/pinned/d") == []


class Twice:
    """One thing at `decided`, another at `exchanged`."""

    def __init__(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        self._actions = {"decided": first, "exchanged": second}

    def __call__(self, moment: str) -> None:
        if action := self._actions.pop(moment, None):
            action()


def replace(path: str, content: str) -> Callable[[], None]:
    def action() -> None:
        os.rename(write(f"{path}.theirs", content), path)

    return action


@pytest.mark.parametrize("second", ["replaced", "removed", "moved away"])
def test_taking_an_exchange_back_when_others_go_on(tmp_path: Path, second: str) -> None:
    place = Embedded(tmp_path)
    path = write(f"{place.memory}/d/x.md", "old")
    session = place.open("dream")
    actions = {
        "replaced": replace(path, "second"),
        "removed": lambda: os.unlink(path),
        "moved away": lambda: os.rename(path, f"{path}.away"),
    }
    place.gateway.calls.backend._seam = place.gateway.calls._seam = Twice(
        replace(path, "first"), actions[second]
    )
    result = place.call(session, "write_file", file_path=path, content="ours")
    # Tried again afterwards, on what is there then; nothing stays behind.
    assert kind(result) is None and read(path) == b"ours"
    left = ["x.md", "x.md.away"] if second == "moved away" else ["x.md"]
    assert sorted(os.listdir(f"{place.memory}/d")) == left


@pytest.mark.parametrize("second", ["replaced", "removed"])
def test_taking_an_exchange_back_inside_of_pinned(tmp_path: Path, second: str) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    path = write(f"{memory}/d/x.md", "old")
    os.makedirs(f"{memory}/pinned")
    session = place.open("dream")
    moved = f"{memory}/pinned/d/x.md"
    actions = {"replaced": replace(moved, "theirs"), "removed": lambda: os.unlink(moved)}
    place.gateway.calls.backend._seam = place.gateway.calls._seam = Twice(
        lambda: os.rename(f"{memory}/d", f"{memory}/pinned/d"), actions[second]
    )
    assert kind(place.call(session, "write_file", file_path=path, content="ours")) is None
    assert os.listdir(f"{memory}/pinned/d") == (["x.md"] if second == "replaced" else [])
    assert second == "removed" or read(moved) == b"theirs"


def test_the_sweep_looks_where_it_is(bench: Bench) -> None:
    """The directory has become pinned/ since the first decision: nothing in it is removed."""
    os.makedirs(f"{bench.memory}/d")
    left = f"{bench.memory}/d/.pinfold-0123456789abcdef.tmp"
    write(left, "half")

    def become() -> None:
        os.rename(f"{bench.memory}/pinned", f"{bench.memory}/was")
        os.rename(f"{bench.memory}/d", f"{bench.memory}/pinned")

    bench.seam.at("written", become)
    bench.write(f"{bench.memory}/d/n.md")
    assert os.path.exists(left.replace("/d/", "/pinned/"))
    odd = write(f"{bench.memory}/.pinfold-my-own-draft-001.tmp", "mine")
    assert kind(bench.write(f"{bench.memory}/t.md")) is None and os.path.exists(odd)


def test_a_default_acl_widens_nothing(bench: Bench) -> None:
    # version 2; owner rwx, user 1234 rwx, group r-x, mask rwx, other r-x
    entries = (
        (1, 7, 0xFFFFFFFF),
        (2, 7, 1234),
        (4, 5, 0xFFFFFFFF),
        (16, 7, 0xFFFFFFFF),
        (32, 5, 0xFFFFFFFF),
    )
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    path = write(f"{bench.memory}/d/t.md", "old")
    os.chmod(path, 0o640)
    try:
        os.setxattr(f"{bench.memory}/d", "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("this file system has no ACLs")
    assert kind(bench.write(path)) is None
    assert "system.posix_acl_access" not in os.listxattr(path)
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert kind(bench.write(f"{bench.memory}/d/new.md")) is None  # a new one gets the default
    assert "system.posix_acl_access" in os.listxattr(f"{bench.memory}/d/new.md")


def test_a_change_in_place_with_the_old_time_is_seen(bench: Bench) -> None:
    path = write(f"{bench.memory}/t.md", "one")
    before = os.stat(path)

    def rewrite() -> None:
        with open(path, "r+b") as file:
            file.write(b"ONE")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    bench.seam.at("written", rewrite)
    edit = {"old_string": "one", "new_string": "two"}
    result = bench.place.call(bench.dream, "edit", file_path=path, **edit)
    assert kind(result) == "no-match" and read(path) == b"ONE"


def test_pinned_that_leads_through_what_is_missing(bench: Bench) -> None:
    os.rename(f"{bench.memory}/pinned", f"{bench.memory}/was")
    os.symlink("x/../y", f"{bench.memory}/pinned")
    assert decision(bench.write(f"{bench.memory}/y/a.md"))["rule"] == "pinned"


@pytest.mark.parametrize("count", [20, 600, 1900])
def test_many_missing_names(bench: Bench, count: int) -> None:
    path = f"{bench.memory}/" + "q/" * count + "a"
    assert kind(bench.place.call(bench.main, "read_file", file_path=path)) == "not-found"
    memory = {"projectRoot": path}
    assert bench.place.open("dream", memory=memory).roots[0].exists is False


def test_pinned_that_is_nested_too_deeply_to_list_counts_as_pinned(bench: Bench) -> None:
    here = os.open(f"{bench.memory}/pinned", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    path = write(f"{bench.memory}/a.md", "x")
    os.link(path, f"{bench.memory}/b.md")
    try:
        assert decision(bench.write(path))["match"] == "hard-link"
    finally:  # shutil could not
        subprocess.run(["rm", "-rf", f"{bench.memory}/pinned/d"], check=True)


@pytest.mark.parametrize("uri", ["file:///%ff", "file://[x", "file:a", "file:///a?b", "file://h/a"])
def test_bad_uris(bench: Bench, uri: str) -> None:
    place = bench.place
    place.project = Path("/")  # not used
    with pytest.raises(RpcError) as caught:
        place.gateway.open_session(_open(uri))
    assert caught.value.data == {"path": "projectRoot", "problem": caught.value.data["problem"]}  # type: ignore[index]


def _open(project: str) -> Any:
    from pinfold_protocol.session import SessionOpenParams

    return SessionOpenParams("main", project)


def test_a_huge_offset_is_an_argument_like_any_other(bench: Bench) -> None:
    path = write(f"{bench.project}/f", "x")
    result = bench.place.call(bench.main, "read_file", file_path=path, offset=10**30)
    assert kind(result) == "invalid-arguments"


def test_a_read_that_begins_inside_of_the_first_line_is_not_complete(bench: Bench) -> None:
    result = bench.place.call(bench.main, "read_file", file_path=bench.pinned, column=3)
    assert result["content"][0]["text"] == "ated"
    assert result["_meta"][RETENTION_KEY]["complete"] is False


@pytest.mark.slow
def test_replacing_all_in_one_long_line_ends_before_the_test_s_timeout(bench: Bench) -> None:
    path = write(f"{bench.project}/f", "aaaa," * 100_000 + "\r\n")
    result = bench.place.call(
        bench.main, "edit", file_path=path, old_string=",", new_string=",\n", replace_all=True
    )
    assert details(result)["replacements"] == 100_000
    assert read(path) == b"aaaa,\r\n" * 100_000 + b"\r\n"


@pytest.mark.parametrize("path", ["newd/", "d/f.md/"])
def test_dry_runs_refuse_what_the_call_would_refuse(bench: Bench, path: str) -> None:
    write(f"{bench.project}/d/f.md", "x")
    before = snapshot(bench.project)
    for dry in (True, False):
        result = bench.place.call(
            bench.main, "write_file", file_path=path, content="y", dry_run=dry
        )
        assert kind(result) in ("is-directory", "not-found")
    assert snapshot(bench.project) == before


@pytest.mark.parametrize(
    ("text", "old", "words"),
    [
        ("abc", "abc\n", "without a final newline"),
        ("x = foo( bar)\n", "foo(bar)", "from character 8"),
        ("abc\n", "\t", "not in the file"),
    ],
)
def test_hints_say_what_is_so(bench: Bench, text: str, old: str, words: str) -> None:
    path = write(f"{bench.project}/f", text)
    edit = {"old_string": old, "new_string": "z"}
    result = bench.place.call(bench.main, "edit", file_path=path, **edit)
    assert kind(result) == "no-match" and words in result["content"][0]["text"]
