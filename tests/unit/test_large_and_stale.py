"""Files too large to hold, and files that changed since they were read."""

import hashlib
import os
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.paths.known import KnownFiles
from pinfold.text.lines import Window, normalize, select, split_lines
from pinfold.text.stream import select_from
from pinfold_protocol.convert import structure
from pinfold_protocol.retention import RETENTION_KEY
from pinfold_protocol.session import ConnectionOptions, SessionResult
from support import Embedded, details, kind, read, texts, write


class Bench:
    def __init__(self, base: Path, **limits: int) -> None:
        self.place = Embedded(base)
        self.place.gateway.set_options(structure({"limits": limits}, ConnectionOptions))
        self.session: SessionResult = self.place.open()
        self.path = str(self.place.project / "f.txt")

    def call(self, name: str, path: str | None = None, **arguments: Any) -> dict[str, Any]:
        return self.place.call(self.session, name, file_path=path or self.path, **arguments)


# Large


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def test_a_directory_is_one_whatever_its_size(tmp_path: Path) -> None:
    said = []
    for most in (1, 1 << 20):
        (tmp_path / str(most)).mkdir()
        bench = Bench(tmp_path / str(most), maxFileBytes=most)
        os.mkdir(f"{bench.place.project}/there")
        os.symlink(f"{bench.place.project}/there", link := f"{bench.place.project}/link")
        result = bench.call("read_file", link)
        assert kind(result) == "is-directory"
        said.append(details(result)["error"]["message"].replace(link, "…"))
    assert said[0] == said[1] and said[0].startswith("…: ")


@given(texts(), st.integers(0, 9), st.integers(1, 9), st.integers(0, 5), st.integers(1, 7))
def test_a_streamed_part_is_the_part_of_the_whole(
    text: str, offset: int, limit: int, column: int, size: int
) -> None:
    text = text.replace("\ufeff", "")
    shown = normalize(text)
    window = Window(offset, limit, column, 10**6, 10**6)
    expected = select(shown, window)
    streamed = select_from(chunked(text.encode(), size), None, window)
    assert msgspec.structs.replace(streamed.selection, total_lines=expected.total_lines) == expected


@given(texts(), st.integers(1, 4), st.integers(1, 20), st.integers(1, 7))
def test_following_the_notes_of_a_stream_reads_it_all(
    text: str, limit: int, most: int, size: int
) -> None:
    text = text.replace("\ufeff", "")
    shown = normalize(text)
    parts, offset, column = [], 0, 0
    for _ in range(len(shown) + 3):
        window = Window(offset, limit, column, 10**6, most)
        selection = select_from(chunked(text.encode(), size), None, window).selection
        parts.append(selection.text)
        if selection.next_offset is None:
            break
        assert selection.text
        offset, column = selection.next_offset, selection.next_column or 0
    assert "".join(parts) == shown


def test_a_file_over_the_limit_is_read_in_parts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, maxFileBytes=1000)
    write(bench.path, "".join(f"line {n}\n" for n in range(1000)))
    refused = bench.call("read_file")
    assert kind(refused) == "too-large" and "offset and limit" in refused["content"][0]["text"]
    result = bench.call("read_file", offset=500, limit=3)
    assert result["content"] == [{"type": "text", "text": "line 500\nline 501\nline 502\n"}]
    found = details(result)
    assert (found["startLine"], found["endLine"], found["nextOffset"]) == (500, 503, 503)
    assert found["totalLines"] is found["sha256"] is found["lineEnding"] is None
    past = bench.call("read_file", offset=5000, limit=1)
    assert past["content"][0]["text"] == "" and "past the end" in past["content"][1]["text"]
    for tool, more in (
        ("write_file", {"content": "x"}),
        ("edit", {"old_string": "line 1\n", "new_string": "x"}),
    ):
        assert kind(bench.call(tool, **more)) == "too-large"
    path = write(f"{bench.place.memory}/big.md", "x\n" * 1000)
    tag = bench.call("read_file", path, limit=2)["_meta"][RETENTION_KEY]
    assert tag["complete"] is False and tag["sha256"] is None


