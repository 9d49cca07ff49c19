"""The editor backend on the wire: an agent reads and edits what a person has open, whatever that
editor does with an edit."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import typist
from editor import uri
from support import Raw, decision, details, kind, read, request, resident_kib, write
from typist import Typist, workspace_edit

pytestmark = pytest.mark.slow  # a program for each way in which an editor may go wrong

OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"
CHANGE = {"old_string": "two", "new_string": "TWO"}


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Typist]:
    with Typist(tmp_path) as found:
        yield found.start()


def sha256(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def error(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = details(result)["error"]
    return found


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def where(result: dict[str, Any]) -> tuple[str, int | None]:
    told = details(result)
    return told["source"], told.get("version")


# Reading


def test_what_may_not_be_read_is_not_shown_by_a_change_of_it(editor: Typist) -> None:
    path = write(editor.project / "a.md", "disk\n")
    rule = {"decision": "deny", "tools": ["read_file"], "paths": ["a.md"]}
    agent = editor.agent(rules=[rule])
    name = editor.shows(path, OLD)
    for more in ({"dry_run": True}, {}, {"old_string": "three X"}):
        result = editor.does(agent, "edit", path, **(CHANGE | more))
        assert "may not read" in text(result) and "three" not in json.dumps(result)
    assert editor.texts[name] == NEW


def test_unsaved_text_is_read(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    assert where(editor.does(agent, "read_file", path)) == ("disk", None)
    name = editor.shows(path, OLD)
    assert where(editor.does(agent, "read_file", path)) == ("buffer", 1)
    editor.types(name, "typed\n")
    found = editor.does(agent, "read_file", path)
    assert text(found) == "typed\n" and where(found) == ("buffer", 2)
    assert details(found)["sha256"] == sha256("typed\n") and details(found)["sizeBytes"] == 6
    editor.shuts(name)
    assert text(editor.does(agent, "read_file", path)) == OLD


def test_c131_what_is_newer_on_disk_is_read_and_not_edited(editor: Typist) -> None:
    path = write(editor.project / "a.md", "v1\n")
    agent = editor.agent()
    name = editor.shows(path, "v1\n")
    assert where(editor.does(agent, "read_file", path)) == ("buffer", 1)
    write(path, "v2\n")
    found = editor.does(agent, "read_file", path)
    assert text(found) == "v2\n" and where(found) == ("disk", None)
    assert "older" in found["content"][1]["text"]
    dry = editor.does(agent, "write_file", path, content="v3\n", dry_run=True)
    refused = editor.does(agent, "write_file", path, content="v3\n")
    assert kind(dry) == kind(refused) == "stale" and error(refused)["applied"] is False
    assert read(path) == b"v2\n" and editor.texts[name] == "v1\n" and not editor.asked
    editor.types(name, "v2\n")  # reloaded
    assert kind(editor.does(agent, "write_file", path, content="v3\n")) is None
    assert editor.texts[name] == "v3\n" and read(path) == b"v2\n"
    editor.types(name, "v2\n")  # taken back by the person: that is what the disk has, again
    assert where(editor.does(agent, "read_file", path)) == ("buffer", 4)
    write(path, "v5\n")
    assert text(editor.does(agent, "read_file", path)) == "v5\n"


@pytest.mark.parametrize("odd", [{"version": None}, {"version": "1"}, {"text": None}])
def test_a_document_that_was_opened_in_words_that_are_none_is_not_known(
    editor: Typist, odd: dict[str, Any]
) -> None:
    """It has a text that may not be the disk's: neither is read, and nothing is changed."""
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    item = {"uri": uri(path), "languageId": "markdown", "version": 1, "text": "unsaved\n"}
    editor.tell("textDocument/didOpen", {"textDocument": item | odd})
    for tool, more in (("read_file", {}), ("edit", CHANGE)):
        refused = editor.does(agent, tool, path, **more)
        assert kind(refused) == "backend" and "not known" in text(refused)
    assert read(path) == OLD.encode() and not editor.asked
    editor.did_change(uri(path), 2, {"text": "typed\n"})  # the whole text: it is known again
    assert text(editor.does(agent, "read_file", path)) == "typed\n"
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri(path)}})
    assert text(editor.does(agent, "read_file", path)) == OLD


