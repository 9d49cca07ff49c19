"""Pinned memory: each of the four tests alone, real layouts, and whatever hypothesis draws."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pinfold.paths.opened import identity
from pinfold.policy.confinement import managed
from pinfold.policy.decide import decide
from pinfold.policy.facts import (
    Alias,
    Call,
    Effective,
    Facts,
    Place,
    Reserved,
    RootFacts,
    Step,
    Target,
)
from pinfold.policy.names import same
from pinfold.policy.pinned import find_pinned
from pinfold_protocol.session import PROFILES
from support import Embedded, decision, kind, read, snapshot, wiped, write

ROOT = RootFacts(
    "project", "/m", "/r", "/r", True, Reserved("/m/pinned", ("/x/kept",), (Place((1, 2), ()),))
)
ELSEWHERE = (Step("", (1, 1)), Step("e", (1, 9)), Step("f", None))
INTO = (Step("", (1, 1)), Step("e", (1, 2)), Step("f", None))


def facts(**changes: Any) -> Facts:
    """Facts that no test objects to, but for the changes."""
    target = {"literal": "/e/f", "real": "/e/f", "ways": (ELSEWHERE,)}
    target |= {
        k: changes.pop(k) for k in list(changes) if k in ("literal", "real", "walked", "ways")
    }
    return Facts(Target(**target), (ROOT,), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("real", "roots", "expected"),
    [
        ("/a/b/c", {"project": "/a"}, "project"),
        ("/a", {"project": "/a"}, "project"),
        ("/ab", {"project": "/a"}, None),
        ("/", {"project": "/a"}, None),
        ("/a/b", {"project": "/"}, "project"),
        ("/", {"project": "/"}, "project"),
        ("/A/b", {"project": "/a"}, None),
        ("/a/b/c", {"project": "/a", "user": "/a/b"}, "user"),
        ("/a/b/c", {"user": "/a/b", "project": "/a"}, "user"),
        ("/a/b/c", {"project": "/a/b", "user": "/a/b"}, "project"),
        ("/a/bc", {"user": "/a/b", "project": "/a"}, "project"),
        ("/a/b", {"project": None, "team": "/a"}, "team"),
        (None, {"project": "/"}, None),
    ],
)
def test_what_is_inside_of_several_roots_is_of_the_innermost(
    real: str | None, roots: dict[Any, str | None], expected: str | None
) -> None:
    found = [RootFacts(kind, "/as/written", root) for kind, root in roots.items()]
    assert managed(real, found) == expected


def test_an_argument_that_nothing_is_known_of_is_not_let_through() -> None:
    for name, profile in PROFILES.items():
        call = Call("write_it", "change", unmapped="odd")
        told = decide(call, facts(literal="/r/f", real="/r/f"), Effective(profile))
        assert (told.rule == "unknown-tool") is (name != "main")  # which protects nothing


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({}, None),
        ({"literal": "/m/pinned"}, "literal"),
        ({"literal": "/m/Pinned/x"}, "literal"),
        ({"literal": "/M/pinned/x"}, None),  # folded only from the root on
        ({"literal": "/m/a/pinned/x"}, None),  # only the first level counts
        ({"real": "/r/pinned/x"}, "resolved"),
        ({"real": "/r/PINNED"}, "resolved"),
        ({"real": "/x/kept/y"}, "resolved"),
        ({"real": "/x/keptly/y"}, None),
        ({"real": "/x/KEPT/y"}, "resolved"),  # outside of the root all of it is folded
        ({"real": "/X/kept"}, "resolved"),
        ({"real": None}, None),
        ({"walked": "/r/pinned/x"}, "resolved"),
        ({"ways": (ELSEWHERE, INTO)}, "identity"),
        ({"aliases": (Alias("project", ("PINNED",)),)}, "identity"),
        ({"aliases": (Alias("project", ("a", "b")),)}, "identity"),
        ({"aliases": (Alias("project", ()),)}, "identity"),
        ({"aliases": (Alias("project", ("other",)),)}, None),
        ({"hard_link": "project"}, "hard-link"),
    ],
)
def test_each_test_alone_is_enough(changes: dict[str, Any], match: str | None) -> None:
    found = find_pinned(facts(**changes))
    assert found == (None if match is None else ("project", match))
    verdict = decide(Call("edit", "change"), facts(**changes), Effective(PROFILES["extraction"]))
    if match is not None:
        assert (verdict.decision, verdict.rule, verdict.match) == ("deny", "pinned", match)
    reading = decide(Call("read_file", "read"), facts(**changes), Effective(PROFILES["extraction"]))
    assert reading.decision == "allow"
    free = decide(Call("edit", "change"), facts(**changes), Effective(PROFILES["main"]))
    assert free.decision == "allow"


def test_a_missing_root_is_reserved_by_its_nearest_ancestor() -> None:
    """On a volume that folds names, /V/MEM and /V/mem are one; nothing below exists yet."""
    place = Place((1, 5), ("mem", "pinned"))
    root = RootFacts(
        "user", "/V/mem", "/V/mem", None, False, Reserved("/V/mem/pinned", (), (place,))
    )
    way = (
        Step("", (1, 1)),
        Step("V", (1, 5)),
        Step("MEM", None),
        Step("Pinned", None),
        Step("x", None),
    )
    target = Target("/V/MEM/Pinned/x", "/V/MEM/Pinned/x", ways=(way,))
    assert find_pinned(Facts(target, (root,))) == ("user", "identity")


@pytest.mark.parametrize("folding", [True, False])
def test_another_spelling_of_the_root_counts_where_the_volume_folds_names(folding: bool) -> None:
    """Without stable inode numbers only names are left."""
    root = RootFacts(
        "project", "/V/m", "/V/m", None, True, Reserved("/V/m/pinned", (), (), folding)
    )
    for target in (Target("/V/M/pinned/x", None), Target("/a", "/v/M/Pinned/x")):
        found = find_pinned(Facts(target, (root,)))
        assert (found is not None) is folding


def test_inode_zero_is_no_identity() -> None:
    way = (Step("", None), Step("e", None), Step("f", None))
    assert find_pinned(facts(ways=(way,))) is None


def _without_inode(status: os.stat_result) -> os.stat_result:
    return os.stat_result((status[0], 0, *status[2:]))


def test_on_a_volume_without_inodes_names_alone_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything there has device and inode in common, and is not therefore what is pinned."""
    place = Embedded(tmp_path.resolve())
    memory = place.memory
    write(f"{memory}/pinned/p.md", "curated")
    write(f"{memory}/a/b.md", "ordinary")
    session = place.open("dream")
    for name in ("stat", "fstat", "lstat"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _real=real, **k: _without_inode(_real(*a, **k)))
    assert identity(os.stat(memory)) is None
    for path in ("a/b.md", "a/new.md", "new.md", "b/c/new.md"):
        told = place.explain(session, "write_file", file_path=f"{memory}/{path}", content="x")
        assert (told["decision"], told["match"]) == ("allow", None), path
    for path in ("pinned/p.md", "pinned/new.md", "a/../PINNED/p.md"):
        told = place.explain(session, "write_file", file_path=f"{memory}/{path}", content="x")
        assert (told["decision"], told["rule"]) == ("deny", "pinned"), path


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".git.", ".g\u200bit"])
def test_a_repository_in_memory_is_no_memory(tmp_path: Path, name: str) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    session = place.open("dream")
    for path in (f"{memory}/{name}/config", f"{memory}/a/{name}", f"{memory}/a/{name}/hooks/x"):
        result = place.call(session, "write_file", file_path=path, content="x")
        assert decision(result)["rule"] == "outside-memory" and kind(result) == "denied"
    assert os.listdir(memory) == []
    result = place.call(session, "write_file", file_path=f"{memory}/.gitignore", content="x")
    assert kind(result) is None