# (what is there, a read, what is shown, its first line, the note)
PAST: list[tuple[str, dict[str, Any], str, int, str | None]] = [
    ("a\nbc\nd", {"offset": 3}, "", 3, "[Offset 3 is past the end: 3 lines, from 0.]"),
    ("a\nbc\n", {"offset": 9}, "", 2, "[Offset 9 is past the end: 2 lines, from 0.]"),
    ("a\nbc\n", {"offset": 9, "column": 9}, "", 2, "[Offset 9 is past the end: 2 lines, from 0.]"),
    ("a\nbc\nd", {"column": 9}, "\nbc\nd", 0, "[Column 9 is past the end of line 1 (offset 0): 1 characters, from 0.]"),
    ("a\nbc\nd", {"column": 1}, "\nbc\nd", 0, None),
    ("a\nbc\nd", {"offset": 1, "column": 3}, "\nd", 1,
     "[Column 3 is past the end of line 2 (offset 1): 2 characters, from 0.]"),
    ("a\nbc\nd", {"offset": 2, "column": 1}, "", 2,
     "[Column 1 is past the end of line 3 (offset 2): 1 characters, from 0.]"),
    ("a\n", {"offset": 1, "column": 1}, "", 1, "[Offset 1 is past the end: 1 lines, from 0.]"),
]  # fmt: skip


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize(("text", "call", "shown", "line", "note"), PAST)
def test_what_is_past_the_end_is_told_alike_of_a_part_and_of_a_stream(
    tmp_path: Path,
    text: str,
    call: dict[str, Any],
    shown: str,
    line: int,
    note: str | None,
    most: int,
) -> None:
    bench = Bench(tmp_path, maxFileBytes=most)
    write(bench.path, text)
    result = bench.call("read_file", **call, limit=9)
    assert [each["text"] for each in result["content"]] == [shown, *filter(None, [note])]
    assert details(result)["startLine"] == line
    assert details(result)["endLine"] == line + len(split_lines(shown))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"a" * 200, "too-large"),
        (b"a\xff" * 100, "too-large"),
        (b"\0" * 200, "binary"),
        (b"\x89PNG\r\n\x1a\n" + b"a" * 200, "binary"),
        ("a\n".encode("utf-16") * 50, "too-large"),
    ],
)
def test_no_part_is_advised_where_none_could_be_read(
    tmp_path: Path, data: bytes, error: str
) -> None:
    bench = Bench(tmp_path, maxFileBytes=100)
    write(bench.path, data)
    assert kind(bench.call("read_file")) == error
    assert (kind(bench.call("read_file", limit=1)) == "binary") is (error == "binary")
    assert kind(bench.call("read_file", encoding="utf-16-le")) == "too-large"
    assert kind(bench.call("read_file", encoding="utf-16-le", limit=1)) is None


@pytest.mark.slow
def test_c152_c154_huge_files_cost_little_memory(tmp_path: Path) -> None:
    bench = Bench(tmp_path, maxFileBytes=1 << 20)
    with open(bench.path, "wb") as file:
        file.write(b"head\n")
        file.truncate(256 << 20)  # one line of NULs follows
    tracemalloc.start()
    try:
        assert kind(bench.call("edit", old_string="head", new_string="x")) == "too-large"
        one = bench.call("read_file", offset=0, limit=1, encoding="utf-8")
        assert one["content"][0]["text"] == "head\n"
        line = bench.call("read_file", offset=1, limit=1, encoding="utf-8")
        found = details(line)
        assert found["truncated"] and len(line["content"][0]["text"]) == 256 * 1024
        assert (found["nextOffset"], found["nextColumn"]) == (1, 256 * 1024)
        more = bench.call(
            "read_file", offset=1, column=found["nextColumn"], limit=1, encoding="utf-8"
        )
        assert details(more)["nextColumn"] == 512 * 1024
        past = bench.call("read_file", offset=2, limit=1, encoding="utf-8")
        assert past["content"][0]["text"] == ""
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    bench.session = bench.place.open()  # which knows of no encoding
    assert kind(bench.call("read_file", limit=1)) == "binary"


def test_the_note_of_a_stream_needs_no_encoding_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, maxFileBytes=100, readBytes=10)
    write(bench.path, ("é" * 200).encode("latin-1"))
    first = details(bench.call("read_file", limit=1, encoding="latin-1"))
    again = bench.call("read_file", limit=1, offset=first["nextOffset"], column=first["nextColumn"])
    assert again["content"][0]["text"] == "é" * 5