def test_a_text_that_was_never_on_disk_counts_as_unsaved(editor: Typist) -> None:
    """As an editor opens what it has recovered after a crash."""
    path = write(editor.project / "a.md", "disk\n")
    agent = editor.agent()
    while (
        os.stat(write(editor.project / "tick", "")).st_ctime_ns
        <= os.stat(path).st_ctime_ns + 20_000_000
    ):
        pass  # a tick of the clock that the times of files are taken from
    editor.shows(path, "recovered\n")
    found = editor.does(agent, "read_file", path)
    assert text(found) == "recovered\n" and where(found) == ("buffer", 1)


@pytest.mark.parametrize(
    ("disk", "shown", "sees", "new"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb\n", "a\nb\n", b"\xef\xbb\xbfa\r\nB\r\n"),
        (b"a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", b"a\r\nB\r\n"),
        ("a\nb\n".encode("utf-16"), "a\nb\n", "a\nb\n", "a\nB\n".encode("utf-16")),
        (b"a\rb\r", "a\nb\n", "a\nb\n", b"a\rB\r"),
        (b"a\nb", "a\nb", "a\nb", b"a\nB"),
    ],
)
def test_digests_are_of_what_saving_would_write(
    editor: Typist, disk: bytes, shown: str, sees: str, new: bytes
) -> None:
    path = write(editor.project / "a.md", disk)
    agent = editor.agent()
    name = editor.shows(path, shown)
    found = editor.does(agent, "read_file", path)
    assert text(found) == sees and details(found)["sha256"] == sha256(disk)
    made = editor.does(agent, "edit", path, old_string="b", new_string="B")
    assert details(made)["sha256"] == sha256(new)
    assert editor.texts[name] == shown.replace("b", "B") and read(path) == disk


def test_a_document_with_no_file_yet_is_read_and_edited(editor: Typist) -> None:
    path = editor.project / "new.md"
    agent = editor.agent()
    name = editor.shows(path, OLD)
    assert text(editor.does(agent, "read_file", path)) == OLD
    made = editor.does(agent, "edit", path, **CHANGE)
    assert details(made)["created"] is False and where(made) == ("buffer", 2)
    assert editor.texts[name] == NEW and not path.exists()
    assert kind(editor.does(agent, "edit", path, old_string="", new_string="x")) == (
        "invalid-arguments"
    )


def test_bytes_that_no_editor_can_tell_are_not_edited_there(editor: Typist) -> None:
    path = write(editor.project / "a.txt", b"caf\xe9\ntwo\n")
    agent = editor.agent()
    name = editor.shows(path, "caf\ufffd\ntwo\n")
    assert kind(editor.does(agent, "read_file", path)) == "undecodable"
    refused = editor.does(agent, "edit", path, **CHANGE)
    assert kind(refused) == "undecodable" and not editor.asked
    editor.types(name, "café\ntwo\n")  # read again there, in its encoding
    made = editor.does(agent, "edit", path, **CHANGE, encoding="latin-1")
    assert kind(made) is None and editor.texts[name] == "café\nTWO\n"
    assert details(made)["sha256"] == sha256("café\nTWO\n".encode("latin-1"))
    editor.types(name, "café 😀\n")
    assert kind(editor.does(agent, "read_file", path)) == "undecodable"
    assert read(path) == b"caf\xe9\ntwo\n"


# Editing


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("versioned", [True, False])
def test_an_edit_is_minimal_and_of_one_version(
    tmp_path: Path, encoding: str, versioned: bool
) -> None:
    before = "😀 one two\r\ne\u0301 one\n"
    with Typist(tmp_path, encoding) as editor:
        editor.start(workspaceEdit={"documentChanges": versioned})
        path = write(editor.project / "a.md", before)
        agent = editor.agent()
        name = editor.shows(path, before)
        made = editor.does(agent, "edit", path, old_string="one", new_string="1", replace_all=True)
        assert where(made) == ("buffer", 2) and details(made)["replacements"] == 2
        assert editor.texts[name] == before.replace("one", "1") and read(path) == before.encode()
        _, edits, version = workspace_edit(editor.asked[0])
        assert [each["newText"] for each in edits] == ["1", "1"]
        assert version == (1 if versioned else None)