# A drawn layout: directories and links of all kinds around a reserved directory, then paths.

NAMES = ("pinned", "Pinned", "PINNED", "a", "b", "pinned.", "pin\u200bned")
SPOTS = ("", "a", "a/b", "pinned", "pinned/a", "Pinned", "out", "out/a")
STEPS = st.lists(
    st.sampled_from((*NAMES, "..", ".", "f", "out", "memory", "l0", "l1", "l2", "h0")),
    min_size=1,
    max_size=6,
)
LINKS = st.lists(
    st.tuples(
        st.sampled_from(SPOTS),
        st.sampled_from(("relative", "absolute", "dangling", "hard")),
        st.sampled_from((*SPOTS, "pinned/new", "pinned/f", "a/f", "../memory/pinned", "pinned/../a", "a/l0")),
    ),
    max_size=3,
)  # fmt: skip


def lay_out(memory: str, links: list[tuple[str, str, str]], pinned: str) -> None:
    for spot in ("a/b", "out/a", "Pinned"):
        write(f"{memory}/{spot}/f", spot)
    if pinned == "directory":
        write(f"{memory}/pinned/f", "curated")
        write(f"{memory}/pinned/a/f", "curated")
    elif pinned == "link":
        write(f"{memory}/kept/f", "curated")
        os.symlink("kept", f"{memory}/pinned")
    elif pinned == "dangling":
        os.symlink("kept/later", f"{memory}/pinned")
    for index, (spot, how, target) in enumerate(links):
        where = f"{memory}/{spot}/{'h' if how == 'hard' else 'l'}{index}"
        try:
            if how == "hard":
                os.link(f"{memory}/{target}/f", where)
            elif how == "relative":
                os.symlink(os.path.relpath(f"{memory}/{target}", f"{memory}/{spot}"), where)
            else:
                os.symlink(f"{memory}/{target}{'/gone' if how == 'dangling' else ''}", where)
        except OSError:
            continue