def test_a_large_file_in_another_encoding(tmp_path: Path) -> None:
    bench = Bench(tmp_path, maxFileBytes=100)
    write(bench.path, ("日本語\r\n" * 50).encode("shift_jis"))
    assert kind(bench.call("read_file", limit=1)) == "undecodable"
    result = bench.call("read_file", offset=48, limit=5, encoding="shift_jis")
    assert result["content"][0]["text"] == "日本語\n日本語\n"
    write(bench.path, ("é\n" * 200).encode("utf-16"))
    result = bench.call("read_file", offset=199, limit=1, encoding="utf-16")
    assert result["content"][0]["text"] == "é\n" and details(result)["bom"] is True


# Stale


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_write_over_what_changed_is_stale_until_it_is_read_again(bench: Bench) -> None:
    write(bench.path, "one\ntwo\n")
    assert kind(bench.call("write_file", content="unread\n")) is None  # never read: nothing to lose
    write(bench.path, "one\ntwo\n")
    assert kind(bench.call("write_file", content="x\n")) == "stale"
    assert (
        kind(bench.call("edit", old_string="one", new_string="ONE")) is None
    )  # matched fresh bytes
    bench.call("read_file")
    assert kind(bench.call("write_file", content="y\n")) is None
    assert kind(bench.call("write_file", content="yy\n")) is None  # our own write is known
    write(bench.path, "z z\n")
    assert kind(bench.call("edit", old_string="z", new_string="a", replace_all=True)) == "stale"
    assert kind(bench.call("write_file", content="z z\n")) is None  # nothing would change
    write(bench.path, "other\n")
    assert kind(bench.call("read_file", limit=1)) is None  # C130: a part of it counts
    assert kind(bench.call("write_file", content="w\n")) is None


