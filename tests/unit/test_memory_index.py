"""`memory/index`: what is a topic, what is listed, in which order, and what hides nothing."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as run_with
from hypothesis import strategies as st

from pinfold.library import index
from pinfold.memory import documents as scanner
from pinfold.memory import index as listing
from pinfold.text.collation import collation_key
from pinfold.text.frontmatter import MOST_BYTES, Topic, read_topic
from pinfold_protocol.convert import unstructure
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import SessionResult
from support import Embedded, cases, clean_env, wiped, write

TOPIC = "---\nname: N\ndescription: D\ntype: user\n---\n\nB\n"
Tree = dict[str, str | bytes | tuple[str, str]]


class Memory:
    """A project's memory, and what is listed of it."""

    def __init__(self, base: Path) -> None:
        self.place = Embedded(base.resolve())
        self.root = self.place.memory
        self.base = str(self.place.base)
        self.dream = self.place.open("dream")

    def lay(self, tree: Tree) -> None:
        """Files by path; a tuple `("link", text)` is a link."""
        for path, content in tree.items():
            if isinstance(content, tuple):
                os.makedirs(os.path.dirname(f"{self.root}/{path}"), exist_ok=True)
                os.symlink(content[1], f"{self.root}/{path}")
            else:
                write(f"{self.root}/{path}", content)

    def index(self, opened: SessionResult | None = None, **more: Any) -> dict[str, Any]:
        session = self.place.gateway.sessions.get((opened or self.dream).session_id)
        result: dict[str, Any] = unstructure(index(self.place.gateway, session, **more))
        return result

    def names(self, opened: SessionResult | None = None, **more: Any) -> list[str]:
        return [each["relativePath"] for each in self.index(opened, **more)["documents"]]

    def skipped(self, opened: SessionResult | None = None, **more: Any) -> dict[str, str]:
        found = self.index(opened, **more)["skipped"]
        return {each["path"].removeprefix(f"{self.root}/"): each["reason"] for each in found}

    def pinned(self) -> set[str]:
        return {d["relativePath"] for d in self.index()["documents"] if d["pinned"]}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


@pytest.mark.parametrize("case", cases("index.json"), ids=lambda case: str(case["name"]))
def test_documents_are_the_observed_ones(case: dict[str, Any], memory: Memory) -> None:
    memory.lay({case["relativePath"]: case["content"], "other.md": TOPIC})
    listed = memory.index()
    found = {each["relativePath"]: each for each in listed["documents"]}
    assert "other.md" in found
    document, expected = found.get(case["relativePath"]), case["expect"]["document"]
    if expected is None:
        assert document is None
        looks_like_one = case["relativePath"].endswith(".md")
        assert (case["relativePath"] in memory.skipped()) is looks_like_one
        return
    assert document is not None and expected.items() <= document.items()
    size = len(case["content"].encode())
    path = f"{memory.root}/{case['relativePath']}"
    assert (document["path"], document["sizeBytes"], document["pinned"]) == (path, size, False)