def test_a_whole_write_touches_only_what_differs(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    dry = editor.does(agent, "write_file", path, content=NEW, dry_run=True)
    assert details(dry)["changed"] and not editor.asked and editor.texts[name] == OLD
    made = editor.does(agent, "write_file", path, content=NEW)
    assert "has not saved it" in text(made) and details(made)["sha256"] == sha256(NEW)
    (edit,) = workspace_edit(editor.asked[0])[1]
    assert edit["newText"] == "TWO" and edit["range"]["start"] == {"line": 1, "character": 0}
    again = editor.does(agent, "write_file", path, content=NEW)
    assert details(again)["changed"] is False and len(editor.asked) == 1


@pytest.mark.parametrize(
    "habit",
    [
        typist.applies,
        typist.replies_first,
        typist.tells_ranges,
        typist.one_by_one,
        typist.applies_and_never_replies,
        typist.says_no_and_applies,
    ],
)
def test_what_the_text_shows_is_what_counts(editor: Typist, habit: typist.Habit) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.habit = habit
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]
    made = editor.does(agent, "edit", path, edits=edits)
    assert kind(made) is None, text(made)
    assert editor.texts[name] == "1\ntwo\n3\n" and read(path) == OLD.encode()
    assert text(editor.does(agent, "read_file", path)) == "1\ntwo\n3\n"


