"""Links, aliases and special files: complaints from the field, on a real file system."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinfold_protocol.convert import unstructure
from pinfold_protocol.errors import RpcError
from pinfold_protocol.retention import RETENTION_KEY
from pinfold_protocol.session import SessionResult
from support import Embedded, decision, details, kind, read, snapshot, write


class Bench:
    """A project with memory, and a session of each profile."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.place = Embedded(base)
        self.memory = self.place.memory
        self.project = str(self.place.project)
        self.main: SessionResult = self.place.open("main")
        self.dream: SessionResult = self.place.open("dream")

    def write(self, session: SessionResult, path: str, content: str = "x") -> dict[str, Any]:
        return self.place.call(session, "write_file", file_path=path, content=content)

    def read(self, session: SessionResult, path: str, **more: Any) -> dict[str, Any]:
        return self.place.call(session, "read_file", file_path=path, **more)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_c061_dots_after_a_link_mean_what_the_kernel_means(bench: Bench) -> None:
    write(f"{bench.memory}/pinned/rule.md", "curated")
    os.makedirs(f"{bench.project}/src")
    os.symlink(f"{bench.memory}/pinned", f"{bench.project}/src/p")
    os.makedirs(f"{bench.memory}/team")
    for path in (
        f"{bench.project}/src/p/../pinned/rule.md",
        f"{bench.memory}/team/../pinned/rule.md",
    ):
        assert decision(bench.write(bench.dream, path))["rule"] == "pinned"
    os.makedirs(f"{bench.base}/out/dir")
    os.symlink(f"{bench.base}/out/dir", f"{bench.memory}/link")
    result = bench.write(bench.main, f"{bench.memory}/link/../real.md")
    assert kind(result) is None and os.listdir(f"{bench.base}/out") == ["dir", "real.md"]
    assert decision(result)["path"] == f"{bench.memory}/real.md"  # as text
    assert decision(result)["resolvedPath"] == f"{bench.base}/out/real.md"


@pytest.mark.parametrize(
    "path", ["d/a/b/c.txt", "d/x/y/z.txt", "d/a.txt", "dangling/x.txt", "dangling"]
)
def test_c063_c064_nothing_is_made_on_the_way_to_a_denial(bench: Bench, path: str) -> None:
    os.makedirs(f"{bench.base}/outside")
    os.symlink(f"{bench.base}/outside", f"{bench.memory}/d")
    os.symlink(f"{bench.base}/outside/gone", f"{bench.memory}/dangling")
    before = snapshot(bench.base)
    assert decision(bench.write(bench.dream, f"{bench.memory}/{path}"))["rule"] == "outside-memory"
    assert snapshot(bench.base) == before


def test_c065_loops_are_told(bench: Bench) -> None:
    os.symlink("b", f"{bench.project}/a")
    os.symlink("a", f"{bench.project}/b")
    for result in (
        bench.read(bench.main, "a"),
        bench.write(bench.main, "a"),
        bench.write(bench.main, "a/x"),
    ):
        assert kind(result) == "invalid-path" and "loop" in result["content"][0]["text"]
    chain = "end"
    for index in range(45):
        os.symlink(chain, f"{bench.project}/c{index}")
        chain = f"c{index}"
    assert kind(bench.write(bench.main, "c39")) is None  # forty links
    assert kind(bench.write(bench.main, "c40")) == "invalid-path"


def test_c066_a_link_stays_a_link(bench: Bench) -> None:
    write(f"{bench.project}/d/real.md", "old")
    os.chmod(f"{bench.project}/d/real.md", 0o640)
    os.symlink("d/real.md", f"{bench.project}/link.md")
    result = bench.place.call(
        bench.main, "edit", file_path="link.md", old_string="old", new_string="new"
    )
    assert kind(result) is None and details(result)["path"].endswith("/d/real.md")
    assert os.readlink(f"{bench.project}/link.md") == "d/real.md"
    assert read(f"{bench.project}/d/real.md") == b"new"
    assert os.stat(f"{bench.project}/d/real.md").st_mode & 0o7777 == 0o640