def guarded(memory: str) -> dict[str, Any]:
    """Everything in the reserved directory, and in every directory that has its name folded."""
    found: dict[str, Any] = {}
    for name in (*NAMES, "kept"):
        if name not in ("a", "b"):
            found |= snapshot(f"{memory}/{name}")
    listed = sorted(os.listdir(memory))
    return found | {"names": [name for name in listed if same(name, "pinned") or name == "kept"]}


@contextmanager
def place_for(base: Path) -> Iterator[Embedded]:
    with wiped(base) as directory:
        yield Embedded(directory)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(
    links=LINKS,
    pinned=st.sampled_from(["directory", "link", "dangling", "missing"]),
    paths=st.lists(STEPS, min_size=1, max_size=6),
    profile=st.sampled_from(["dream", "extraction", "protected main"]),
)
def test_whatever_the_layout_a_protecting_session_changes_nothing_pinned(
    tmp_path: Path,
    links: list[tuple[str, str, str]],
    pinned: str,
    paths: list[list[str]],
    profile: str,
) -> None:
    with place_for(tmp_path / "drawn") as place:
        memory = place.memory
        lay_out(memory, links, pinned)
        scope = {"protectPinned": True} if profile == "protected main" else {}
        session = place.open(profile.rsplit(maxsplit=1)[-1], scope=scope)
        before = guarded(memory)
        for index, steps in enumerate(paths):
            path = f"{memory}/{'/'.join(steps)}"
            if index % 2:
                place.call(session, "write_file", file_path=path, content=f"gone {index}")
            else:
                place.call(session, "edit", file_path=path, old_string="curated", new_string="gone")
        assert guarded(memory) == before


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(links=LINKS, steps=STEPS)
def test_a_session_without_protection_may_and_says_the_truth(
    tmp_path: Path, links: list[tuple[str, str, str]], steps: list[str]
) -> None:
    """What a main session writes stands where the kernel says that the path leads."""
    with place_for(tmp_path / "drawn") as place:
        memory = place.memory
        lay_out(memory, links, "directory")
        session = place.open("main")
        path = f"{memory}/{'/'.join(steps)}"
        result = place.call(session, "write_file", file_path=path, content="written")
        if kind(result) is None:
            assert read(path) == b"written"
            assert os.path.realpath(path) == decision(result)["resolvedPath"]
        else:
            assert kind(result) in ("is-directory", "not-found", "invalid-path")
        into = place.call(session, "write_file", file_path=f"{memory}/pinned/f", content="mine")
        assert kind(into) is None and read(f"{memory}/pinned/f") == b"mine"


def test_explain_says_the_same_before_and_after_a_call(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/pinned/p.md", "curated")
    os.symlink("pinned", f"{memory}/al")
    session = place.open("dream")
    before = snapshot(tmp_path)
    for path in (f"{memory}/al/p.md", f"{memory}/al/new/x.md", f"{memory}/PINNED", "/etc/x"):
        first = place.explain(session, "edit", file_path=path)
        result = place.call(session, "edit", file_path=path, old_string="a", new_string="b")
        assert decision(result) == first == place.explain(session, "edit", file_path=path)
        assert first["decision"] == "deny"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("tool", "arguments", "scope", "expected"),
    [
        ("glob", {}, {}, ("allow", "default")),
        ("glob", {}, {"protectPinned": True}, ("deny", "unknown-tool")),
        ("glob", {}, {"confineReads": True}, ("deny", "unknown-tool")),
        (
            "grep_search",
            {"pattern": "x", "path": "/"},
            {"confineReads": True},
            ("deny", "outside-memory"),
        ),
        ("grep_search", {"pattern": "x"}, {"confineWrites": True}, ("allow", "default")),
        ("list_directory", {}, {"confineReads": True}, ("deny", "outside-memory")),
        ("run_shell_command", {"command": "ls"}, {}, ("allow", "shell")),
        ("run_shell_command", {"command": "ls"}, {"shell": "deny"}, ("deny", "shell")),
        ("run_shell_command", {"command": "ls"}, {"shell": "read-only"}, ("allow", "shell")),
        ("run_shell_command", {"command": "rm x"}, {"shell": "read-only"}, ("deny", "shell")),
        ("run_shell_command", {"command": ""}, {"shell": "read-only"}, ("deny", "shell")),
    ],
)
def test_tools_of_the_host(
    tmp_path: Path,
    tool: str,
    arguments: dict[str, Any],
    scope: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    place = Embedded(tmp_path)
    session = place.open("main", scope=scope)
    found = place.explain(session, tool, **arguments)
    assert (found["decision"], found["rule"]) == expected
    assert found["source"] == ("override" if found["decision"] == "deny" else found["source"])