def test_somebody_types_on_before_it_is_told(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.habit = typist.typed_after("four\n")
    assert kind(editor.does(agent, "edit", path, **CHANGE)) is None
    assert editor.texts[name] == NEW + "four\n"
    # What was typed is not known to the agent: it may not write over it.
    assert kind(editor.does(agent, "write_file", path, content="mine")) == "stale"
    assert editor.texts[name] == NEW + "four\n"


@pytest.mark.parametrize(
    ("content", "kept"), [("", "\n"), ("a\nb", "a\nb\n"), ("a\r\nb\n", "a\nb\n")]
)
def test_the_details_are_of_what_the_editor_made_of_it(
    editor: Typist, content: str, kept: str
) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.habit = typist.ends_every_line
    made = editor.does(agent, "write_file", path, content=content)
    assert kind(made) is None, text(made)
    assert details(made)["sha256"] == sha256(kept) and details(made)["sizeBytes"] == len(kept)
    assert editor.texts[name] == kept and details(made)["lineEnding"] == "lf"
    assert "No newline" not in details(made)["diff"]
    assert kind(editor.does(agent, "write_file", path, content="known\n")) is None


FAILURES = [
    # habit, kind, applied, what the document shows afterwards
    (typist.lies, "backend", None, OLD),
    (typist.never_replies, "backend", None, OLD),
    (typist.says_no, "backend", False, OLD),
    (typist.says_null, "backend", False, OLD),
    (typist.errs, "backend", False, OLD),
    (typist.a_line_off, "backend", None, "one\ntwo\nTWOee\n"),
    (typist.typed_before("!", typist.YES), "stale", None, OLD + "!"),
    (typist.typed_before("!", typist.NO), "stale", False, OLD + "!"),
    (typist.typed_before("!", typist.ERROR), "stale", False, OLD + "!"),
    (typist.typed_before("!", None), "stale", None, OLD + "!"),
    (typist.shuts, "backend", None, None),
]


@pytest.mark.parametrize(("habit", "failure", "was_applied", "left"), FAILURES)
def test_nothing_is_lost_whatever_an_editor_does(
    editor: Typist, habit: typist.Habit, failure: str, was_applied: bool | None, left: str | None
) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.habit = habit
    failed = editor.does(agent, "edit", path, **CHANGE)
    assert kind(failed) == failure, text(failed)
    assert error(failed)["applied"] is was_applied and len(editor.asked) == 1
    assert editor.texts.get(name) == left and read(path) == OLD.encode()
    editor.habit = typist.applies
    assert text(editor.does(agent, "read_file", path)) == (OLD if left is None else left)


def test_what_comes_too_late_is_seen_by_the_next_read(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.habit = typist.never_replies
    assert kind(editor.does(agent, "edit", path, **CHANGE)) == "backend"
    withdrawn = [each for each in editor.notifications if each["method"] == "$/cancelRequest"]
    assert len(withdrawn) == 1
    editor.types(name, NEW)
    assert text(editor.does(agent, "read_file", path)) == NEW


def test_an_editor_with_one_line_ending_mixes_none(editor: Typist) -> None:
    path = write(editor.project / "a.md", b"a\r\nb\r\n")
    agent = editor.agent()
    editor.shows(path, "a\nb\n")  # an editor that shows one ending for all
    made = editor.does(agent, "write_file", path, content="a\r\nb\nc\r\n")  # mixed
    assert kind(made) is None and details(made)["lineEnding"] == "crlf"
    assert details(made)["sha256"] == sha256("a\r\nb\r\nc\r\n") and len(editor.asked) == 1
    refused = editor.does(agent, "write_file", path, content="a\nb\r\nc\r\n")
    assert (
        kind(refused) == "backend" and error(refused)["applied"] is False and len(editor.asked) == 1
    )


def test_an_editor_that_applies_no_edits_is_not_asked(tmp_path: Path) -> None:
    with Typist(tmp_path) as editor:
        editor.start(applyEdit=False)
        path = write(editor.project / "a.md", OLD)
        agent = editor.agent()
        editor.shows(path, OLD)
        assert kind(editor.does(agent, "edit", path, **CHANGE)) == "backend"
        assert not editor.asked and read(path) == OLD.encode()


# The disk, for what is not open


def test_c136_what_is_not_open_is_changed_on_disk_and_told(editor: Typist) -> None:
    agent = editor.agent()
    memory = Path(editor.result("memory/roots", {"sessionId": agent})["roots"][0]["path"])
    for path, created in ((editor.project / "n.md", True), (memory / "t.md", True)):
        editor.notifications.clear()
        made = editor.does(agent, "write_file", path, content=OLD)
        assert details(made)["created"] is created and where(made) == ("disk", None)
        assert read(path) == OLD.encode()
        told = [each for each in editor.notifications if each["method"] == "file/didChange"]
        assert [each["params"] for each in told] == [
            {"sessionId": agent, "uri": uri(path), "kind": "created"}
        ]
    assert not editor.asked


def test_c132_unsaved_text_is_never_overwritten(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.types(name, "unsaved\n")
    made = editor.does(agent, "write_file", path, content="agent\n")
    assert kind(made) is None and editor.texts[name] == "agent\n"  # there, undo brings it back
    assert read(path) == OLD.encode() and where(made) == ("buffer", 3)


def test_c134_sessions_of_both_kinds_say_what_they_read(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent, local = editor.agent(), editor.agent(backend="local")
    editor.shows(path, OLD)
    assert where(editor.does(agent, "edit", path, **CHANGE)) == ("buffer", 2)
    found = editor.does(local, "read_file", path)
    assert text(found) == OLD and where(found) == ("disk", None)
    made = editor.does(local, "edit", path, old_string="one", new_string="1")
    assert where(made) == ("disk", None) and read(path) == b"1\ntwo\nthree\n"
    found = editor.does(agent, "read_file", path)  # unsaved: the person will be asked on saving
    assert text(found) == NEW and where(found) == ("buffer", 2)


def test_c135_what_the_editor_does_on_saving_shows_in_the_next_digest(editor: Typist) -> None:
    path = write(editor.project / "a.md", "two  \n")
    agent = editor.agent()
    name = editor.shows(path, "two  \n")
    made = editor.does(agent, "edit", path, **CHANGE)
    assert details(made)["sha256"] == sha256("TWO  \n")
    editor.types(name, "TWO\n")
    write(path, "TWO\n")
    editor.saves(name)
    found = editor.does(agent, "read_file", path)
    assert details(found)["sha256"] == sha256(read(path)) and where(found) == ("buffer", 3)
    write(path, "newer\n")
    assert text(editor.does(agent, "read_file", path)) == "newer\n"  # saved is saved


def test_without_an_editor_there_is_no_such_backend(tmp_path: Path) -> None:
    with Raw() as raw:
        raw.initialize()
        for backend, problem in (("editor", "textDocument"), ("nobody", "nobody"), ("", "''")):
            answer = raw.ask(
                "session/open",
                {"profile": "main", "projectRoot": str(tmp_path), "backend": backend},
            )
            assert answer["error"]["code"] == -32602
            assert answer["error"]["data"]["path"] == "backend"
            assert problem in answer["error"]["data"]["problem"]
        session = raw.open(tmp_path, backend="local")["sessionId"]
        path = write(tmp_path / "a", "x")
        assert "source" not in details(raw.call(session, "read_file", file_path=path))


# Which file a document is


@pytest.mark.parametrize("through", ["file", "directory", "percent"])
def test_a_document_is_found_whatever_its_uri_says(editor: Typist, through: str) -> None:
    path = Path(write(editor.project / "d" / "a b.md", OLD))
    os.symlink(path, editor.project / "link.md")
    os.symlink(editor.project / "d", editor.project / "e")
    shown = {
        "file": str(editor.project / "link.md"),
        "directory": str(editor.project / "e" / "a b.md"),
        "percent": uri(path).replace("a%20b", "%61%20b"),
    }[through]
    agent = editor.agent()
    name = editor.shows(shown, "unsaved two\n")
    for each in (path, editor.project / "link.md", editor.project / "e" / ".." / "d" / "a b.md"):
        assert text(editor.does(agent, "read_file", each)) == "unsaved two\n"
    assert kind(editor.does(agent, "edit", path, **CHANGE)) is None
    assert editor.texts[name] == "unsaved TWO\n" and read(path) == OLD.encode()


def test_a_uri_that_is_spelt_otherwise_is_the_same_document(editor: Typist) -> None:
    path = write(editor.project / "a b.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    other = name.replace("a%20b", "%61%20%62")
    editor.did_change(other, 2, {"text": "one two\n"})
    found = editor.does(agent, "read_file", path)
    assert text(found) == "one two\n" and where(found) == ("buffer", 2)
    editor.tell("textDocument/didClose", {"textDocument": {"uri": other}})
    assert where(editor.does(agent, "read_file", path)) == ("disk", None)


def test_closing_one_spelling_leaves_the_other_open(editor: Typist) -> None:
    """The disk beneath a document that is still open is not read, nor written."""
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, "one unsaved\n")
    other = editor.shows(name.replace("file:///", "file://localhost/"), "two unsaved\n")
    assert kind(editor.does(agent, "read_file", path)) == "backend"  # which text it is to be
    editor.types(name, "typed two\n")  # goes to the text of this spelling
    editor.shuts(other)
    found = editor.does(agent, "read_file", path)
    assert text(found) == "typed two\n" and where(found) == ("buffer", 2)
    assert kind(editor.does(agent, "edit", path, **CHANGE)) is None
    assert editor.texts[name] == "typed TWO\n" and read(path) == OLD.encode()
    editor.shuts(name)
    assert where(editor.does(agent, "read_file", path)) == ("disk", None)


def test_another_name_of_the_same_file_is_read_and_not_edited(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    os.link(path, editor.project / "b.md")
    agent = editor.agent()
    editor.shows(editor.project / "b.md", OLD)
    assert where(editor.does(agent, "read_file", path)) == ("buffer", 1)
    refused = editor.does(agent, "edit", path, **CHANGE)
    assert kind(refused) == "backend" and "b.md" in text(refused) and not editor.asked
    made = editor.does(agent, "edit", editor.project / "b.md", **CHANGE)
    assert kind(made) is None and details(made)["otherLinks"] == 1
    assert "may change too" in text(made)


def test_a_file_that_is_open_twice_is_not_edited(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    os.symlink(path, editor.project / "b.md")
    agent = editor.agent()
    editor.shows(path, OLD)
    second = editor.shows(editor.project / "b.md", OLD)
    assert text(editor.does(agent, "read_file", path)) == OLD
    assert kind(editor.does(agent, "edit", path, **CHANGE)) == "backend"
    editor.types(second, "other\n")
    assert kind(editor.does(agent, "read_file", path)) == "backend" and not editor.asked


def test_documents_that_are_no_files_are_left_alone(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    for name in ("untitled:a.md", "vscode-remote://ssh/a.md", f"file://other{path}", "file:///%00"):
        editor.did_open(name, "x\n")
    editor.did_open("untitled:" + path, "x\n")
    assert where(editor.does(agent, "read_file", path)) == ("disk", None)


# The policy


def test_a_pinned_document_is_denied_and_nothing_is_sent(editor: Typist) -> None:
    dream = editor.agent("dream")
    memory = Path(editor.result("memory/roots", {"sessionId": dream})["roots"][0]["path"])
    pinned = write(memory / "pinned" / "p.md", OLD)
    os.symlink(pinned, memory / "alias.md")
    write(memory / "t.md", OLD)
    write(memory / "d" / "t.md", OLD)
    os.link(pinned, memory / "twin.md")
    names = [editor.shows(each, OLD) for each in (pinned, memory / "alias.md", memory / "twin.md")]
    for path in (pinned, memory / "alias.md", memory / "twin.md", memory / "d" / ".." / "alias.md"):
        for tool, arguments in (("edit", CHANGE), ("write_file", {"content": "mine"})):
            denied = editor.does(dream, tool, path, **arguments)
            assert kind(denied) == "denied" and decision(denied)["rule"] == "pinned", path
    assert not editor.asked and all(editor.texts[each] == OLD for each in names)
    assert read(pinned) == OLD.encode()
    assert text(editor.does(dream, "read_file", pinned)) == OLD
    made = editor.does(dream, "edit", memory / "t.md", **CHANGE)
    assert kind(made) is None and where(made) == ("disk", None)


def test_hard_links_are_denied_whatever_a_session_wants(editor: Typist) -> None:
    scope = {"hardLinks": "ignore"}
    params = {"profile": "dream", "projectRoot": str(editor.project), "scope": scope}
    opened = editor.result("session/open", params | {"backend": "editor"})
    assert opened["scope"]["hardLinks"] == "deny"
    named = {"sessionId": opened["sessionId"], "scope": scope}
    assert editor.result("session/configure", named)["scope"]["hardLinks"] == "deny"
    assert editor.result("session/open", params)["scope"]["hardLinks"] == "ignore"


# Staleness, order, the end


def test_staleness_counts_what_the_editor_shows(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent(scope={"staleness": "require-read"})
    name = editor.shows(path, OLD)
    assert kind(editor.does(agent, "edit", path, **CHANGE)) == "not-read"
    editor.does(agent, "read_file", path, limit=1)
    assert kind(editor.does(agent, "edit", path, **CHANGE)) is None
    editor.types(name, "typed\n")
    assert kind(editor.does(agent, "write_file", path, content="x")) == "stale"
    editor.does(agent, "read_file", path)
    assert kind(editor.does(agent, "write_file", path, content="x\n")) is None
    write(path, "x\n")  # saved as it is, and closed: the agent knows it
    editor.saves(name)
    editor.shuts(name)
    assert kind(editor.does(agent, "write_file", path, content="y\n")) is None
    wrong = editor.does(
        agent, "edit", path, old_string="y", new_string="z", expected_sha256="0" * 64
    )
    assert kind(wrong) == "stale"


def test_changes_of_one_document_queue_up(editor: Typist) -> None:
    path = write(editor.project / "a.md", "0\n")
    agent, other = editor.agent(), editor.agent()
    name = editor.shows(path, "0\n")
    wanted = [
        editor.calls(
            agent if n % 2 else other, "edit", path, old_string=f"{n}\n", new_string=f"{n + 1}\n"
        )
        for n in range(6)
    ]
    assert [kind(editor.outcome(each)) for each in wanted] == [None] * 6
    assert editor.texts[name] == "6\n"


def test_what_is_typed_before_a_call_counts_for_it(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    for n in range(20):
        editor.types(name, f"text {n}\n")
        wanted = editor.calls(agent, "read_file", path)
        editor.types(name, f"later {n}\n")
        assert text(editor.outcome(wanted)) == f"text {n}\n"


def test_a_sent_edit_is_not_called_cancelled(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()

    def cancelled_then_applied(
        editor: Typist, name: str, edits: list[dict[str, Any]], reply: typist.Reply
    ) -> None:
        editor.tell("$/cancelRequest", {"id": wanted})
        typist.applies(editor, name, edits, reply)

    editor.shows(path, OLD)
    editor.habit = cancelled_then_applied
    wanted = editor.calls(agent, "edit", path, **CHANGE)
    assert kind(editor.outcome(wanted)) is None


def test_what_the_editor_shows_is_not_guessed(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    name = editor.shows(path, OLD)
    editor.did_change(name, 2, {"range": "somewhere", "text": "x"})  # who knows what it did
    for tool, arguments in (("read_file", {}), ("edit", CHANGE)):
        assert kind(editor.does(agent, tool, path, **arguments)) == "backend"
    assert not editor.asked and read(path) == OLD.encode()
    editor.types(name, NEW)
    assert text(editor.does(agent, "read_file", path)) == NEW


def test_the_record_has_the_digests_of_the_document(tmp_path: Path) -> None:
    with Typist(tmp_path) as editor:
        record = tmp_path / "record" / "audit.jsonl"
        editor.meet({"audit": {"path": str(record)}})
        path = write(editor.project / "a.md", OLD)
        agent = editor.agent()
        name = editor.shows(path, OLD)
        editor.types(name, "two\n")
        editor.does(agent, "edit", path, **CHANGE)
        assert editor.result("shutdown") is None
        editor.tell("exit")
        editor.status()
        (line,) = [json.loads(each) for each in read(record).splitlines()]
        assert line["outcome"] == "done" and line["tool"] == "edit"
        digests = line["sha256Before"], line["sha256After"]
        assert digests == (sha256("two\n"), sha256("TWO\n"))


@contextmanager
def waiting(base: Path) -> Iterator[tuple[Typist, int]]:
    """An editor that was asked for an edit, does nothing, and may take its time."""
    with Typist(base) as editor:
        editor.start(seconds=600)
        path = write(editor.project / "a.md", OLD)
        agent = editor.agent()
        editor.shows(path, OLD)
        wanted = editor.calls(agent, "edit", path, **CHANGE)
        assert editor.receive()["method"] == "workspace/applyEdit"
        yield editor, wanted
        assert read(path) == OLD.encode()


def test_shutdown_does_not_wait_for_an_edit(tmp_path: Path) -> None:
    with waiting(tmp_path) as (editor, wanted):
        editor.send(request("bye", "shutdown"))
        answers: dict[Any, Any] = {}
        while len(answers) < 2:
            message = editor.receive()
            answers[message["id"]] = message["result"]
        assert kind(answers[wanted]) == "backend" and answers["bye"] is None


@pytest.mark.slow
def test_a_thousand_edits_leave_nothing_behind(editor: Typist) -> None:
    path = write(editor.project / "a.md", OLD)
    agent = editor.agent()
    kept = []
    for count in (200, 1000):
        for _ in range(count):
            name = editor.shows(path, OLD)
            assert kind(editor.does(agent, "edit", path, **CHANGE)) is None
            editor.shuts(name)
        kept.append(resident_kib(editor.process.pid))
    assert kept[1] - kept[0] < 1024


@pytest.mark.parametrize("end", ["end_input", "shutdown"])
def test_an_editor_that_goes_away_keeps_nobody_waiting(tmp_path: Path, end: str) -> None:
    with waiting(tmp_path) as (editor, wanted):
        if end == "shutdown":
            editor.send(request("bye", "shutdown"))
            editor.tell("exit")
        editor.stdin.close()
        answer = editor.receive()
        while answer.get("id") != wanted:
            answer = editor.receive()
        assert kind(answer["result"]) == "backend"
        assert editor.status() == (1 if end == "end_input" else 0)


def test_a_turn_that_narrows_waits_for_a_sent_edit(editor: Typist) -> None:
    """`turn/begin` answers when nothing that was decided before is still under way."""
    agent = editor.agent()
    memory = Path(editor.result("memory/roots", {"sessionId": agent})["roots"][0]["path"])
    path = write(memory / "pinned" / "p.md", OLD)
    name = editor.shows(path, OLD)
    order: list[str] = []

    def narrowed_meanwhile(
        editor: Typist, name: str, edits: list[dict[str, Any]], reply: typist.Reply
    ) -> None:
        editor.send(request("turn", "turn/begin", {"sessionId": agent, "profile": "dream"}))
        typist.applies(editor, name, edits, reply)

    editor.habit = narrowed_meanwhile
    wanted = editor.calls(agent, "edit", path, **CHANGE)
    while len(order) < 2:
        message = editor.receive()
        if message.get("method") == "workspace/applyEdit":
            editor._apply(message)
        else:
            order.append(str(message["id"]))
    assert set(order) == {str(wanted), "turn"} and editor.texts[name] == NEW
    assert kind(editor.does(agent, "edit", path, old_string="TWO", new_string="2")) == "denied"