def test_a_dangling_link_creates_what_it_names(bench: Bench) -> None:
    os.symlink("later/new.md", f"{bench.project}/link.md")
    assert kind(bench.write(bench.main, "link.md")) is None
    assert read(f"{bench.project}/later/new.md") == b"x" and os.path.islink(
        f"{bench.project}/link.md"
    )


def test_c069_children_of_a_linked_directory(bench: Bench) -> None:
    write(f"{bench.project}/real/a", "x")
    os.symlink(f"{bench.project}/real", f"{bench.project}/l")
    result = bench.read(bench.main, "l/a")
    assert result["content"][0]["text"] == "x"
    assert details(result)["path"] == f"{bench.project}/real/a"
    listing = bench.place.explain(bench.main, "list_directory", path="l")
    assert listing["resolvedPath"] == f"{bench.project}/real"


def test_c074_a_planted_link_leaks_nothing_into_memory_reads(bench: Bench) -> None:
    os.symlink("/etc/hostname", f"{bench.memory}/leak.md")
    remember = bench.place.open("remember")
    assert decision(bench.read(remember, f"{bench.memory}/leak.md"))["rule"] == "outside-memory"
    allowed = bench.read(bench.dream, f"{bench.memory}/leak.md")
    assert kind(allowed) is None and RETENTION_KEY not in allowed["_meta"]
    denied = bench.place.call(bench.dream, "read_memory", file_path=f"{bench.memory}/leak.md")
    assert kind(denied) == "denied" and decision(denied)["rule"] == "outside-memory"


def test_c076_memory_that_is_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    os.symlink(tmp_path / "data", tmp_path / "memory")
    bench = Bench(tmp_path)
    real = bench.memory.replace(f"{tmp_path}/memory", f"{tmp_path}/data")
    write(f"{real}/pinned/p.md", "curated")
    write(f"{real}/t.md", "topic")
    for root in (bench.memory, real):
        assert (
            bench.read(bench.dream, f"{root}/t.md")["_meta"][RETENTION_KEY]["path"]
            == f"{real}/t.md"
        )
        assert decision(bench.write(bench.dream, f"{root}/pinned/p.md"))["rule"] == "pinned"
        assert kind(bench.write(bench.dream, f"{root}/t.md", root)) is None


def test_pinned_that_is_a_link_protects_name_and_target(bench: Bench) -> None:
    outside = f"{bench.base}/elsewhere"
    os.symlink(outside, f"{bench.memory}/pinned")  # its target is not there yet
    for path in (
        f"{bench.memory}/pinned/a.md",
        f"{bench.memory}/pinned",
        f"{outside}/a.md",
        outside,
    ):
        protecting = bench.place.open("main", scope={"protectPinned": True})
        assert decision(bench.write(protecting, path))["rule"] == "pinned", path
    write(f"{outside}/a.md", "curated")
    result = bench.read(bench.dream, f"{bench.memory}/pinned/a.md")
    assert RETENTION_KEY not in result["_meta"]  # its real path is in no root


def test_a_file_called_pinned_is_protected_too(bench: Bench) -> None:
    write(f"{bench.memory}/pinned", "curated")
    os.link(f"{bench.memory}/pinned", f"{bench.memory}/twin.md")
    os.symlink("pinned", f"{bench.memory}/alias.md")
    for name in ("pinned", "twin.md", "alias.md", "pinned/below.md"):
        assert kind(bench.write(bench.dream, f"{bench.memory}/{name}")) == "denied"
    assert read(f"{bench.memory}/pinned") == b"curated"


def test_c094_c095_names_that_fold_are_reserved_inside_of_memory_only(bench: Bench) -> None:
    write(f"{bench.project}/docs/Pinned/a.md", "x")
    assert kind(bench.write(bench.main, "docs/Pinned/a.md", "y")) is None
    write(f"{bench.memory}/pinned/r\u00e8gle.md", "curated")
    assert kind(bench.write(bench.dream, f"{bench.memory}/pinned/re\u0300gle.md")) == "denied"