def topic(*lines: str) -> bytes:
    return "\n".join(("---", *lines, "---", "")).encode()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"---\r\ntype: user\r\nname: N\r\n---\r\n", ("user", "N", "")),
        (b"---\r\ntype: user\r\n---", ("user", "user", "")),
        (b"---\rtype: user\r---\r", "does not begin"),
        (topic("name: a\rtype: user"), ("user", "a", "")),
        (topic("name: a\u2028type: user"), ("user", "a", "")),
        (topic("type: user", "name: a\x85b"), ("user", "a\x85b", "")),
        (topic("type: user", "name: a\x1c"), ("user", "a\x1c", "")),
        (topic("type: user", "name:\ufeff\u2003N\xa0"), ("user", "N", "")),
        (topic("type: user", "name:", "description: D"), ("user", "user", "D")),
        (topic("type: user", "name: ", "title: T"), ("user", "T", "")),
        (topic("type:", "type: user", "name:", "name:", "name: N"), ("user", "N", "")),
        (topic("type: ", "type: user"), "no type"),
        (topic("type: user", "name: ", "name: N"), ("user", "user", "")),
        (topic("type: user", "description:", "name: N"), ("user", "N", "")),
        (topic("type:", "user"), "no type"),
        (topic("type: User"), "none of"),
        (topic("type: user2"), "none of"),
        (topic("Type: user"), "no type"),
        (topic(" type: user"), "no type"),
        (topic("type : user"), "no type"),
        (topic("metadata:", "  type: user"), "no type"),
        (topic("x: y", "subtype: user"), "no type"),
        (b"---\n---\n", "no end"),
        (b"---\n---\ntype: user\n---\n", ("user", "user", "")),
        (b"---\n\n---\n", "no type"),
        (b"---\ntype: user\n--- and more\n", ("user", "user", "")),
        (b"---\ntype: user\n ---\n", "no end"),
        (b"\n---\ntype: user\n---\n", "does not begin"),
        (b"\xef\xbb\xbf" + topic("type: user"), "byte-order"),
        (topic("type: user").decode().encode("utf-16"), "byte-order"),
        (topic("type: user").decode().encode("utf-32-be"), "does not begin"),
        (b"", "empty"),
        (b"---", "does not begin"),
        (b"---\n", "no end"),
        (b"---\nname: \xff\xe9\ntype: user\n---\n", ("user", "\ufffd\ufffd", "")),
        (b"---\nname: a\0b\ntype: user\n---\n", ("user", "a\0b", "")),
        (b"---\ntype: user\0\n---\n", "none of"),
        (topic("type: user", "name: " + "x" * (MOST_BYTES - 30)), ("user", "x" * 65506, "")),
        (topic("name: " + "x" * MOST_BYTES, "type: user"), "longer than"),
        (b"---\n" + b"x: y\r\n" * MOST_BYTES, "longer than"),
    ],
)
def test_frontmatter(head: bytes, expected: Any, memory: Memory) -> None:
    found = read_topic(head, whole=True)
    if isinstance(expected, str):
        assert isinstance(found, str) and expected in found
    else:
        assert found == Topic(*expected)
    memory.lay({"a.md": head + b"\nbody\n" * 2000 if isinstance(found, Topic) else head})
    assert (memory.names() == ["a.md"]) is isinstance(found, Topic)
    assert memory.skipped() == ({} if isinstance(found, Topic) else {"a.md": found})


SECRET = "s3cr3t"
PIECES = st.sampled_from(
    ["---", "---\n", "\n", "\r\n", "\r", "type: user", "type:", "name: ", f"{SECRET}\n", SECRET,
     "title: x", "description: ", " ", "\ufeff", "\u2028", "é", "\0", "x" * 5000]
)  # fmt: skip
HEADS = st.one_of(
    st.binary(max_size=200),
    st.lists(PIECES, max_size=14).map(lambda pieces: "".join(pieces).encode()),
    st.lists(PIECES, max_size=9).map(lambda pieces: b"---\n" + "".join(pieces).encode("utf-8")),
)


@run_with(deadline=None)
@given(HEADS)
@example(b"---\r")
def test_any_bytes_are_a_topic_or_a_reason_that_quotes_nothing(head: bytes) -> None:
    found = read_topic(head, whole=True)
    assert isinstance(found, Topic | str)
    if isinstance(found, str):
        assert SECRET not in found and len(found) < 100
    begun = read_topic(head, whole=False)
    assert begun is None or begun == found
    if isinstance(found, Topic):
        assert read_topic(head + b"\nmore", whole=False) == found


@run_with(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(HEADS, min_size=1, max_size=6))
def test_a_broken_one_hides_no_other(tmp_path: Path, heads: list[bytes]) -> None:
    with wiped(tmp_path / "base") as base:
        memory = Memory(base)
        memory.lay({f"d{i}/x{i}.md": head for i, head in enumerate(heads)})
        good = [f"{d}good.md" for d in ("", "d0/", "pinned/", "d0/x.md/")]
        memory.lay(dict.fromkeys(good, TOPIC))
        assert set(good) <= set(memory.names())
        listed = memory.names() + list(memory.skipped())
        assert {f"d{i}/x{i}.md" for i in range(len(heads))} <= set(listed)
        assert SECRET not in json.dumps(memory.index()["skipped"])