def test_c127_same_size_and_time_is_seen(bench: Bench) -> None:
    write(bench.path, "one\n")
    before = os.stat(bench.path)
    bench.call("read_file")
    with open(bench.path, "r+b") as file:
        file.write(b"ONE")
    os.utime(bench.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kind(bench.call("write_file", content="x\n")) == "stale"
    assert read(bench.path) == b"ONE\n"


def test_c128_reading_again_clears_it(bench: Bench) -> None:
    write(bench.path, "one\n")
    bench.call("read_file")
    write(bench.path, "two\n")
    assert kind(bench.call("write_file", content="x\n")) == "stale"
    bench.call("read_file")
    assert kind(bench.call("write_file", content="x\n")) is None


def test_require_read(bench: Bench) -> None:
    bench.session = bench.place.open(scope={"staleness": "require-read"})
    write(bench.path, "one\n")
    for tool, more in (
        ("write_file", {"content": "x\n"}),
        ("edit", {"old_string": "one", "new_string": "x"}),
    ):
        assert kind(bench.call(tool, **more)) == "not-read"
    assert kind(bench.call("write_file", bench.path + ".new", content="x\n")) is None
    assert kind(bench.call("write_file", bench.path + ".new", content="y\n")) is None  # we wrote it
    bench.call("read_file")
    assert kind(bench.call("edit", old_string="one", new_string="x")) is None


def test_off(bench: Bench) -> None:
    bench.session = bench.place.open(scope={"staleness": "off"})
    write(bench.path, "one\n")
    bench.call("read_file")
    write(bench.path, "two\n")
    assert kind(bench.call("write_file", content="x\n")) is None


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_another_name_of_a_read_file_counts_as_read(bench: Bench, link: Any) -> None:
    bench.session = bench.place.open(scope={"staleness": "require-read"})
    write(bench.path, "one\n")
    link(bench.path, bench.path + ".other")
    bench.call("read_file")
    assert (
        kind(bench.call("edit", bench.path + ".other", old_string="one", new_string="two")) is None
    )


def status_of(inode: int, links: int) -> os.stat_result:
    return os.stat_result([0o100644, inode, 5, links, 0, 0, 0, 0, 0, 0])


def test_a_reused_inode_number_is_another_file() -> None:
    known = KnownFiles()
    known.saw("/a", status_of(7, 1), "aaa", known.now())
    for links in (1, 2):
        assert known.last_seen("/b", status_of(7, links), "bbb") is None
        assert known.last_seen("/b", status_of(7, links), "aaa") == "aaa"  # renamed, most likely
    known.saw("/c", status_of(8, 2), "ccc", known.now())
    assert known.last_seen("/d", status_of(8, 2), "ddd") == "ccc"


def test_a_read_that_began_before_our_own_write_does_not_undo_it() -> None:
    known = KnownFiles()
    since = known.now()
    known.wrote("/a", (5, 9), "new")
    known.saw("/a", status_of(7, 1), "old", since)
    assert known.last_seen("/a", status_of(9, 1), "new") == "new"
    known.saw("/a", status_of(9, 1), "newer", known.now())
    assert known.last_seen("/a", status_of(9, 1), "") == "newer"


def test_what_was_seen_longest_ago_is_forgotten() -> None:
    known = KnownFiles(most=3)
    for n in range(10):
        known.saw(f"/{n}", status_of(n + 1, 1), "x", known.now())
        known.encoding(f"/{n}", "gbk")
    assert [known.encoding(f"/{n}", None) for n in range(10)] == [None] * 7 + ["gbk"] * 3
    assert len(known._by_identity) == len(known._by_path) == 3


def test_an_edit_of_what_changed_leaves_the_rest_unread(bench: Bench) -> None:
    write(bench.path, "one\ntwo\n")
    bench.call("read_file")
    write(bench.path, "one\nTHEIRS\n")
    assert kind(bench.call("edit", old_string="one", new_string="ONE")) is None
    assert kind(bench.call("write_file", content="ONE\ntwo\n")) == "stale"
    assert read(bench.path) == b"ONE\nTHEIRS\n"


def test_what_was_expected_is_not_stale(bench: Bench) -> None:
    write(bench.path, "one\n")
    bench.call("read_file")
    write(bench.path, "two\n")
    digest = hashlib.sha256(b"two\n").hexdigest()
    assert kind(bench.call("write_file", content="x\n", expected_sha256=digest)) is None


def test_a_hard_link_is_known_after_its_other_name_was_edited(bench: Bench) -> None:
    bench.session = bench.place.open(scope={"staleness": "require-read"})
    write(bench.path, "one\n")
    os.link(bench.path, bench.path + ".other")
    os.link(bench.path, bench.path + ".third")
    bench.call("read_file")
    assert kind(bench.call("edit", old_string="one", new_string="two")) is None
    change = {"old_string": "one", "new_string": "three"}
    assert kind(bench.call("edit", bench.path + ".other", **change)) is None


# (what is there, a read, whether that counts as one)
READS: list[tuple[bytes, dict[str, Any], bool]] = [
    (b"a\n", {}, True),
    (b"a\nb\n", {"limit": 1}, True),
    (b"", {}, True),
    (b"", {"offset": 3}, True),
    (b"a\xff\n", {}, False),
    (b"a\xff\n", {"encoding": "utf-8"}, True),
    (b"\xff\xfea", {}, False),
    (b"\xff\xfea", {"encoding": "utf-16"}, True),
    (b"a\0", {}, False),
    (b"a\0", {"encoding": "latin-1"}, True),
    (b"a\n", {"offset": 7}, False),
    (b"a", {"column": 7}, False),
    (b"a\n", {"limit": 0}, False),
    (b"a" * 101, {}, False),
    (b"a" * 101, {"limit": 1}, False),
]


@pytest.mark.parametrize(("data", "call", "counts"), READS)
def test_only_a_read_that_showed_something_counts(
    tmp_path: Path, data: bytes, call: dict[str, Any], counts: bool
) -> None:
    bench = Bench(tmp_path, maxFileBytes=100)
    bench.session = bench.place.open(scope={"staleness": "require-read"})
    write(bench.path, data)
    bench.call("read_file", **call)
    known = bench.call("write_file", content="x\n", encoding=call.get("encoding", "latin-1"))
    assert kind(known) == (None if counts else "too-large" if len(data) > 100 else "not-read")


def test_a_failed_read_leaves_a_changed_file_stale(bench: Bench) -> None:
    write(bench.path, "one\n")
    bench.call("read_file")
    write(bench.path, b"two\xff\n")
    assert kind(bench.call("read_file")) == "undecodable"
    assert kind(bench.call("write_file", content="x\n")) == "stale"
    bench.call("read_file", encoding="utf-8")
    assert kind(bench.call("write_file", content="x\n")) is None


def test_a_read_whose_file_moved_meanwhile_carries_no_tag(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(f"{bench.place.memory}/t.md", "x")
    backend = bench.place.gateway.calls.backend
    real_read = backend.read

    def read_and_move(*arguments: Any, **options: Any) -> Any:
        data = real_read(*arguments, **options)
        os.rename(path, f"{bench.place.project}/moved")
        return data

    monkeypatch.setattr(backend, "read", read_and_move)
    result = bench.call("read_file", path)
    assert result["content"][0]["text"] == "x" and RETENTION_KEY not in result["_meta"]