def test_c096_c097_near_names_are_listed_and_exact_ones_win(bench: Bench) -> None:
    write(f"{bench.project}/Shot 10.00\u202fAM.png.txt", "x")
    result = bench.read(bench.main, "Shot 10.00 AM.png.txt")
    assert kind(result) == "not-found"
    assert details(result)["error"]["near"] == ["Shot 10.00\u202fAM.png.txt"]
    write(f"{bench.project}/a b.txt", "blank")
    write(f"{bench.project}/a\u00a0b.txt", "nbsp")
    assert bench.read(bench.main, "a b.txt")["content"][0]["text"] == "blank"
    assert bench.read(bench.main, "a\u00a0b.txt")["content"][0]["text"] == "nbsp"
    assert kind(bench.write(bench.main, "A B.txt")) is None  # a write is never tolerant
    assert read(f"{bench.project}/a b.txt") == b"blank"


@pytest.mark.parametrize("mode", ["deny", "ignore"])
def test_hard_links_into_pinned(bench: Bench, mode: str) -> None:
    pinned = write(f"{bench.memory}/pinned/deep/er/p.md", "curated")
    os.makedirs(f"{bench.memory}/project")
    twin = f"{bench.memory}/project/h.md"
    os.link(pinned, twin)
    session = bench.place.open("dream", scope={"hardLinks": mode})
    result = bench.write(session, twin, "changed")
    assert read(pinned) == b"curated"
    if mode == "deny":
        assert decision(result)["match"] == "hard-link"
    else:  # the alias becomes a file of its own
        assert kind(result) is None and details(result)["otherLinks"] == 1
        assert read(twin) == b"changed"


def test_hard_links_elsewhere_are_ordinary(bench: Bench) -> None:
    write(f"{bench.memory}/pinned/p.md", "curated")
    write(f"{bench.memory}/a.md", "x")
    os.link(f"{bench.memory}/a.md", f"{bench.memory}/b.md")
    result = bench.write(bench.dream, f"{bench.memory}/a.md", "y")
    assert kind(result) is None and details(result)["otherLinks"] == 1
    assert read(f"{bench.memory}/b.md") == b"x"  # keeps the old bytes


def test_c103_a_pinned_set_that_cannot_be_listed_counts_as_pinned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f"{bench.memory}/pinned/p.md", "curated")
    write(f"{bench.memory}/a.md", "x")
    os.link(f"{bench.memory}/a.md", f"{bench.memory}/b.md")

    def refuse(*_: object) -> bool:
        raise PermissionError

    monkeypatch.setattr("pinfold.memory.roots.holds_file", refuse)
    assert decision(bench.write(bench.dream, f"{bench.memory}/a.md"))["match"] == "hard-link"


@pytest.mark.parametrize("what", ["directory", "fifo", "socket", "device"])
def test_c150_special_files_are_refused_without_being_opened(bench: Bench, what: str) -> None:
    path = f"{bench.project}/special"
    if what == "directory":
        os.mkdir(path)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            cwd = os.getcwd()
            os.chdir(bench.project)
            server.bind("special")
            os.chdir(cwd)
    else:
        path = "/dev/zero"
    expected = "is-directory" if what == "directory" else "not-a-regular-file"
    assert kind(bench.read(bench.main, path)) == expected
    assert kind(bench.write(bench.main, path)) == expected
    assert (
        kind(bench.place.call(bench.main, "edit", file_path=path, old_string="a", new_string="b"))
        == expected
    )


@pytest.mark.parametrize(
    "path", ["/dev/stdin", "/proc/self/fd/0", "/dev/fd/1", "/proc/self/fd/999"]
)
def test_c150_streams_of_the_process_are_never_read(bench: Bench, path: str) -> None:
    assert kind(bench.read(bench.main, path)) in ("not-a-regular-file", "not-found")


def _removed(base: str) -> int:
    descriptor = os.open(f"{base}/removed", os.O_RDWR | os.O_CREAT)
    os.unlink(f"{base}/removed")
    return descriptor