def test_what_looks_like_a_topic_and_is_none_is_told_by_name(memory: Memory) -> None:
    outside = write(f"{memory.base}/outside/secret.md", TOPIC)
    write(f"{memory.base}/outside/d/deep.md", TOPIC)
    memory.lay(
        {
            "MEMORY.md": "- [x](x.md)",
            "a/MEMORY.md": TOPIC,
            "notes.txt": TOPIC,
            ".hidden/.h.md": TOPIC,
            "dir.md/inside.md": TOPIC,
            "out.md": ("link", outside),
            "relative-out.md": ("link", "../" * 20 + outside[1:]),
            "gone-out.md": ("link", f"{memory.base}/outside/nothing.md"),
            "out": ("link", f"{memory.base}/outside"),
            "up": ("link", ".."),
            "self": ("link", "."),
            "loop.md": ("link", "loop.md"),
            "dangling.md": ("link", "nothing.md"),
            "dangling": ("link", "nothing"),
            "todir.md": ("link", ".hidden"),
            "alias": ("link", ".hidden"),
            "in.md": ("link", ".hidden/.h.md"),
            "absolute.md": ("link", f"{memory.root}/.hidden/.h.md"),
            "chain.md": ("link", "in.md"),
            "totext.md": ("link", "notes.txt"),
            "logo.png": ("link", "notes.txt"),
        }
    )
    os.mkfifo(f"{memory.root}/fifo.md")
    os.symlink("fifo.md", f"{memory.root}/tofifo.md")
    with socket.socket(socket.AF_UNIX) as bound:
        os.chdir(memory.root)
        bound.bind("socket.md")
        os.chdir("/")
    assert set(memory.names()) == {
        *(".hidden/.h.md", "dir.md/inside.md", "in.md", "absolute.md", "chain.md", "totext.md")
    }
    leaves = "leaves its root"
    expected = {
        "out.md": leaves,
        "relative-out.md": leaves,
        "gone-out.md": leaves,
        "out": leaves,
        "up": leaves,
        "loop.md": "cannot be followed",
        "dangling.md": "link to nothing",
        "todir.md": "link to a directory",
        "dir.md": "it is a directory",
        "fifo.md": "not a regular file",
        "tofifo.md": "not a regular file",
        "socket.md": "not a regular file",
    }
    skipped = memory.skipped()
    assert set(skipped) == set(expected)
    assert all(words in skipped[name] for name, words in expected.items())
    assert list(skipped) == sorted(skipped)
    assert "outside" not in json.dumps(memory.index())


def test_names_that_no_call_can_name_are_told(memory: Memory) -> None:
    raw = os.fsencode(memory.root)
    os.makedirs(raw + b"/d\xe9")
    for name in (b"/\xff.md", b"/d\xe9/x.md", b"/ok.md"):
        with open(raw + name, "wb") as file:
            file.write(TOPIC.encode())
    assert memory.names() == ["ok.md"]
    assert set(memory.skipped()) == {"\ufffd.md", "d\ufffd"}
    assert all("UTF-8" in reason for reason in memory.skipped().values())


