"""Editing and writing through the gateway: complaints from the field, as bytes in and bytes out."""

import os
from pathlib import Path
from typing import Any

import pytest

from pinfold_protocol.session import SessionResult
from support import Embedded, details, kind, read, write


class Bench:
    """One file in a main session."""

    def __init__(self, base: Path) -> None:
        self.place = Embedded(base)
        self.session: SessionResult = self.place.open()
        self.path = str(self.place.project / "f.txt")

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.place.call(self.session, name, file_path=self.path, **arguments)

    def edit(self, *pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
        if len(pairs) == 1:
            return self.call("edit", old_string=pairs[0][0], new_string=pairs[0][1], **more)
        edits = [{"old_string": old, "new_string": new} for old, new in pairs]
        return self.call("edit", edits=edits, **more)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# (case, before, replacements, after)
EDITS: list[tuple[str, bytes, list[tuple[str, str]], bytes]] = [
    ("C006 no mark is added", b"a\n", [("a", "b")], b"b\n"),
    ("C009 U+FEFF in the middle", b"a\xef\xbb\xbfb\nc\n", [("c", "d")], b"a\xef\xbb\xbfb\nd\n"),
    ("mark kept", b"\xef\xbb\xbfa\r\nb", [("a", "A")], b"\xef\xbb\xbfA\r\nb"),
    ("C010 UTF-16", "host=a\r\nport=1\r\n".encode("utf-16"), [("port=1", "port=2")],
     "host=a\r\nport=2\r\n".encode("utf-16")),
    ("C016 CRLF", b"a\r\nb\r\nc\r\n", [("b", "B")], b"a\r\nB\r\nc\r\n"),
    ("C018 mixed", b"a\r\nb\nc", [("c", "C")], b"a\r\nb\nC"),
    ("C019 a bare CR is data", b"10%\r50%\r100%\ndone\n", [("done", "DONE")], b"10%\r50%\r100%\nDONE\n"),
    ("C020 CR only", b"a\rb\rc", [("a\nb", "a\nX")], b"a\rX\rc"),
    ("C023 across a mixed file", b"alpha\nbeta\r\ngamma\n", [("alpha\nbeta", "alpha\nB"), ("B\ngamma", "B\nG")],
     b"alpha\nB\r\nG\n"),
    ("C024 no extra line", b"a\r\nb\r\n", [("a\n", "x\ny\n")], b"x\r\ny\r\nb\r\n"),
    ("C025 inserted lines", b"a\r\nz\r\n", [("a\n", "a\nm\nn\n")], b"a\r\nm\r\nn\r\nz\r\n"),
    ("C026a no final newline", b"a\nb", [("a", "A")], b"A\nb"),
    ("C026b final newline taken", b"a\n", [("a\n", "a")], b"a"),
    ("C034 dollars and backslashes", b'log("done");', [('log("done");', 'log("$& $$ $1 $` $\' \\1 \\g<0>");')],
     b'log("$& $$ $1 $` $\' \\1 \\g<0>");'),
    ("C047 trailing blanks", b"one  \ntwo\n", [("two", "TWO  ")], b"one  \nTWO  \n"),
    ("C049 backslash n", b's = "a\\nb"', [('s = "a\\nb"', 's = "a\\nc"')], b's = "a\\nc"'),
    ("C051 in order", b"a\n", [("a", "b"), ("b", "c")], b"c\n"),
    ("an explicit CRLF matches a CRLF", b"a\nb\r\nb\n", [("b\r\n", "c\r\n")], b"a\nc\r\nb\n"),
    ("undecodable bytes stay", b"a\xff\nport=1\n\xfe", [("port=1", "port=2")], b"a\xff\nport=2\n\xfe"),
    ("surrogates of UTF-8 stay", b"\xed\xa0\x80 x", [("x", "y")], b"\xed\xa0\x80 y"),
    ("into an empty line", b"a\n\nb\n", [("a\n\nb", "a\nx\nb")], b"a\nx\nb\n"),
    ("NEL, LS and VT are no endings", "a\u2028b\x0bc\x85d\nx".encode(), [("x", "y\nz")],
     "a\u2028b\x0bc\x85d\ny\nz".encode()),
    ("lines keep theirs around an insertion", b"a\nb\r\nc\n", [("a\nb\nc", "a\nb\nX\nc")], b"a\nb\r\nX\r\nc\n"),
    ("C008 exactly one mark by an edit", b"\xef\xbb\xbfa\n", [("a", "\ufeffb")], b"\xef\xbb\xbfb\n"),
    ("C008 by a batch, in UTF-16", "a b".encode("utf-16"), [("a ", ""), ("b", "\ufeff\ufeffB")], "B".encode("utf-16")),
    ("C006 no mark is added by an edit", b"a\n", [("a", "\ufeffb")], b"b\n"),
    ("U+FEFF further on is a character", b"a\n", [("a", "a\ufeffb")], b"a\xef\xbb\xbfb\n"),
    ("non-ASCII", "→ Ω 😀\n".encode(), [("Ω", "ß")], "→ ß 😀\n".encode()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "pairs", "after"), [pytest.param(*r[1:], id=r[0]) for r in EDITS]
)
def test_an_edit_changes_what_it_names(
    bench: Bench, before: bytes, pairs: list[tuple[str, str]], after: bytes
) -> None:
    write(bench.path, before)
    result = bench.edit(*pairs)
    assert kind(result) is None, result
    assert read(bench.path) == after
    assert details(result)["replacements"] == len(pairs)
    assert details(result)["sizeBytes"] == len(after)


# (case, before, replacements, kind of the error, what the message must say)
REFUSED: list[tuple[str, bytes, list[tuple[str, str]], str, str]] = [
    ("C033 drifted blanks", b"x\ndef f(a, b):\n", [("def f(a,b):", "...")], "no-match", "line 2 (offset 1)"),
    ("C035 empty old text", b"abc", [("", "X")], "invalid-arguments", "exists"),
    ("C040 drifted interior", b"func a() {\n\tx := 1\n\ty := 2\n\treturn\n}\n",
     [("func a() {\n\tx := 1\n\ty := 99\n\treturn\n}", "z")], "no-match", "line 3 (offset 2)"),
    ("C043 a near name", b"compute_checksum(x)", [("compute_cheksum(x)", "digest(x)")], "no-match", "'cksum(x)'"),
    ("C044 drifted inside of a line", b"def f():\n    x = 1\n    y = 2\n", [("    x  =  1", "    x = 9")],
     "no-match", "white space"),
    ("C050 the second fails", b"a\nb\n", [("a", "A"), ("zzz", "Z")], "no-match", "edits[1]"),
    ("C051 overlapping", b"a\n", [("a", "x"), ("a", "y")], "no-match", "edits[1]"),
    ("tabs for blanks", b"\tx\n", [("    x", "y")], "no-match", "white space"),
    ("a copied line number", b"one\ntwo\n", [("  2\ttwo", "x")], "no-match", "line-number prefix"),
    ("curly quotes", "say “hi”\n".encode(), [('say "hi"', "x")], "no-match", "quote characters"),
    ("another case", b"Hello\n", [("hello", "x")], "no-match", "letter case"),
    ("nothing alike", b"abc\n", [("qwertyuiop", "x")], "no-match", "not in the file"),
    ("twice", b"x\ny\nx\n", [("x", "z")], "ambiguous-match", "lines 1, 3"),
    ("overlapping matches", b"aaa", [("aa", "b")], "ambiguous-match", "2 times"),
    ("equal texts", b"a", [("a", "a")], "no-change", "nothing would change"),
    ("LF wanted as CRLF", b"a\nb\n", [("a\r\nb", "x")], "no-match", "line 1 (offset 0) ends with LF where old_string has CRLF"),
    ("CRLF wanted as CR", b"z\r\na\r\nb\r\n", [("a\rb", "x")], "no-match", "line 2 (offset 1) ends with CRLF where"),
    ("a later ending", b"a\r\nb\nc", [("a\r\nb\r\nc", "x")], "no-match", "line 2 (offset 1) ends with LF"),
    ("line numbers and bars", b"import os\nfoo()\n", [("  2 | foo()", "x")], "no-match", "line-number prefix"),
    ("several of them", b"a\nfoo()\n  bar()\n", [("  2 | foo()\n  3 |   bar()", "x")], "no-match", "line-number prefix"),
    ("numbers of ten and on", b"foo()\nbar()\n", [(" 9| foo()\n10| bar()", "x")], "no-match", "line-number prefix"),
    ("escaped newlines", b"z\nfoo()\nbar()\n", [("foo()\\nbar()", "x")], "no-match", "old_string is escaped"),
    ("escaped in CRLF", b"foo()\r\n\tbar()\r\n", [("foo()\\r\\n\\tbar()", "x")], "no-match", "old_string is escaped"),
    ("escaped quotes", b'say("hi")\n', [('say(\\"hi\\")', "x")], "no-match", "old_string is escaped"),
    ("undecodable and not found", b"a\xff", [("zzz", "Z")], "undecodable", "no valid utf-8"),
    ("non-ASCII among undecodable", b"a\xff", [("a", "é")], "undecodable", "only ASCII"),
    ("binary", b"a\0b", [("a", "b")], "binary", "binary file"),
    ("damaged UTF-16", b"\xff\xfea", [("a", "b")], "undecodable", "utf-16"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "pairs", "error", "words"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED]
)
def test_a_refused_edit_says_why_and_touches_nothing(
    bench: Bench, before: bytes, pairs: list[tuple[str, str]], error: str, words: str
) -> None:
    write(bench.path, before)
    inode = os.stat(bench.path).st_ino
    result = bench.edit(*pairs)
    assert kind(result) == error, result
    assert words in result["content"][0]["text"]
    assert read(bench.path) == before and os.stat(bench.path).st_ino == inode
    assert os.listdir(bench.place.project) == ["f.txt"]


# (edits that fail, the kind, the index of the one that does)
FAILING: list[tuple[list[tuple[str, str]], str, int]] = [
    ([("a", "A"), ("b", "b")], "no-change", 1),
    ([("a", "A"), ("", "b")], "invalid-arguments", 1),
    ([("a", "A"), ("b", "\0")], "invalid-arguments", 1),
    ([("a\ud800", "A"), ("b", "c")], "invalid-arguments", 0),
    ([("a", "A"), ("zzz", "c")], "no-match", 1),
    ([("a", "A"), ("x", "c")], "ambiguous-match", 1),
    ([("a", "b"), ("b", "a")], "ambiguous-match", 1),
    ([("zzz", "c")], "no-match", 0),
    ([("a", "a")], "no-change", 0),
    ([("", "a")], "invalid-arguments", 0),
]


@pytest.mark.parametrize(("pairs", "error", "index"), FAILING)
def test_every_error_of_edits_has_the_index(
    bench: Bench, pairs: list[tuple[str, str]], error: str, index: int
) -> None:
    write(bench.path, b"a x b x\n")
    edits = [{"old_string": old, "new_string": new} for old, new in pairs]
    result = bench.call("edit", edits=edits)
    assert kind(result) == error and details(result)["error"]["index"] == index, result
    assert f"edits[{index}]" in result["content"][0]["text"]
    assert read(bench.path) == b"a x b x\n"
    if len(pairs) == 1:
        alone = bench.edit(*pairs)
        assert kind(alone) == error and "index" not in details(alone)["error"]
        assert "edits[" not in alone["content"][0]["text"]


# (case, before or None, content, after)
WRITES: list[tuple[str, bytes | None, str, bytes]] = [
    ("C004 the mark is kept", b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
    ("C006 no mark is added", b"a\n", "c\n", b"c\n"),
    ("C008 exactly one mark", b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
    ("C008 whatever it brings", b"\xef\xbb\xbfa\n", "\ufeff\ufeffb\n", b"\xef\xbb\xbfb\n"),
    ("C006 no mark is added, asked for or not", b"a\n", "\ufeffc\n", b"c\n"),
    ("C011 new, in UTF-8", None, "→ Ω 😀\n", "→ Ω 😀\n".encode()),
    ("C014 bytes as given", None, "Write-Host ‘é’\n", "Write-Host ‘é’\n".encode()),
    ("C022 no CR in a new file", None, "#!/bin/sh\necho\n", b"#!/bin/sh\necho\n"),
    ("C024 CRLF as it is", b"x\r\ny\r\n", "p\r\nq\r\n", b"p\r\nq\r\n"),
    ("C026c no newline added", b"a\n", "x", b"x"),
    ("uniform CRLF is kept", b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
    ("uniform CR is kept", b"a\rb\r", "c\nd", b"c\rd"),
    ("mixed: as given", b"a\r\nb\n", "c\nd\n", b"c\nd\n"),
    ("CRLF into LF: as given", b"a\nb\n", "c\r\nd\n", b"c\r\nd\n"),
    ("new with CRLF", None, "a\r\nb", b"a\r\nb"),
    ("UTF-16 stays", "a\n".encode("utf-16"), "b→\n", "b→\n".encode("utf-16")),
    ("empty", b"a\n", "", b""),
    ("new and empty", None, "", b""),
    ("undecodable is replaced whole", b"\xff\n", "é\n", "é\n".encode()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "content", "after"), [pytest.param(*row[1:], id=row[0]) for row in WRITES]
)
def test_a_whole_write(bench: Bench, before: bytes | None, content: str, after: bytes) -> None:
    if before is not None:
        write(bench.path, before)
    result = bench.call("write_file", content=content)
    assert kind(result) is None, result
    assert read(bench.path) == after
    found = details(result)
    assert found["created"] is (before is None) and found["changed"] is True
    assert found["bom"] is after.startswith((b"\xef\xbb\xbf", b"\xff\xfe"))


# (before, a call, what is told of it)
TOLD: list[tuple[bytes, dict[str, Any], str]] = [
    (b"a\r\n", {"content": "b\n"}, ""),
    (b"a\n", {"content": "b\r\n"}, " Line endings: lf -> crlf."),
    (b"a\xe9\n", {"content": "b\n"}, " Encoding: it was no valid utf-8, and is utf-8 now."),
    (b"a\xe9\n", {"content": "é\n", "encoding": "latin-1"}, ""),
    (b"a\xe9\n", {"content": "b\n", "encoding": "latin-1"}, ""),
    (b"\xff\xfea", {"content": "b"}, " Encoding: it was no valid utf-16-le, and is utf-16-le now."),
    (b"a\xe9\n", {"old_string": "a", "new_string": "b"}, ""),
    (b"a\n", {"content": "\ufeffb\n"}, " U+FEFF at its beginning was left out: no byte-order mark is added."),
    (b"\xef\xbb\xbfa\n", {"content": "\ufeffb\n"}, ""),
]  # fmt: skip


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("before", "call", "told"), TOLD)
def test_what_else_a_change_does_is_told(
    bench: Bench, before: bytes, call: dict[str, Any], told: str, dry_run: bool
) -> None:
    write(bench.path, before)
    result = bench.call("write_file" if "content" in call else "edit", **call, dry_run=dry_run)
    said = result["content"][0]["text"].partition("\n")[0]
    assert said == f"{'Would change' if dry_run else 'Changed'} {bench.path}.{told}"


def test_a_mark_alone_changes_nothing_and_is_told(bench: Bench) -> None:
    write(bench.path, b"a\n")
    result = bench.edit(("a", "\ufeffa"))
    assert details(result)["changed"] is False and "U+FEFF" in result["content"][0]["text"]


def test_two_edits_in_a_row_on_crlf(bench: Bench) -> None:
    write(bench.path, b"a\r\nb\r\n")
    assert kind(bench.call("read_file")) is None
    assert kind(bench.edit(("a", "A"))) is kind(bench.edit(("b", "B"))) is None
    assert read(bench.path) == b"A\r\nB\r\n"


def test_an_outcome_that_is_there_already_touches_nothing(bench: Bench) -> None:
    write(bench.path, b"a\r\n")
    before = os.stat(bench.path)
    result = bench.call("write_file", content="a\n")
    assert details(result)["changed"] is False and not result["isError"]
    after = os.stat(bench.path)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_empty_old_string_creates_a_file_that_is_not_there(bench: Bench) -> None:
    result = bench.edit(("", "new\n"))
    assert details(result)["created"] is True and read(bench.path) == b"new\n"


def test_editing_what_is_not_there_creates_nothing(bench: Bench) -> None:
    assert kind(bench.edit(("a", "b"))) == "not-found"
    assert os.listdir(bench.place.project) == []


def test_replace_all_counts_from_left_to_right(bench: Bench) -> None:
    write(bench.path, b"aaaa\r\na\n")
    result = bench.edit(("aa", "b"), replace_all=True)
    assert details(result)["replacements"] == 2 and read(bench.path) == b"bb\r\na\n"


@pytest.mark.parametrize("tool", ["write_file", "edit"])
def test_dry_run_reports_and_changes_nothing(bench: Bench, tool: str) -> None:
    write(bench.path, b"a\nb\n")
    change = (
        {"content": "A\nb\n"} if tool == "write_file" else {"old_string": "a", "new_string": "A"}
    )
    result = bench.call(tool, **change, dry_run=True)
    found = details(result)
    assert found["changed"] is True and found["created"] is False
    assert "-a\n+A\n" in found["diff"] and "-a\n+A\n" in result["content"][0]["text"]
    assert read(bench.path) == b"a\nb\n"
    bench.path += ".new"
    change = {"content": "x"} if tool == "write_file" else {"old_string": "", "new_string": "x"}
    assert details(bench.call(tool, **change, dry_run=True))["created"] is True
    assert os.listdir(bench.place.project) == ["f.txt"]


def test_a_change_of_line_endings_shows(bench: Bench) -> None:
    write(bench.path, b"a\r\nb\n")
    result = bench.call("write_file", content="a\nb\n")
    assert "mixed -> lf" in result["content"][0]["text"]
    assert "-a␍\n+a\n" in details(result)["diff"]


def test_expected_sha256_is_checked(bench: Bench) -> None:
    write(bench.path, b"a\n")
    digest = details(bench.call("read_file"))["sha256"]
    write(bench.path, b"b\n")
    stale = bench.call("write_file", content="c\n", expected_sha256=digest)
    assert kind(stale) == "stale" and read(bench.path) == b"b\n"
    digest = details(bench.call("read_file"))["sha256"].upper()
    assert kind(bench.edit(("b", "c"), expected_sha256=digest)) is None
    os.unlink(bench.path)
    assert kind(bench.call("write_file", content="c\n", expected_sha256=digest)) == "stale"
    assert kind(bench.call("write_file", content="c\n", expected_sha256="x")) == "invalid-arguments"


# (arguments beside file_path, the member that the message names)
INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("edit", {}, "old_string"),
    ("edit", {"old_string": "a"}, "new_string"),
    ("edit", {"old_string": "a", "new_string": "b", "edits": []}, "edits"),
    ("edit", {"edits": []}, "edits"),
    ("edit", {"edits": "x"}, "edits"),
    ("edit", {"edits": [{"old_string": "a"}]}, "edits[0].new_string"),
    ("edit", {"edits": [{"old_string": "a", "new_string": "b", "x": 1}]}, "edits[0].x"),
    ("edit", {"edits": [{"old_string": "a", "new_string": "b"}] * 2 + [{"old_string": "", "new_string": "b"}]},
     "edits[2].old_string"),
    ("edit", {"old_string": "a", "new_string": "\ud800"}, "new_string"),
    ("edit", {"old_string": "a", "new_string": "b", "replace_all": "yes"}, "replace_all"),
    ("write_file", {}, "content"),
    ("write_file", {"content": None}, "content"),
    ("write_file", {"content": 5}, "content"),
    ("write_file", {"content": "a\0b"}, "content"),
    ("edit", {"old_string": "a", "new_string": "\0"}, "new_string"),
    ("write_file", {"content": "x", "encoding": "klingon"}, "encoding"),
    ("write_file", {"content": "x", "dry_run": 1}, "dry_run"),
    ("read_file", {"offset": -1}, "offset"),
    ("read_file", {"limit": 0}, "limit"),
    ("read_file", {"limit": 1.5}, "limit"),
    ("read_file", {"limit": True}, "limit"),
    ("read_file", {"column": -1}, "column"),
    ("read_file", {"line": 1}, "line"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "member"), INVALID)
def test_wrong_arguments_are_named(
    bench: Bench, tool: str, arguments: dict[str, Any], member: str
) -> None:
    write(bench.path, b"a\n")
    result = bench.call(tool, **arguments)
    assert kind(result) == "invalid-arguments"
    assert result["content"][0]["text"].startswith(member)
    assert details(result)["error"]["path"] == member
    assert result["_meta"]["pinfold/decision"] is None
    assert read(bench.path) == b"a\n"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800", "surrogate"),
        ("a/" * 2100, "4096"),
        ("x" * 300, "too long"),
    ],
)
def test_invalid_paths(bench: Bench, path: str, words: str) -> None:
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"})):
        result = bench.place.call(bench.session, tool, file_path=path, **more)
        assert kind(result) == "invalid-path" and words in result["content"][0]["text"]
    assert os.listdir(bench.place.project) == []