NAMELESS: dict[str, Callable[[str], int]] = {
    "pipe": lambda base: os.pipe()[1],
    "socket": lambda base: socket.socket(socket.AF_UNIX).detach(),
    "event": lambda base: os.eventfd(0),
    "memory": lambda base: os.memfd_create("x"),
    "removed": _removed,
    "namespace": lambda base: os.open("/proc/self/ns/net", os.O_RDONLY),
}
DOORS = ("/proc/self/fd/{}", "/dev/fd/{}", "/proc/{pid}/fd/{}", "/proc/thread-self/fd/{}", "LINK")
TOUCHES: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {}),
    ("write_file", {"content": "x"}),
    ("write_file", {"content": "x", "dry_run": True}),
    ("edit", {"old_string": "a", "new_string": "b"}),
    ("edit", {"old_string": "", "new_string": "b"}),
    ("edit", {"old_string": "", "new_string": "b", "dry_run": True}),
]


@pytest.mark.parametrize("what", NAMELESS)
@pytest.mark.parametrize("door", DOORS)
def test_c150_what_only_the_kernel_s_own_link_leads_to_is_no_file(
    bench: Bench, what: str, door: str
) -> None:
    descriptor = NAMELESS[what](str(bench.base))
    try:
        path = door.format(descriptor, pid=os.getpid())
        if door == "LINK":
            path = f"{bench.project}/link"
            os.symlink(f"/proc/self/fd/{descriptor}", path)
        before = snapshot(bench.base)
        for tool, arguments in TOUCHES:
            result = bench.place.call(bench.main, tool, file_path=path, **arguments)
            assert kind(result) == "not-a-regular-file", (tool, result)
            told = bench.place.explain(bench.main, tool, file_path=path)
            assert told == decision(result) and told["decision"] == "allow"
            assert told["resolvedPath"].endswith(f"/fd/{descriptor}")
            denied = bench.place.explain(bench.dream, tool, file_path=path)
            assert denied["decision"] == ("allow" if tool == "read_file" else "deny")
        below = bench.place.call(bench.main, "write_file", file_path=f"{path}/x", content="x")
        assert kind(below) == "not-found" and snapshot(bench.base) == before
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("name", ["/proc/self/ns/net", "/proc/self/ns/mnt"])
def test_a_namespace_is_no_file(bench: Bench, name: str) -> None:
    for tool, arguments in TOUCHES:
        result = bench.place.call(bench.main, tool, file_path=name, **arguments)
        assert kind(result) == "not-a-regular-file"


def test_a_descriptor_of_a_file_is_that_file(bench: Bench) -> None:
    path = write(f"{bench.project}/f.txt", "x")
    file, directory = os.open(path, os.O_RDONLY), os.open(bench.project, os.O_RDONLY)
    try:
        assert kind(bench.write(bench.main, f"/proc/self/fd/{file}", "new")) is None
        assert kind(bench.write(bench.main, f"/dev/fd/{directory}/f.txt", "newer")) is None
        assert kind(bench.read(bench.main, f"/dev/fd/{directory}")) == "is-directory"
        assert read(path) == b"newer"
        named = bench.read(bench.main, "/proc/self/comm")  # /proc/self is a link by name
        assert kind(named) is None
    finally:
        os.close(file)
        os.close(directory)