def deep(memory: Memory, levels: int, name: str = "d") -> list[str]:
    """A chain of directories, made from descriptors, with a topic in each."""
    made, relative = [], ""
    handle = os.open(memory.root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle, relative = below, f"{relative}{name}/"
        made.append(f"{relative}t.md")
        flags = os.O_WRONLY | os.O_CREAT
        file = os.open("t.md", flags, dir_fd=handle)
        os.write(file, TOPIC.encode())
        os.close(file)
    os.close(handle)
    return made


def test_depth_costs_no_descriptors_and_ends_where_no_call_can_follow(memory: Memory) -> None:
    made = deep(memory, 100, "d" * 50)
    memory.lay({"z/after.md": TOPIC, "a/before.md": TOPIC})
    before = os.listdir("/proc/self/fd")
    listed, skipped = set(memory.names()), memory.skipped()
    assert os.listdir("/proc/self/fd") == before
    reachable = {each for each in made if len(f"{memory.root}/{each}") <= 4096}
    assert listed == reachable | {"z/after.md", "a/before.md"} and len(reachable) > 70
    (reason,) = skipped.values()
    assert "4096 bytes" in reason


@pytest.mark.parametrize("twice", [False, True])
def test_a_directory_that_is_moved_away_leads_nowhere_else(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    """The walk comes back by `..`, which by then is a directory outside."""
    deep(memory, scanner._KEPT_OPEN + 4)
    memory.lay(
        {f"{d}z/{n}.md": TOPIC for d, n in (("d/d/", "x"), ("d/d/d/", "y"), ("d/d/d/d/", "x"))}
    )
    memory.lay({"zz/y.md": TOPIC})
    write(f"{memory.base}/outside/z/secret.md", TOPIC)
    moved: list[str] = []
    listing_of = scanner.Scanner._list

    def list_and_move(self: Any, level: Any, handle: int) -> None:
        listing_of(self, level, handle)
        if level.relative.count("/") == scanner._KEPT_OPEN + 4 and not moved:
            moved.append(level.relative)
            os.rename(f"{memory.root}/d/d/d/d", f"{memory.base}/outside/d")
            if twice:
                os.rename(f"{memory.root}/d/d/d", f"{memory.base}/outside/e")

    monkeypatch.setattr(scanner.Scanner, "_list", list_and_move)
    result = memory.index()
    names = {each["relativePath"] for each in result["documents"]}
    skipped = {each["path"]: each["reason"] for each in result["skipped"]}
    assert moved and not [each for each in names if "secret" in each]
    assert {"zz/y.md", "d/d/z/x.md"} <= names
    assert ("d/d/d/z/y.md" in names) is not twice
    assert skipped == (
        {f"{memory.root}/d/d/d": "it was moved while it was listed"} if twice else {}
    )


@pytest.mark.parametrize("swapped", ["file", "directory", "fifo", "socket", "gone"])
def test_what_is_exchanged_while_it_is_listed_is_not_followed(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    outside = write(f"{memory.base}/outside/secret.md", TOPIC)
    memory.lay({"a.md": TOPIC, "d/t.md": TOPIC, "z.md": TOPIC})
    original = os.open
    done: list[Any] = []

    def swap_first(path: Any, flags: int, *args: Any, **more: Any) -> int:
        wanted = b"d" if swapped == "directory" else b"a.md"
        if path == wanted and "dir_fd" in more and not flags & os.O_PATH and not done:
            done.append(path)
            place = f"{memory.root}/{os.fsdecode(path)}"
            os.rename(place, f"{memory.base}/moved")
            if swapped == "fifo":
                os.mkfifo(place)
            elif swapped == "socket":
                with socket.socket(socket.AF_UNIX) as bound:
                    os.chdir(memory.root)
                    bound.bind("a.md")
                    os.chdir("/")
            elif swapped != "gone":
                os.symlink(outside if swapped == "file" else f"{memory.base}/outside", place)
        return original(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", swap_first)
    result = memory.index()
    assert done and "secret" not in json.dumps(result)
    assert "z.md" in {each["relativePath"] for each in result["documents"]}
    reasons = [each["reason"] for each in result["skipped"]]
    words = {"fifo": "not a regular", "socket": "not a regular", "gone": None}
    if (expected := words.get(swapped, "exchanged")) is None:
        assert reasons == []
    else:
        assert len(reasons) == 1 and expected in reasons[0]


@run_with(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "b", "pinned", "x.md"]), min_size=1, max_size=3).map(
            "/".join
        ),
        st.sampled_from(["topic", "broken", *".:/a:..:../..:/outside:pinned:a/x.md:b".split(":")]),
        max_size=8,
    )
)
def test_nothing_outside_is_listed_or_read(tmp_path: Path, tree: dict[str, str]) -> None:
    with wiped(tmp_path / "base") as base, pytest.MonkeyPatch.context() as patched:
        memory = Memory(base)
        write(f"{memory.base}/outside/x.md", TOPIC.replace("name: N", "name: foreign"))
        for path, content in tree.items():
            text = content.replace("/outside", f"{memory.base}/outside")
            laid = TOPIC if content == "topic" else "x" if content == "broken" else ("link", text)
            try:
                memory.lay({path: laid})
            except OSError:
                continue
        read: list[str] = []
        original = os.read

        def reading(handle: int, size: int) -> bytes:
            read.append(os.readlink(f"/proc/self/fd/{handle}"))
            return original(handle, size)

        patched.setattr(os, "read", reading)
        result = memory.index()
        assert all(path.startswith(f"{memory.root}/") for path in read)
        assert "foreign" not in json.dumps(result["documents"])
        expected = {
            os.path.relpath(f"{directory}/{name}", memory.root)
            for directory, _, names in os.walk(memory.root)
            for name in names
            if name.endswith(".md") and not os.path.islink(f"{directory}/{name}")
            if Path(f"{directory}/{name}").read_bytes() == TOPIC.encode()
        }
        plain = {
            each["relativePath"] for each in result["documents"] if not os.path.islink(each["path"])
        }
        assert plain == expected


