"""Moving a file on the disk: both ends decided, one step, and nothing by the way."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pinfold import library
from pinfold_protocol.errors import ToolError
from support import Bench, read, snapshot, write


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)


def move(bench: Bench, opened: Any, old: str, new: str) -> None:
    gateway = bench.place.gateway
    library.move(gateway, gateway.sessions.get(opened.session_id), old, new)


def test_a_file_moves_with_its_inode_and_is_told_of(bench: Bench) -> None:
    told: list[Any] = []
    bench.place.gateway.on_memory_change = told.append
    old = write(f"{bench.memory}/a/t.md", "text")
    inode = os.stat(old).st_ino
    new = f"{bench.memory}/pinned/a/b/t.md"
    move(bench, bench.main, old, new)
    assert (os.stat(new).st_ino, read(new), os.path.lexists(old)) == (inode, b"text", False)
    assert [(each.kind, each.path) for each in told] == [("deleted", old), ("created", new)]


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("pinned/p.md", "p.md", "denied"),
        ("t.md", "pinned/t.md", "denied"),
        ("t.md", "PINNED/t.md", "denied"),
        ("t.md", "../t.md", "denied"),
        ("t.md", "a/.git/config", "denied"),
        ("none.md", "x.md", "not-found"),
        ("a", "b", "not-a-regular-file"),
        ("t.md", "a/u.md", "already-exists"),
        ("t.md", "a", "already-exists"),
        ("t.md", "a/u.md/x.md", "denied"),
        ("t.md", "x/", "is-directory"),
        ("pipe", "x.md", "not-a-regular-file"),
    ],
)
def test_what_may_not_be_moved_stays(bench: Bench, old: str, new: str, kind: str) -> None:
    write(f"{bench.memory}/t.md", "text")
    write(f"{bench.memory}/a/u.md", "other")
    os.mkfifo(f"{bench.memory}/pipe")
    before = snapshot(bench.base)
    with pytest.raises(ToolError) as caught:
        move(bench, bench.dream, f"{bench.memory}/{old}", f"{bench.memory}/{new}")
    assert caught.value.kind == kind
    assert snapshot(bench.base) == before


def test_a_hard_link_to_a_pinned_file_does_not_move(bench: Bench) -> None:
    os.link(bench.pinned, f"{bench.memory}/twin.md")
    with pytest.raises(ToolError) as caught:
        move(bench, bench.dream, f"{bench.memory}/twin.md", f"{bench.memory}/x.md")
    assert caught.value.kind == "denied"


def appear(memory: str) -> None:
    write(f"{memory}/x/new.md", "theirs")


def go(memory: str) -> None:
    os.unlink(f"{memory}/t.md")


def become_another(memory: str) -> None:
    go(memory)
    write(f"{memory}/t.md", "theirs")


def become_a_link_into_pinned(memory: str) -> None:
    os.rmdir(f"{memory}/x")
    os.symlink(f"{memory}/pinned", f"{memory}/x")


def move_into_pinned(memory: str) -> None:
    os.rename(f"{memory}/x", f"{memory}/pinned/x")


SWAPS = [appear, go, become_another, become_a_link_into_pinned, move_into_pinned]


@pytest.mark.parametrize("moment", ["opened", "decided"])
@pytest.mark.parametrize("swap", SWAPS)
def test_a_swap_at_any_moment_puts_nothing_into_pinned(
    bench: Bench, moment: str, swap: Any
) -> None:
    """The outcome is one of a serial order: ours came before the swap, or saw it."""
    old = write(f"{bench.memory}/t.md", "ours")
    os.mkdir(f"{bench.memory}/x")
    bench.seam.at(moment, lambda: swap(bench.memory))
    try:
        move(bench, bench.dream, old, f"{bench.memory}/x/new.md")
    except ToolError:
        pass
    assert bench.seam.moment == ""  # it was swapped
    pinned = {
        path.removeprefix(f"{bench.memory}/pinned/"): what[2]
        for path, what in snapshot(f"{bench.memory}/pinned").items()
    }
    assert pinned.get("p.md") == b"curated"
    assert "new.md" not in pinned and "x/new.md" not in pinned
    kept = [what[2] for what in snapshot(bench.memory).values()]
    assert b"ours" in kept or swap in (go, become_another)
    assert b"theirs" in kept or swap not in (appear, become_another)


def test_a_move_is_in_the_record(bench: Bench, tmp_path: Path) -> None:
    from pinfold_protocol.session import AuditOptions, ConnectionOptions

    record = tmp_path / "record.jsonl"
    bench.place.gateway.set_options(ConnectionOptions(audit=AuditOptions(str(record))))
    old = write(f"{bench.memory}/t.md", "text")
    with pytest.raises(ToolError):
        move(bench, bench.dream, old, f"{bench.memory}/pinned/t.md")
    move(bench, bench.main, old, f"{bench.memory}/pinned/t.md")
    bench.place.gateway.close(5)
    lines = read(record).decode().splitlines()
    assert [('"tool":"move"' in each, "denied" in each) for each in lines] == [
        (True, True), (True, False)
    ]  # fmt: skip
