"""Encodings: marks, named codecs, bytes that nothing decodes, images by their bytes."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pinfold.compacting import reset
from pinfold.text.boundaries import is_sure
from pinfold.text.codec import Decoded, Splice, decode, escaping
from pinfold.text.edit import find
from pinfold.text.lines import normalize
from pinfold_protocol.errors import ToolError
from pinfold_protocol.retention import RETENTION_KEY
from support import Embedded, details, kind, read, wiped, write


class Bench:
    def __init__(self, base: Path) -> None:
        self.place = Embedded(base)
        self.session = self.place.open()
        self.path = str(self.place.project / "f.txt")

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.place.call(self.session, name, file_path=self.path, **arguments)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_c002_gbk_with_its_name_and_without(bench: Bench) -> None:
    before = "端口=1\n你好\n".encode("gbk")
    write(bench.path, before)
    refused = bench.call("edit", old_string="端口=1", new_string="端口=2")
    assert kind(refused) == "undecodable" and read(bench.path) == before
    unread = bench.call("read_file")
    assert kind(unread) == "undecodable" and details(unread)["error"]["byteOffset"] == 0
    done = bench.call("edit", old_string="端口=1", new_string="端口=2", encoding="gbk")
    assert kind(done) is None and details(done)["encoding"] == "gbk"
    assert read(bench.path) == "端口=2\n你好\n".encode("gbk")
    # The session remembers it for that file, also through its own write, and by a link.
    again = bench.call("edit", old_string="你好", new_string="再见")
    assert kind(again) is None and read(bench.path) == "端口=2\n再见\n".encode("gbk")
    assert bench.call("read_file")["content"][0]["text"] == "端口=2\n再见\n"
    os.symlink("f.txt", bench.path + ".link")
    bench.path += ".link"
    assert bench.call("read_file")["content"][0]["text"] == "端口=2\n再见\n"
    # Another session does not know.
    bench.session = bench.place.open()
    assert kind(bench.call("read_file")) == "undecodable"


def test_a_session_that_is_reset_forgets_encodings_too(bench: Bench) -> None:
    """What it read is no longer in the conversation, and neither is the name that was given."""
    write(bench.path, "你好\n".encode("gbk"))
    assert kind(bench.call("read_file", encoding="gbk")) is None
    assert kind(bench.call("read_file")) is None
    reset(bench.place.gateway, bench.session.session_id)
    assert kind(bench.call("read_file")) == "undecodable"
    assert kind(bench.call("edit", old_string="你好", new_string="再见")) == "undecodable"


def test_ascii_in_a_legacy_file_can_be_edited_without_its_name(bench: Bench) -> None:
    write(bench.path, "# 端口\nport=1\n".encode("gbk"))
    assert kind(bench.call("edit", old_string="port=1", new_string="port=2")) is None
    assert read(bench.path) == "# 端口\nport=2\n".encode("gbk")
    mixed = bench.call("edit", old_string="port=2", new_string="port=é")
    assert kind(mixed) == "undecodable" and "Name the encoding" in mixed["content"][0]["text"]


def test_a_guess_is_a_hint_and_no_more(bench: Bench) -> None:
    text = "Это обычный текст на русском языке, довольно длинный, чтобы его узнать.\n" * 5
    write(bench.path, text.encode("cp1251"))
    error = details(bench.call("read_file"))["error"]
    assert "guess" in error["message"]
    assert read(bench.path) == text.encode("cp1251")


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("latin-1", "é\r\nü\n"),
        ("cp1252", "“é”\n"),
        ("shift_jis", "日本語\nテスト\n"),
        ("euc-jp", "日本語\n"),
        ("euc_kr", "한국어\n"),
        ("big5", "繁體\n"),
        ("gb18030", "你好😀\n"),
        ("koi8-r", "Привет\n"),
        ("utf-16-le", "é\r\n😀\n"),
        ("utf-16-be", "é\n"),
        ("utf-32-le", "é\n"),
        ("cp437", "é▒\n"),
        ("utf-8-sig", "é\n"),
        ("utf-16", "é😀\n"),
        ("utf-32", "é😀\n"),
    ],
)
def test_any_codec_by_name(bench: Bench, encoding: str, content: str) -> None:
    made = bench.call("write_file", content=content, encoding=encoding)
    assert kind(made) is None, made
    assert read(bench.path) == content.encode(encoding)
    shown = bench.call("read_file", encoding=encoding)
    assert shown["content"][0]["text"] == content.replace("\r\n", "\n")
    first = content[0]
    done = bench.call("edit", old_string=first, new_string=f"{first}x{first}", encoding=encoding)
    assert kind(done) is None, done
    assert read(bench.path) == content.replace(first, f"{first}x{first}", 1).encode(encoding)
    rewritten = bench.call("write_file", content=content, encoding=encoding)
    assert kind(rewritten) is None and read(bench.path) == content.encode(encoding)


def test_a_codec_that_writes_a_character_in_two_ways_is_spliced_as_bytes(bench: Bench) -> None:
    """cp932 decodes 0x8790 and 0x81E0 to the same character, and encodes only one of them."""
    write(bench.path, b"\x87\x90 a \x81\xe0 b\n")
    done = bench.call("edit", old_string="b", new_string="日", encoding="cp932")
    assert kind(done) is None
    assert read(bench.path) == b"\x87\x90 a \x81\xe0 " + "日".encode("cp932") + b"\n"


@pytest.mark.parametrize(
    "encoding",
    [
        "iso2022_jp",
        "hz",
        "utf-7",
        "base64",
        "rot13",
        "idna",
        "undefined",
        "unicode_escape",
        "nonsense",
        "",
    ],
)
def test_what_is_no_encoding_of_files_is_refused(bench: Bench, encoding: str) -> None:
    write(bench.path, b"a\n")
    for tool, more in (
        ("read_file", {}),
        ("write_file", {"content": "b"}),
        ("edit", {"old_string": "a", "new_string": "b"}),
    ):
        result = bench.call(tool, encoding=encoding, **more)
        assert kind(result) == "invalid-arguments"
        assert details(result)["error"]["path"] == "encoding"
    assert read(bench.path) == b"a\n"


# (a tool, the rest of the call, the member that is named, the character's place in it)
UNSTORABLE: list[tuple[str, dict[str, Any], str, tuple[int, int]]] = [
    ("write_file", {"content": "ab\nc😀\n"}, "content", (4, 1)),
    ("edit", {"old_string": "b", "new_string": "ab\nc😀\n"}, "new_string", (4, 1)),
    ("edit", {"old_string": "\nb", "new_string": "\nb→"}, "new_string", (2, 1)),
    ("edit", {"edits": [{"old_string": "b", "new_string": "c"}, {"old_string": "c", "new_string": "c→"}]},
     "edits[1].new_string", (1, 0)),
    ("edit", {"edits": [{"old_string": "b", "new_string": "→"}]}, "edits[0].new_string", (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "more", "member", "at"), UNSTORABLE)
def test_what_cannot_be_encoded_is_named_with_its_place(
    bench: Bench, tool: str, more: dict[str, Any], member: str, at: tuple[int, int]
) -> None:
    write(bench.path, b"\xe9\r\nb\r\n")
    result = bench.call(tool, encoding="latin-1", **more)
    assert kind(result) == "invalid-arguments"
    error = details(result)["error"]
    assert error["message"].startswith(f"{member}: ") and bench.path in error["message"]
    assert "iso8859-1" in error["message"] and "U+" in error["message"]
    assert (error["path"], error["character"], error["line"]) == (member, *at)
    assert error.get("index") == (int(member[6]) if "edits" in more else None)
    assert read(bench.path) == b"\xe9\r\nb\r\n"


@pytest.mark.parametrize("tool", ["write_file", "edit"])
def test_what_cannot_be_encoded_creates_nothing(bench: Bench, tool: str) -> None:
    more = {"content": "→"} if tool == "write_file" else {"old_string": "", "new_string": "→"}
    result = bench.call(tool, encoding="latin-1", **more)
    assert kind(result) == "invalid-arguments" and bench.path in result["content"][0]["text"]
    assert not os.path.exists(bench.path)


def test_undecodable_bytes_can_be_shown_when_asked_for_and_stay(bench: Bench) -> None:
    write(bench.path, b"a\xff\xe2\x82 b\n")
    shown = bench.call("read_file", encoding="utf-8")
    assert shown["content"][0]["text"] == "a\ufffd\ufffd\ufffd b\n"
    done = bench.call("edit", old_string="b", new_string="é", encoding="utf-8")
    assert kind(done) is None and read(bench.path) == b"a\xff\xe2\x82 \xc3\xa9\n"


def test_c029_only_three_endings_end_a_line(bench: Bench) -> None:
    write(bench.path, "a\u2028b\x0bc\x85d\x0c\x1ce\nsecond\n".encode())
    result = bench.call("read_file", offset=1)
    assert result["content"][0]["text"] == "second\n" and details(result)["totalLines"] == 2


def test_c010_utf_16_is_text_and_stays_what_it_is(bench: Bench) -> None:
    write(bench.path, "host=a\r\nport=1\r\n".encode("utf-16"))
    assert bench.call("read_file")["content"][0]["text"] == "host=a\nport=1\n"
    assert kind(bench.call("edit", old_string="port=1", new_string="port=2")) is None
    assert read(bench.path) == "host=a\r\nport=2\r\n".encode("utf-16")


@pytest.mark.parametrize(
    "codec", ["utf-8", "gbk", "shift_jis", "latin-1", "utf-16-le", "cp932", "big5", "euc-kr"]
)
@given(data=st.data())
def test_a_splice_replaces_exactly_its_span_in_any_codec(codec: str, data: st.DataObject) -> None:
    raw = data.draw(st.binary(max_size=24))
    try:
        decoded = decode(raw, codec)
        text = decoded.text
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        outcome = decoded.spliced([Splice(start, end, "xy")])
    except ToolError:
        return  # characters that cannot be told apart
    insert = "xy".encode(codec)
    at = outcome.data.find(insert)
    assume(insert not in raw)
    # What stands before and after are the very bytes, and mean what they meant.
    assert at >= 0
    before, after = outcome.data[:at], outcome.data[at + len(insert) :]
    assert raw.startswith(before) and raw.endswith(after)
    assert len(before) + len(after) <= len(raw)
    assert before[len(decoded.mark) :].decode(codec, escaping(codec)) == text[:start]
    assert outcome.text == text[:start] + "xy" + text[end:]


@pytest.mark.parametrize(
    ("encoding", "before", "old", "after"),
    [
        ("shift_jis_2004", b"\x81\x5fabc tail\n", "abc", b"\x81\x5fXY tail\n"),
        ("big5hkscs", b"\x88\x62 tail\n", "\u00ca", None),
        ("big5hkscs", b"\x88\x62 tail\n", "tail", None),
        ("cp424", b"\x85\x75\xb6", "a", None),
    ],
)
def test_codecs_with_characters_that_cannot_be_told_apart(
    bench: Bench, encoding: str, before: bytes, old: str, after: bytes | None
) -> None:
    write(bench.path, before)
    result = bench.call("edit", old_string=old, new_string="XY", encoding=encoding)
    assert kind(result) == (None if after else "undecodable")
    assert read(bench.path) == (after or before)


@pytest.mark.parametrize(
    ("encoding", "text"), [("shift_jis", "¥100 ‾"), ("euc_jp", "¥"), ("cp932", "−")]
)
def test_no_look_alike_is_stored(bench: Bench, encoding: str, text: str) -> None:
    result = bench.call("write_file", content=f"a\n{text}\n", encoding=encoding)
    assert kind(result) == "invalid-arguments" and details(result)["error"]["line"] == 1
    assert not os.path.exists(bench.path)


def test_images_cannot_be_edited_under_another_encoding(bench: Bench) -> None:
    write(bench.path, PNG)
    for tool, more in (
        ("write_file", {"content": "x"}),
        ("edit", {"old_string": "IHDR", "new_string": "x"}),
    ):
        assert kind(bench.call(tool, encoding="latin-1", **more)) == "binary"


def test_a_mark_in_the_content_is_told(bench: Bench) -> None:
    for _ in range(2):
        made = bench.call("write_file", content="\ufeffa\n")
        assert details(made)["bom"] is True and read(bench.path) == b"\xef\xbb\xbfa\n"


def test_a_cr_and_an_lf_that_meet_stay_two_lines(bench: Bench) -> None:
    write(bench.path, b"\rb\n")
    assert kind(bench.call("edit", old_string="b\n", new_string="\n")) is None
    assert bench.call("read_file")["content"][0]["text"] == "\n\n"


SLOW = [
    (
        "replace_all of one letter",
        "a" * 300_000,
        {"old_string": "a", "new_string": "b", "replace_all": True},
        "too-large",
    ),
    (
        "repeated lines",
        "x\r\n" * 30_000,
        {"old_string": "x\r\n" * 15_000 + "y", "new_string": "z"},
        "no-match",
    ),
    (
        "repeated lines, found",
        "x\r\n" * 30_000,
        {"old_string": "x\r\n" * 15_000, "new_string": "z"},
        "ambiguous-match",
    ),
    (
        "long lines for a hint",
        ("".join(chr(97 + i * 7 % 26) for i in range(199)) + "\n") * 5000,
        {"old_string": "".join(chr(97 + i * 11 % 26) for i in range(199)), "new_string": "z"},
        "no-match",
    ),
]


@pytest.mark.parametrize(
    ("text", "change", "error"), [pytest.param(*row[1:], id=row[0]) for row in SLOW]
)
def test_pathological_texts_end_before_the_test_s_timeout(
    bench: Bench, text: str, change: dict[str, Any], error: str
) -> None:
    write(bench.path, text)
    assert kind(bench.call("edit", **change)) == error


def test_a_diff_of_repeated_lines_is_counted(bench: Bench) -> None:
    lines = [f"{i * 7919 % 110}\n" for i in range(60_000)]
    write(bench.path, "".join(lines))
    done = bench.call("write_file", content="".join(reversed(lines)))
    assert details(done)["diff"].startswith("@@ from line 1 on: ")


def test_offsets_of_many_splices_are_found_in_one_pass() -> None:
    text = "é," * 50_000
    decoded = Decoded(text.encode(), text)
    splices = [Splice(i, i + 1, ";") for i in range(1, len(text), 2)]
    assert decoded.spliced(splices).data == ("é;" * 50_000).encode()


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("name", "data", "mime_type"),
    [
        ("a.png", PNG, "image/png"),
        ("a.jpg", PNG, "image/png"),
        ("a.txt", b"\xff\xd8\xff\xe0..", "image/jpeg"),
        ("a.gif", b"GIF89a\x01\x00\x01\x00...", "image/gif"),
        ("gif.md", b"GIF89a is a format\n", None),
        ("a", b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
        ("empty.png", b"", None),
        ("page.png", b"<html>\n", None),
        ("riff.webp", b"RIFF\x01\x02\x03\x04WAVE", None),
    ],
)
def test_c156_images_are_told_by_their_bytes(
    bench: Bench, name: str, data: bytes, mime_type: str | None
) -> None:
    bench.path = write(f"{bench.place.memory}/{name}", data)
    result = bench.call("read_file")
    if mime_type is None:
        assert result["content"][0] == {"type": "text", "text": data.decode("latin-1")}
        return
    assert result["content"] == [
        {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime_type}
    ]
    found = details(result)
    assert (found["mimeType"], found["sizeBytes"]) == (mime_type, len(data))
    assert result["_meta"][RETENTION_KEY]["complete"] is True
    for tool, more in (
        ("write_file", {"content": "x"}),
        ("edit", {"old_string": "G", "new_string": "x"}),
    ):
        assert kind(bench.call(tool, **more)) == "binary"
    assert read(bench.path) == data


@pytest.mark.parametrize("data", [b"a\0b", b"x" * 8000 + b"\0", b"\x7fELF\0"])
def test_binary_is_told_by_its_bytes(bench: Bench, data: bytes) -> None:
    write(bench.path, data)
    assert kind(bench.call("read_file")) == "binary"
    assert kind(bench.call("edit", old_string="a", new_string="b")) == "binary"
    assert "name its encoding" in bench.call("read_file")["content"][0]["text"]
    write(bench.path, b"x" * 9000 + b"\0")
    assert kind(bench.call("read_file")) is None  # beyond the first 8 KiB it is a character


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    raw=st.lists(
        st.sampled_from(
            [
                b"a",
                b"b",
                b"c ",
                b"\n",
                b"\r\n",
                b"\r",
                b"\xff",
                b"\xc3",
                b"\xc3\xa9",
                b"\xef\xbb\xbf",
                b"\t",
            ]
        ),
        min_size=1,
        max_size=40,
    ).map(b"".join),
    draw=st.data(),
)
def test_a_file_after_an_edit_is_the_file_before_with_that_span_replaced(
    tmp_path: Path, raw: bytes, draw: st.DataObject
) -> None:
    with wiped(tmp_path / "drawn") as base:
        bench = Bench(base)
        write(bench.path, raw)
        text = decode(raw).text
        start = draw.draw(st.integers(0, len(text)))
        end = draw.draw(st.integers(start, len(text)))
        old = text[start:end]
        try:
            old.encode()
        except UnicodeEncodeError:
            return  # a byte that nothing decodes cannot be named
        assume(old and len(find(text, normalize(old))) == 1 and not old.endswith("\r"))
        before = os.stat(bench.path)
        shown = bench.call("read_file")
        after = os.stat(bench.path)
        assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
            after.st_ino,
            after.st_mtime_ns,
            after.st_ctime_ns,
        )
        assert kind(shown) == ("undecodable" if decode(raw).undecodable else None)
        if kind(shown) is None:
            assert shown["content"][0]["text"] == normalize(text)
        (span,) = find(text, normalize(old))
        done = bench.call("edit", old_string=old, new_string="XY")
        if decode(raw).unknown and not all(is_sure(text, at) for at in span):
            assert kind(done) == "undecodable" and read(bench.path) == raw
            return
        assert kind(done) is None, done
        mark = decode(raw).mark
        head = mark + text[: span[0]].encode("utf-8", "surrogateescape")
        tail = text[span[1] :].encode("utf-8", "surrogateescape")
        assert read(bench.path) == head + b"XY" + tail
        again = bench.call("read_file")
        if kind(again) is None:
            assert again["content"][0]["text"] == normalize(
                text[: span[0]] + "XY" + text[span[1] :]
            )