def set_time(path: str, nanoseconds: int) -> None:
    os.utime(path, ns=(nanoseconds, nanoseconds))


def test_newest_first_and_by_name_within_one_moment(memory: Memory) -> None:
    same = [
        "_a.md",
        "1.md",
        "10.md",
        "2.md",
        "a.md",
        "A.md",
        "á.md",
        "a1.md",
        "b.md",
        "B.md",
        "z.md",
    ]
    for name in reversed(same):
        set_time(write(f"{memory.root}/{name}", TOPIC), 5 * 10**9)
    for directory in ("y", "x"):
        set_time(write(f"{memory.root}/{directory}/b.md", TOPIC), 5 * 10**9)
    set_time(write(f"{memory.root}/new.md", TOPIC), 5 * 10**9 + 1)
    set_time(write(f"{memory.root}/old.md", TOPIC), -1)
    ordered = ["new.md", *same[:8], "b.md", "x/b.md", "y/b.md", "B.md", "z.md", "old.md"]
    for limit in range(1, len(ordered) + 1):
        result = memory.index(limit=limit)
        assert [each["relativePath"] for each in result["documents"]] == ordered[:limit]
        assert result["truncated"] is (limit < len(ordered))
    moments = {each["relativePath"]: each["modified"] for each in result["documents"]}
    assert moments["old.md"] == "1969-12-31T23:59:59.999Z"
    assert moments["new.md"] == "1970-01-01T00:00:05.000Z"


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_few_are_kept_of_many(memory: Memory, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """However often what cannot be among the first is thrown away on the way."""
    monkeypatch.setattr(listing, "_ROOM", 0)
    names = [f"{number:02}.md" for number in range(40)]
    for number, name in enumerate(names):
        set_time(write(f"{memory.root}/{name}", TOPIC), (number % 7) * 10**9)
    by_rule = sorted(names, key=lambda name: (-(int(name[:2]) % 7), name))
    assert memory.names(limit=count) == by_rule[:count]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123_999_999, "2023-11-14T22:13:20.123Z"),
        (-(10**9) * 62_135_596_800, "0001-01-01T00:00:00.000Z"),
        (-(10**9) * 10**12, "0001-01-01T00:00:20.000Z"),
        (10**9 * 10**12, "9999-12-31T23:59:40.000Z"),
    ],
)
def test_moments(moment: int, expected: str) -> None:
    assert listing._rfc3339(moment) == expected


@given(st.lists(st.text(max_size=6), max_size=6))
def test_names_have_one_order(names: list[str]) -> None:
    ordered = sorted(names, key=collation_key)
    names.reverse()
    assert sorted(names, key=collation_key) == ordered


def test_roots_come_one_by_one_and_each_has_its_order(memory: Memory) -> None:
    kinds = {root.kind: root.path for root in memory.dream.roots}
    for kind, root in kinds.items():
        for age, name in enumerate(("b.md", "a.md", "c/\uffee.md", "c/\U00010000.md")):
            set_time(write(f"{root}/{name}", TOPIC.replace("N", kind)), age * 10**9)
    listed = [(each["kind"], each["relativePath"]) for each in memory.index()["documents"]]
    newest = ["c/\U00010000.md", "c/\uffee.md", "a.md", "b.md"]
    by_path = ["a.md", "b.md", "c/\U00010000.md", "c/\uffee.md"]
    assert listed == [
        *(("project", name) for name in newest),
        *(("user", name) for name in newest),
        *(("team", name) for name in by_path),
    ]
    few = memory.index(limit=1)
    assert [each["relativePath"] for each in few["documents"]] == [newest[0], newest[0], "a.md"]
    assert few["truncated"] and not memory.index(limit=4)["truncated"]
    only = memory.index(kinds=["team", "user"])["documents"]
    assert [each["kind"] for each in only] == ["user"] * 4 + ["team"] * 4
    assert memory.index(kinds=[])["documents"] == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(memory: Memory, limit: int) -> None:
    with pytest.raises(RpcError) as caught:
        memory.index(limit=limit)
    assert caught.value.code == -32602 and (caught.value.data or {})["path"] == "limit"