def lone(value: Any) -> bool:
    """Whether anything that would be sent holds a lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@pytest.mark.parametrize("place", ["project", "memory", "memory/pinned", "directory"])
def test_c013_a_name_that_is_no_utf8_is_in_no_answer(bench: Bench, place: str) -> None:
    """Refused on the way in, and after a denial that is due."""
    home = {"memory": bench.memory, "memory/pinned": f"{bench.memory}/pinned"}.get(place)
    real = os.fsencode(home or bench.project) + b"/d\xff/f.md"
    os.makedirs(os.path.dirname(real))
    with open(real, "wb") as file:
        file.write(b"a\n")
    link = f"{bench.project}/link"
    os.symlink(os.path.dirname(real) if place == "directory" else real, link)
    path = f"{link}/f.md" if place == "directory" else link
    rule = {"decision": "deny", "tools": ["*"], "paths": ["/**/f.md"]}
    asks = bench.place.open(rules=[rule | {"decision": "ask"}])
    denied = {"write_file", "edit"}
    sessions = [
        (bench.main, set()),
        (bench.dream, set() if place == "memory" else denied),
        (bench.place.open(rules=[rule]), {"read_file", *denied}),
    ]
    for session, expected in sessions:
        for tool, arguments in TOUCHES:
            result = bench.place.call(session, tool, file_path=path, **arguments)
            right = "denied" if tool in expected else "invalid-path"
            assert (kind(result), lone(result)) == (right, False), (tool, result)
            if right == "denied":
                assert decision(result)["resolvedPath"] is None
                assert bench.place.explain(session, tool, file_path=path) == decision(result)
                continue
            assert decision(result) is None
            with pytest.raises(RpcError) as error:
                bench.place.explain(session, tool, file_path=path)
            assert (error.value.data or {})["path"] == "arguments.file_path"
    with pytest.raises(RpcError, match="no UTF-8"):  # nobody is asked about it
        bench.place.explain(asks, "read_file", file_path=path)
    with open(real, "rb") as file:
        assert file.read() == b"a\n"


def test_a_root_that_leads_to_no_utf8_is_reported_without_its_real_path(bench: Bench) -> None:
    real = os.fsencode(bench.base) + b"/m\xff"
    os.makedirs(real + b"/pinned")
    os.symlink(real, f"{bench.base}/root")
    session = bench.place.open("dream", memory={"projectRoot": f"{bench.base}/root"})
    (root, *_) = unstructure(session)["roots"]
    assert (root["realPath"], root["writePath"], root["exists"]) == (None, None, True)
    assert not lone(unstructure(session))
    denied = bench.write(session, f"{bench.base}/root/pinned/x.md")
    assert (kind(denied), decision(denied)["rule"], lone(denied)) == ("denied", "pinned", False)
    outside = bench.write(session, f"{bench.project}/x.md")
    assert (kind(outside), lone(outside)) == ("denied", False)


@pytest.mark.parametrize("name", ["pipe:[1]", "anon_inode:[x]", "x (deleted)"])
def test_such_names_elsewhere_are_ordinary(bench: Bench, name: str) -> None:
    os.symlink(name, f"{bench.project}/link")
    assert kind(bench.write(bench.main, f"{bench.project}/link", "x")) is None
    assert read(f"{bench.project}/{name}") == b"x"


@pytest.mark.parametrize(
    ("path", "tool", "error"),
    [
        ("new/", "write_file", "is-directory"),
        ("new/.", "write_file", "is-directory"),
        ("f.txt/", "write_file", "not-found"),
        ("f.txt/", "read_file", "not-found"),
        ("f.txt/x", "write_file", "not-found"),
        ("f.txt/..", "read_file", "not-found"),
        ("none/../f.txt", "write_file", "not-found"),
        ("none/../f.txt", "read_file", "not-found"),
        ("d/", "write_file", "is-directory"),
        (".", "read_file", "is-directory"),
        ("/", "write_file", "is-directory"),
        ("..", "write_file", "is-directory"),
    ],
)
def test_paths_mean_what_the_kernel_says(bench: Bench, path: str, tool: str, error: str) -> None:
    write(f"{bench.project}/f.txt", "x")
    os.mkdir(f"{bench.project}/d")
    more = {"content": "y"} if tool == "write_file" else {}
    before = snapshot(bench.project)
    assert kind(bench.place.call(bench.main, tool, file_path=path, **more)) == error
    assert snapshot(bench.project) == before


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("f.txt/..", "f.txt"),
        ("f.txt/../f.txt", "f.txt"),
        ("f.txt/x/y", "f.txt"),
        ("f.txt/", "f.txt"),
        ("d/../f.txt/x", "d/../f.txt"),
        ("none/../f.txt", "none"),
        ("d/none/x/../../y", "d/none"),
        ("to-file/x", "to-file"),
        ("through/x/y", "through"),
        ("d/loop/x/..", "d/loop"),
    ],
)
def test_an_error_names_the_part_that_stops_the_way(bench: Bench, path: str, named: str) -> None:
    """And not what the dots fold to, which may well be there."""
    write(f"{bench.project}/f.txt", "x")
    os.mkdir(f"{bench.project}/d")
    os.symlink("loop", f"{bench.project}/d/loop")
    os.symlink("f.txt", f"{bench.project}/to-file")
    os.symlink("f.txt/x", f"{bench.project}/through")
    for tool, arguments in TOUCHES:
        result = bench.place.call(bench.main, tool, file_path=path, **arguments)
        assert kind(result) == ("invalid-path" if "loop" in path else "not-found")
        said = result["content"][0]["text"].partition(": ")[0]
        assert said == f"{bench.project}/{named}", (tool, said)


def test_odd_names_are_ordinary_names(bench: Bench) -> None:
    """Backslashes, reserved names of other systems, quotes, newlines: POSIX takes them all."""
    for name in (
        "a\\b",
        "nul",
        "CON.txt",
        "a:b",
        "a\nb",
        "a'\"b",
        "$HOME",
        "*",
        "-rf",
        "~x",
        " x ",
        "é\u0301",
    ):
        assert kind(bench.write(bench.main, name, name)) is None
        assert read(f"{bench.project}/{name}") == name.encode()
        assert bench.read(bench.main, name)["content"][0]["text"] == name
    home = f"{bench.base}/home"
    os.mkdir(home)
    assert kind(bench.write(bench.main, "~/x.txt")) is None and os.listdir(home) == ["x.txt"]


def test_every_read_tool_gets_the_same_decision(bench: Bench) -> None:
    remember = bench.place.open("remember")
    secret = write(f"{bench.project}/secret.txt", "x")
    found = [
        decision(bench.read(remember, secret)),
        decision(bench.read(remember, secret, offset=1, limit=1)),
        bench.place.explain(remember, "read_file", file_path=secret),
        bench.place.explain(remember, "grep_search", path=secret),
    ]
    assert {(each["decision"], each["rule"]) for each in found} == {("deny", "outside-memory")}
    missing = bench.read(remember, f"{bench.project}/none")
    assert kind(missing) == "denied"  # confined first, then not found


def test_a_long_line_can_be_read_by_following_the_notes(bench: Bench) -> None:
    text = "é" * 300_000 + "\nlast\n"
    write(f"{bench.project}/long.txt", text)
    parts, position = [], {"offset": 0, "column": 0}
    for _ in range(10):
        result = bench.read(bench.main, "long.txt", **position)
        parts.append(result["content"][0]["text"])
        found = details(result)
        if not found["truncated"]:
            break
        assert f"offset={found['nextOffset']}" in result["content"][1]["text"]
        position = {"offset": found["nextOffset"], "column": found["nextColumn"]}
    assert "".join(parts) == text and len(parts) > 2


def test_limits_of_reading(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    write(f"{bench.project}/f.txt", "".join(f"{n}\n" for n in range(3000)))
    result = bench.read(bench.main, "f.txt")
    found = details(result)
    assert (found["startLine"], found["endLine"], found["totalLines"]) == (0, 2000, 3000)
    assert (found["truncated"], found["nextOffset"], found["nextColumn"]) == (True, 2000, 0)
    past = bench.read(bench.main, "f.txt", offset=3000)
    assert past["content"][0]["text"] == "" and "past the end" in past["content"][1]["text"]
    part = bench.read(bench.main, "f.txt", offset=1, limit=2)
    assert part["content"] == [{"type": "text", "text": "1\n2\n"}]
    assert details(part)["truncated"] is False and details(part)["nextOffset"] == 3
    memory = write(f"{bench.memory}/m.md", "1\n2\n")
    tag = bench.read(bench.main, memory, limit=1)["_meta"][RETENTION_KEY]
    assert tag["complete"] is False
    assert bench.read(bench.main, memory)["_meta"][RETENTION_KEY]["complete"] is True


def test_files_over_the_limit_are_refused_before_they_are_read(bench: Bench) -> None:
    with open(f"{bench.project}/sparse", "wb") as file:
        file.truncate(3 << 30)
    assert kind(bench.read(bench.main, "sparse")) == "binary"  # by its first bytes
    with open(f"{bench.project}/sparse", "r+b") as file:
        file.write(b"text\n" * 2000)
    assert kind(bench.read(bench.main, "sparse")) == "too-large"
    assert kind(bench.write(bench.main, "sparse")) == "too-large"
    edit = bench.place.call(bench.main, "edit", file_path="sparse", old_string="a", new_string="b")
    assert kind(edit) == "too-large"