def test_what_is_in_two_roots_is_listed_once(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.lay(
        {"a.md": TOPIC, "team/t.md": TOPIC, "user/u.md": TOPIC, "to.md": ("link", "team/t.md")}
    )
    roots = {"userRoot": f"{memory.root}/user", "teamRoot": f"{memory.root}/team"}
    opened = memory.place.open("main", memory=roots)
    result = memory.index(opened)
    listed = [(each["kind"], each["relativePath"]) for each in result["documents"]]
    assert listed == [("project", "a.md"), ("user", "u.md"), ("team", "t.md")]
    assert "leaves" in memory.skipped(opened)["to.md"]
    same = memory.place.open("main", memory={"userRoot": memory.root})
    assert {each["kind"] for each in memory.index(same)["documents"]} == {"project"}


def test_roots_that_are_odd_hide_no_other(memory: Memory) -> None:
    memory.lay({"a.md": TOPIC})
    write(f"{memory.base}/file", "x")
    os.symlink("loop", f"{memory.base}/loop")
    for root, words in (("file", "not a directory"), ("loop", "loop"), ("file/x", "component")):
        opened = memory.place.open("main", memory={"userRoot": f"{memory.base}/{root}"})
        result = memory.index(opened)
        assert [each["relativePath"] for each in result["documents"]] == ["a.md"]
        (skipped,) = result["skipped"]
        assert skipped["path"] == f"{memory.base}/{root}" and words in skipped["reason"]
    odd = {"userRoot": f"{memory.base}/loop"}
    opened = memory.place.open("remember", memory=odd)
    assert len(memory.index(opened)["skipped"]) == 1
    opened = memory.place.open("dream", memory=odd, scope={"confineReads": True})
    assert memory.index(opened)["skipped"] == []
    os.symlink(memory.root, f"{memory.base}/alias")
    opened = memory.place.open("main", memory={"projectRoot": f"{memory.base}/alias"})
    (document,) = memory.index(opened)["documents"]
    assert document["path"] == f"{memory.base}/alias/a.md"


def test_bounds_are_told(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.lay({f"{name}.md": TOPIC for name in "abcdefgh"})
    memory.lay({f"x{number}.md": "broken" for number in range(8)})
    monkeypatch.setattr(listing, "MOST_SKIPPED", 3)
    result = memory.index()
    assert len(result["documents"]) == 8 and not result["truncated"]
    assert len(result["skipped"]) == 4 and result["skipped"][-1]["reason"].startswith("5 more")
    monkeypatch.setattr(scanner, "MOST_NAMES", 4)
    result = memory.index()
    assert result["truncated"] and len(result["documents"]) + len(result["skipped"]) <= 5
    assert "only the first" in json.dumps(result["skipped"])


def test_titles_that_are_huge_do_not_fill_the_memory(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_TEXT", 100_000)
    for number in range(20):
        content = topic("type: user", f"name: {'x' * 20_000}")
        set_time(write(f"{memory.root}/{number:02}.md", content), number * 10**9)
    result = memory.index()
    names = [each["relativePath"] for each in result["documents"]]
    assert result["truncated"] and names[0] == "19.md" and 1 <= len(names) < 5


# Pinned


def test_pinned_ones_are_marked_as_a_change_would_be_decided(memory: Memory) -> None:
    os.makedirs(f"{memory.base}/elsewhere")
    memory.lay(
        {
            "pinned/p.md": TOPIC,
            "pinned/deep/er/p.md": TOPIC,
            "PINNED/p.md": TOPIC,
            "pinned:x.md": TOPIC,
            "pinned.md": TOPIC,
            "pinned-notes/p.md": TOPIC,
            "sub/pinned/p.md": TOPIC,
            "t.md": TOPIC,
            "alias.md": ("link", "pinned/p.md"),
            "pinned/out.md": ("link", "../t.md"),
        }
    )
    write(f"{memory.dream.roots[1].path}/pinned/u.md", TOPIC)
    write(f"{memory.dream.roots[2].path}/pinned/t.md", TOPIC)
    agrees_with_decisions(memory)
    assert {"pinned/p.md", "pinned/deep/er/p.md", "alias.md", "pinned:x.md"} <= memory.pinned()


@pytest.mark.parametrize("target", ["shared", "shared/t.md", "shared/deep", "loop", "pinned"])
def test_where_a_pinned_that_is_a_link_leads_is_marked(memory: Memory, target: str) -> None:
    memory.lay({"pinned": ("link", target), "loop": ("link", "pinned")})
    for path in ("shared/t.md", "shared/u.md", "shared/deep/v.md", "other/t.md", "t.md"):
        memory.lay({path: TOPIC})
    memory.lay({"shared/T.md": TOPIC, "SHARED/t.md": TOPIC})
    os.link(f"{memory.root}/shared/t.md", f"{memory.root}/other/twin.md")
    agrees_with_decisions(memory)


def agrees_with_decisions(memory: Memory) -> None:
    opened = memory.place.open("extraction", scope={"hardLinks": "ignore", "confineWrites": False})
    documents = memory.index(opened)["documents"]
    assert documents
    for each in documents:
        decided = memory.place.explain(opened, "edit", file_path=each["path"])
        assert each["pinned"] is (decided["rule"] == "pinned"), each["path"]


def test_marks_do_not_depend_on_what_the_session_protects(memory: Memory) -> None:
    memory.lay({"pinned/p.md": TOPIC, "t.md": TOPIC})
    for profile in ("main", "extraction", "dream", "remember"):
        listed = memory.index(memory.place.open(profile))["documents"]
        assert {each["relativePath"]: each["pinned"] for each in listed} == {
            "pinned/p.md": True,
            "t.md": False,
        }


# What a session may read


@pytest.mark.parametrize(
    ("profile", "scope", "kinds"),
    [
        ("main", {}, "project user team"),
        ("dream", {}, "project user team"),
        ("remember", {}, "project user"),
        ("dream", {"confineReads": True}, "project"),
        ("main", {"confineReads": True, "projectMemory": False}, "user"),
        ("main", {"confineReads": True, "projectMemory": False, "userMemory": False}, ""),
    ],
)
def test_only_roots_that_may_be_read_are_listed(
    memory: Memory, profile: str, scope: dict[str, bool], kinds: str
) -> None:
    for root in memory.dream.roots:
        write(f"{root.path}/t.md", TOPIC)
        write(f"{root.path}/broken.md", "x")
        os.symlink("/etc/passwd", f"{root.path}/out.md")
    opened = memory.place.open(profile, scope=scope)
    result = memory.index(opened)
    assert [each["kind"] for each in result["documents"]] == kinds.split()
    assert {each["kind"] for each in result["skipped"]} == set(kinds.split())
    for each in result["documents"]:
        assert not memory.place.call(opened, "read_memory", file_path=each["path"])["isError"]


RULES: list[tuple[dict[str, Any], str]] = [
    ({"decision": "deny", "tools": ["read_file"], "paths": ["ROOT/secret/**"]}, "secret"),
    ({"decision": "deny", "tools": ["read_memory"], "paths": ["ROOT/secret/**"]}, "secret"),
    ({"decision": "deny", "tools": ["*"], "paths": ["ROOT/secret/"]}, "secret"),
    ({"decision": "deny", "tools": ["read_memory"]}, "all"),
    ({"decision": "deny", "tools": ["*"], "paths": ["/**/*.md"]}, "all"),
    ({"decision": "ask", "tools": ["*"], "paths": ["ROOT/secret/**"]}, "secret"),
    ({"decision": "deny", "tools": ["edit", "write_file"], "paths": ["ROOT/**"]}, "none"),
    ({"decision": "deny", "tools": ["*"], "paths": ["ROOT/secret/**", "!ROOT/secret/s.md"]}, "bad"),
    ({"decision": "allow", "tools": ["*"], "paths": ["ROOT/**"]}, "none"),
]


@pytest.mark.parametrize(("rule", "hidden"), RULES)
def test_what_reading_denies_is_not_listed_at_all(
    memory: Memory, rule: dict[str, Any], hidden: str
) -> None:
    paths = [each.replace("ROOT", memory.root) for each in rule.get("paths", ())]
    memory.lay({"secret/s.md": TOPIC, "secret/broken.md": "x", "t.md": TOPIC})
    memory.lay({"to.md": ("link", "secret/s.md"), "secret/out.md": ("link", "/etc/passwd")})
    os.mkfifo(f"{memory.root}/secret/fifo.md")
    os.makedirs(f"{memory.root}/secret/dir.md")
    opened = memory.place.open("main", rules=[rule | ({"paths": paths} if paths else {})])
    names, skipped = set(memory.names(opened)), set(memory.skipped(opened))
    bad = {f"secret/{name}.md" for name in ("broken", "out", "fifo", "dir")}
    everything = {"secret/s.md", "to.md", "t.md"}
    gone: dict[str, tuple[set[str], set[str]]] = {
        "none": (set(), set()),
        "secret": ({"secret/s.md", "to.md"}, bad),
        "bad": (set(), bad),
        "all": (everything, bad),
    }
    assert names == everything - gone[hidden][0]
    assert skipped == bad - gone[hidden][1]


def test_what_is_denied_is_not_even_opened(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.lay({"secret/s.md": TOPIC, "t.md": TOPIC})
    rule = {"decision": "deny", "tools": ["read_file"], "paths": [f"{memory.root}/secret/**"]}
    opened = memory.place.open("main", rules=[rule])
    heads: list[bytes] = []

    def reading(head: bytes, *, whole: bool) -> Any:
        heads.append(head)
        return read_topic(head, whole=whole)

    monkeypatch.setattr(scanner, "read_topic", reading)
    assert memory.names(opened) == ["t.md"] and len(heads) == 1


def test_a_scope_that_is_exchanged_meanwhile_counts(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for root in memory.dream.roots:
        write(f"{root.path}/t.md", TOPIC)
    opened = memory.place.open("main")
    session = memory.place.gateway.sessions.get(opened.session_id)
    run: Callable[..., None] = scanner.Scanner.run

    def narrowing(self: Any, root: Any) -> None:
        run(self, root)
        if not session.turns:
            session.begin_turn("t", "remember", None)

    monkeypatch.setattr(scanner.Scanner, "run", narrowing)
    assert [each["kind"] for each in memory.index(opened)["documents"]] == ["project", "user"]


UNPRIVILEGED = """
import json, os, sys
base = sys.argv[1]
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from pinfold.library import index  # while everything can be read
from pinfold.paths.kernel import platform
from pinfold_protocol.convert import unstructure
from support import Embedded
platform.prepare()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
place = Embedded(Path(base))
session = place.gateway.sessions.get(place.open("main").session_id)
print(json.dumps(unstructure(index(place.gateway, session))))
"""


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that others may enter, whatever becomes of the test runner's own."""
    base = Path(tempfile.mkdtemp(prefix="pinfold-test-"))
    base.chmod(0o755)
    yield base
    shutil.rmtree(base)


def test_what_cannot_be_read_is_told_and_hides_nothing(open_to_all: Path) -> None:
    memory = Memory(open_to_all)
    memory.lay({"a/closed.md": TOPIC, "a/open.md": TOPIC, "shut/in.md": TOPIC, "z.md": TOPIC})
    os.chmod(f"{memory.root}/a/closed.md", 0)
    os.chmod(f"{memory.root}/shut", 0)
    user = memory.dream.roots[1].path
    write(f"{user}/u.md", TOPIC)
    os.chmod(user, 0)
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, memory.base, *sys.path],
        capture_output=True,
        text=True,
        env=clean_env(),
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {each["relativePath"] for each in result["documents"]} == {"a/open.md", "z.md"}
    skipped = {each["path"]: each["reason"] for each in result["skipped"]}
    assert skipped == {
        f"{memory.root}/a/closed.md": "permission denied",
        f"{memory.root}/shut": "permission denied",
        user: "permission denied",
    }
