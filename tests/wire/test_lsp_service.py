"""The language service over the wire: features, moves, what the session may not do."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from editor import MOVES, TEXT, Editor, applied, spot, uri
from support import peak_kib, read, request, snapshot, write

pytestmark = pytest.mark.slow  # many programs, and editors that take their time

NO_MOVES = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}
LITERAL = {
    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
    "disabledSupport": True,
}
RICH = TEXT | {
    "codeAction": LITERAL,
    "hover": {"contentFormat": ["markdown"]},
    "rename": {"prepareSupport": True},
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
}
TOP = {"range": spot((0, 0), (0, 0)), "context": {"diagnostics": []}}
DREAM = {"session": {"profile": "dream"}}


def topic(title: str, body: str = "") -> str:
    return f"---\ntype: feedback\nname: {title}\ndescription: about {title}\n---\n\n{body}\n"


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One editor for many tests, each with files of its own."""
    with Editor(tmp_path_factory.mktemp("editor")).met(text=RICH) as editor:
        yield editor


@pytest.fixture
def place(met: Editor) -> Path:
    """A directory of its own below the memory root of the shared editor."""
    path = met.memory / f"d{uuid.uuid4().hex}"
    path.mkdir()
    return path


def codes(editor: Editor, name: str) -> list[str]:
    report = editor.on("textDocument/diagnostic", name)
    assert report["kind"] == "full"
    return [each["code"] for each in report["items"]]


# Diagnostics


def test_diagnostics_are_pushed_with_the_version(met: Editor, place: Path) -> None:
    name = met.did_open(place / "x.md", "no topic", 5)
    assert met.next_diagnostics(name) == [["frontmatter-missing"]]
    (push,) = met.told("textDocument/publishDiagnostics", name)
    assert push["version"] == 5
    (found,) = push["diagnostics"]
    assert (found["severity"], found["source"]) == (1, "pinfold")
    href = found["codeDescription"]["href"]
    assert href.startswith("file:///") and href.endswith("language.md#frontmatter-missing")
    met.did_change(name, 6, {"text": topic("X")})
    assert met.next_diagnostics(name, 2) == [["frontmatter-missing"], []]
    met.did_change(name, 7, {"text": "x"})
    met.next_diagnostics(name, 3)
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})
    assert met.next_diagnostics(name, 4)[3] == []


def test_an_editor_that_pulls_is_not_pushed_to(tmp_path: Path) -> None:
    workspace = MOVES | {"diagnostics": {"refreshSupport": True}}
    with Editor(tmp_path).met(text=TEXT | {"diagnostic": {}}, workspace=workspace) as editor:
        path = editor.memory / "MEMORY.md"
        name = editor.did_open(path, "- [x](x.md)\n")
        assert codes(editor, name) == ["link-dead"]
        assert editor.told("textDocument/publishDiagnostics", name) == []
        # An agent makes the missing topic: the editor is told to pull again.
        call = {"file_path": str(path.parent / "x.md"), "content": topic("X")}
        params = {"sessionId": "editor", "name": "write_file", "arguments": call}
        editor.send(request("w", "tools/call", params))
        asked = [editor.receive(), editor.receive()]
        assert {each.get("method") for each in asked} == {None, "workspace/diagnostic/refresh"}
        # One question at a time, however much is changed before it is answered.
        for number in range(5):
            editor.call("editor", "write_file", file_path=f"{path.parent}/{number}.md", content="")
        (first,) = [each["id"] for each in asked if "method" in each]
        editor.send({"jsonrpc": "2.0", "id": first, "result": None})
        assert editor.receive()["method"] == "workspace/diagnostic/refresh"
        editor.send(request("next", "session/list", {}))
        assert editor.receive()["id"] == "next"
        assert codes(editor, name) == []


def test_what_is_pushed_follows_the_disk(met: Editor, place: Path) -> None:
    index = write(met.memory / "MEMORY.md", f"- [x]({place.name}/x.md)\n")
    name = met.did_open(index, read(index).decode())
    assert met.next_diagnostics(name) == [["link-dead"]]
    met.call("editor", "write_file", file_path=str(place / "x.md"), content=topic("X"))
    assert met.next_diagnostics(name, 2)[1] == []
    os.unlink(place / "x.md")
    met.tell(
        "workspace/didChangeWatchedFiles", {"changes": [{"uri": uri(place / "x.md"), "type": 3}]}
    )
    assert met.next_diagnostics(name, 3)[2] == ["link-dead"]
    write(place / "x.md", topic("X"))
    met.tell("textDocument/didSave", {"textDocument": {"uri": name}})
    assert met.next_diagnostics(name, 4)[3] == []
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})


def test_places_are_judged_by_what_is_there(met: Editor, place: Path) -> None:
    root = met.memory
    base = place.name
    write(root / "pinned" / base / "p.md", topic("P"))
    os.link(root / "pinned" / base / "p.md", place / "twin.md")
    os.symlink(root / "pinned" / base, place / "alias")
    write(met.base / f"{base}.md", topic("O"))
    os.symlink(met.base / f"{base}.md", place / "out.md")
    write(place / "mark.md", b"\xef\xbb\xbf" + topic("M").encode())
    expected = {
        root / "pinned" / base / "p.md": ["pinned"],
        root / "pinned" / base / "new.md": ["pinned"],  # not on the disk yet
        place / "twin.md": ["pinned-hard-link"],
        place / "alias" / "p.md": ["pinned"],
        place / "pinned" / "x.md": ["pinned-nested"],
        place / "out.md": ["document-leaves"],
        place / "mark.md": ["frontmatter-mark"],
        place / "x.md": [],
    }
    found = {path: codes(met, met.did_open(path, topic("X"))) for path in expected}
    assert found == expected


@pytest.mark.parametrize(
    "name", ["untitled:Untitled-1.md", "vscode-remote://ssh/m/x.md", "file:///elsewhere/x.md"]
)
def test_other_documents_are_left_alone(met: Editor, name: str) -> None:
    met.did_open(name, "no topic")
    assert codes(met, name) == []
    for method in ("documentSymbol", "codeLens", "documentLink"):
        assert met.on(f"textDocument/{method}", name) == []
    assert met.at("textDocument/hover", name, 0, 0) is None
    assert met.told("textDocument/publishDiagnostics", name) == []


def test_a_uri_may_be_encoded_in_any_way(met: Editor, place: Path) -> None:
    name = uri(place / "a ü.md").replace("/d", "/%64", 1) + ""
    met.did_open(name, "no topic")
    assert codes(met, name) == ["frontmatter-missing"]
    assert met.next_diagnostics(name) == [["frontmatter-missing"]]


def test_a_root_that_is_a_link_is_still_that_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    session = {"memory": {"projectRoot": str(tmp_path / "link")}}
    with Editor(tmp_path).met({"session": session}) as editor:
        for base in ("link", "real"):
            name = editor.did_open(tmp_path / base / "pinned" / "x.md", topic("X"))
            assert codes(editor, name) == ["pinned"]


# Looking


def test_hover_links_and_symbols(met: Editor, place: Path) -> None:
    write(place / "a b.md", topic("A *b*"))
    text = topic("I", "# H\n\n## 😀 [A](a%20b.md#x) [B](none.md) [C](https://x.org)")
    name = met.did_open(place / "i.md", text)
    hover = met.at("textDocument/hover", name, 8, 8)
    assert hover["contents"]["kind"] == "markdown"
    assert hover["contents"]["value"].startswith(
        "**A \\*b\\***\n\nabout A \\*b\\*\n\nfeedback · changed"
    )
    assert hover["range"] == spot((8, 6), (8, 21))  # the emoji is two units
    assert "no such file" in met.at("textDocument/hover", name, 8, 25)["contents"]["value"]
    assert met.at("textDocument/hover", name, 8, 45) is None
    assert met.at("textDocument/hover", name, 99, 9) is None
    (link,) = met.on("textDocument/documentLink", name)
    assert link == {"range": spot((8, 10), (8, 20)), "target": uri(place / "a b.md") + "#x"}
    matter, heading = met.on("textDocument/documentSymbol", name)
    assert (matter["name"], heading["name"]) == ("I", "H")
    assert heading["children"][0]["name"].startswith("😀")


def test_completion(met: Editor, place: Path) -> None:
    name = met.did_open(place / "x.md", "---\nty\n---\n")
    items = met.at("textDocument/completion", name, 1, 2)["items"]
    assert [each["textEdit"]["newText"] for each in items] == ["type: ", "name: ", "description: "]
    write(place / "t.md", topic("Title"))
    index = met.did_open(met.memory / "MEMORY.md", "😀\n- [x](t) y\n")
    listed = met.at("textDocument/completion", index, 1, 7)
    (item,) = [each for each in listed["items"] if each["label"] == f"{place.name}/t.md"]
    assert item["textEdit"] == {"range": spot((1, 6), (1, 7)), "newText": f"{place.name}/t.md"}
    assert (item["detail"], item["documentation"]) == ("Title", "about Title")
    assert listed["isIncomplete"] is False
    met.tell("textDocument/didClose", {"textDocument": {"uri": index}})


def test_explain(met: Editor) -> None:
    name = met.did_open(met.memory / "pinned" / "e.md", topic("E"))
    answer = met.commanded("pinfold.explain", {"uri": name, "show": True})["result"]
    decisions = {profile: told["decision"] for profile, told in answer["profiles"].items()}
    assert decisions == {
        "main": "allow",
        "extraction": "deny",
        "dream": "deny",
        "remember": "allow",
    }
    assert answer["profiles"]["dream"]["rule"] == "pinned"
    (shown,) = [each for each in met.notifications if each["method"] == "window/showMessage"]
    assert "dream: may not." in shown["params"]["message"]


# Pinning, by the editor


def actions(editor: Editor, name: str, **more: Any) -> list[Any]:
    found: list[Any] = editor.on("textDocument/codeAction", name, **(TOP | more))
    return found


def laid(editor: Editor, place: Path) -> tuple[Path, Path, str]:
    """A topic, another that links to it, and an index of both; only the topic is open."""
    topic_at, other = place / "t.md", place / "o.md"
    write(topic_at, topic("T", "[other](o.md)"))
    write(other, topic("O", "[t](./t.md#part) and [T](t.md)"))
    name = place.name
    write(editor.memory / "MEMORY.md", f"- 😀 [T]({name}/t.md) — x\r\n- [O]({name}/o.md)\r\n")
    return topic_at, other, editor.did_open(topic_at, topic("T", "[other](o.md)"))


def test_pin_and_unpin_are_one_edit(met: Editor, place: Path) -> None:
    path, other, name = laid(met, place)
    before = snapshot(met.memory)
    (action,) = actions(met, name)
    assert (action["title"], action["kind"]) == ("Pin", "refactor.move")
    assert "edit" not in action and action["command"]["command"] == "pinfold.pin"
    lenses = [each["command"]["title"] for each in met.on("textDocument/codeLens", name)]
    assert lenses == ["Pin", "Who may change it?"]
    edits: list[Any] = []

    def editor(edit: Any) -> Any:
        edits.append(edit)
        return applied(edit)

    argument = action["command"]["arguments"][0]
    pinned = met.memory / "pinned" / place.name / "t.md"
    answer = met.commanded("pinfold.pin", argument, editor)
    assert answer["result"] == {"from": str(path), "to": str(pinned)}
    assert len(edits) == 1
    texts = {each["textDocument"]["uri"]: each for each in edits[0]["documentChanges"][:-1]}
    assert texts[name]["textDocument"]["version"] == 1  # open
    assert texts[uri(other)]["textDocument"]["version"] is None
    assert edits[0]["documentChanges"][-1]["kind"] == "rename"
    base = place.name
    assert read(met.memory / "MEMORY.md").decode() == (
        f"- 😀 [T](pinned/{base}/t.md) — x\r\n- [O]({base}/o.md)\r\n"
    )
    assert b"[t](../pinned/%s/t.md#part) and [T](../pinned/%s/t.md)" % (
        base.encode(), base.encode()
    ) in read(other)  # fmt: skip
    assert f"[other](../../{base}/o.md)".encode() in read(pinned)
    # And back, from the document where it is now.
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})
    name = met.did_open(pinned, read(pinned).decode())
    assert [each["title"] for each in actions(met, name)] == ["Unpin"]
    answer = met.commanded("pinfold.unpin", {"uri": name})
    assert answer["result"] == {"from": str(pinned), "to": str(path)}
    after = snapshot(met.memory)
    same = {name: after[name][2] for name in before if name.endswith("MEMORY.md")}
    assert same == {name: before[name][2] for name in same}
    assert read(path) == before[str(path)][2]


def test_pin_from_the_index(met: Editor, place: Path) -> None:
    path, _, _ = laid(met, place)
    index = met.did_open(met.memory / "MEMORY.md", read(met.memory / "MEMORY.md").decode())
    (action,) = actions(met, index, range=spot((0, 8), (0, 8)))
    assert action["command"]["arguments"] == [{"uri": uri(path)}]
    assert actions(met, index, range=spot((2, 0), (2, 0))) == []
    assert actions(met, index, context={"diagnostics": [], "only": ["quickfix"]}) == []
    for kind in ("refactor", "refactor.move", ""):
        context = {"diagnostics": [], "only": [kind]}
        assert len(actions(met, index, range=spot((0, 8), (0, 8)), context=context)) == 1
    met.tell("textDocument/didClose", {"textDocument": {"uri": index}})


@pytest.mark.parametrize("known", [True, False])
def test_pin_is_a_refactoring_to_an_editor_that_knows_such(tmp_path: Path, known: bool) -> None:
    edits = {"documentChanges": True, "resourceOperations": ["rename"], "metadataSupport": known}
    workspace = {"applyEdit": True, "workspaceEdit": edits}
    with Editor(tmp_path).met(text=RICH, workspace=workspace) as editor:
        _, _, name = laid(editor, editor.memory)
        params = {"command": "pinfold.pin", "arguments": [{"uri": name}]}
        editor.send(request("pin", "workspace/executeCommand", params))
        asked = editor.receive()["params"]
        assert asked.get("metadata") == ({"isRefactoring": True} if known else None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"result": {"applied": True}}, "did not move the file."),
        ({"result": {"applied": False, "failureReason": "stale"}}, "stale"),
        ({"result": {"applied": False}}, "refused"),
        ({"error": {"code": -32603, "message": "no"}}, "error"),
        ({"result": None}, None),
        ({"result": {"nonsense": 1}}, None),
    ],
)
def test_the_word_of_an_editor_is_not_enough(
    met: Editor, place: Path, said: Any, words: str | None
) -> None:
    _, _, name = laid(met, place)
    before = snapshot(met.memory)
    error = met.commanded("pinfold.pin", {"uri": name}, lambda _: said)["error"]
    assert error["code"] == -32803
    assert (words or "did not move the file") in error["message"]
    assert snapshot(met.memory) == before
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})


def test_a_file_that_moved_without_its_links_is_no_success(met: Editor, place: Path) -> None:
    """The editor renames, and drops the edits of the texts."""
    path, other, name = laid(met, place)

    def moves_only(edit: Any) -> Any:
        return applied({"documentChanges": [edit["documentChanges"][-1]]})

    error = met.commanded("pinfold.pin", {"uri": name}, moves_only)["error"]
    pinned = met.memory / "pinned" / place.name / "t.md"
    assert pinned.exists() and not path.exists()
    assert error["code"] == -32803 and "were not mended in" in error["message"]
    for left in (met.memory / "MEMORY.md", other, pinned):
        assert str(left) in error["message"]
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})


@pytest.mark.parametrize("shows", [True, False])
def test_an_open_index_is_mended_when_the_editor_shows_it(
    met: Editor, place: Path, shows: bool
) -> None:
    """It says so a moment after its reply, or it never does."""
    _, _, name = laid(met, place)
    path = met.memory / "MEMORY.md"
    text = read(path).decode()
    index = met.did_open(path, text)

    def editor(edit: Any) -> Any:
        changes = edit["documentChanges"]
        mine = [each for each in changes if each.get("textDocument", {}).get("uri") == index]
        told = applied({"documentChanges": [each for each in changes if each not in mine]})
        if shows:
            edits = [{"range": each["range"], "text": each["newText"]} for each in mine[0]["edits"]]
            met.did_change(index, 2, *edits)
        return told

    answer = met.commanded("pinfold.pin", {"uri": name}, editor)
    assert read(path).decode() == text  # it is not saved
    if shows:
        assert "result" in answer
    else:
        assert str(path) in answer["error"]["message"]
        assert "o.md" not in answer["error"]["message"]
    for each in (name, index):
        met.tell("textDocument/didClose", {"textDocument": {"uri": each}})


def gone(path: Path, _: Path) -> None:
    path.unlink()


def taken(path: Path, memory: Path) -> None:
    write(memory / "pinned" / path.parent.name / "t.md", "taken")


def linked(path: Path, _: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "o.md")


@pytest.mark.parametrize("damage", [gone, taken, linked])
def test_what_cannot_be_pinned_is_said(met: Editor, place: Path, damage: Any) -> None:
    path, _, name = laid(met, place)
    damage(path, met.memory)
    before = snapshot(met.memory)
    answer = met.commanded("pinfold.pin", {"uri": name})
    assert answer["error"]["code"] == -32803
    assert snapshot(met.memory) == before


@pytest.mark.parametrize("workspace", [MOVES, NO_MOVES])
def test_a_topic_that_is_open_under_another_name_is_not_moved_without_it(
    tmp_path: Path, workspace: dict[str, Any]
) -> None:
    """What is not saved there would stay behind, or be mended by the columns of the disk."""
    with Editor(tmp_path).met(text=RICH, workspace=workspace) as editor:
        path, _, name = laid(editor, editor.memory)
        editor.tell("textDocument/didClose", {"textDocument": {"uri": name}})
        (tmp_path / "alias").symlink_to(editor.memory)
        alias = editor.did_open(tmp_path / "alias/t.md", "typed\n" + topic("T", "[other](o.md)"))
        before = snapshot(tmp_path)
        answer = editor.commanded("pinfold.pin", {"uri": uri(path)})
        assert answer["error"]["code"] == -32803
        assert f"{tmp_path}/alias/t.md" in answer["error"]["message"]
        assert snapshot(tmp_path) == before
        editor.tell("textDocument/didClose", {"textDocument": {"uri": alias}})
        assert "result" in editor.commanded("pinfold.pin", {"uri": uri(path)})


def test_a_link_to_a_topic_is_not_moved_in_its_place(met: Editor, place: Path) -> None:
    path, _, name = laid(met, place)
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})
    link = met.base / f"{place.name}.md"
    link.symlink_to(path)
    name = met.did_open(link, read(path).decode())
    before = snapshot(met.memory)
    assert "It is a link" in met.commanded("pinfold.pin", {"uri": name})["error"]["message"]
    assert snapshot(met.memory) == before
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})


def test_the_end_does_not_wait_for_an_editor_that_never_answers(tmp_path: Path) -> None:
    with Editor(tmp_path).met(text=RICH) as editor:
        memory = editor.memory
        _, _, name = laid(editor, memory)
        before = snapshot(memory)
        params = {"command": "pinfold.pin", "arguments": [{"uri": name}]}
        editor.send(request("pin", "workspace/executeCommand", params))
        assert editor.receive()["method"] == "workspace/applyEdit"
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "pin"}}
        editor.send(cancel, request("next", "session/list", {}))
        assert editor.receive()["id"] == "next"  # too late: the editor may have done it
        editor.send(request("end", "shutdown"))
        answers = {each["id"]: each for each in (editor.receive(), editor.receive())}
        assert answers.keys() == {"pin", "end"}
        error = answers["pin"]["error"]
        assert error["code"] == -32803 and "not known" in error["message"]
        editor.tell("exit")
        assert editor.status() == 0
        assert snapshot(memory) == before


# Renaming


def test_rename_a_topic_with_its_links(met: Editor, place: Path) -> None:
    path, other, _ = laid(met, place)
    index = met.did_open(met.memory / "MEMORY.md", read(met.memory / "MEMORY.md").decode())
    asked = met.at("textDocument/prepareRename", index, 0, 7)
    assert asked["placeholder"] == f"{place.name}/t.md"
    assert met.at("textDocument/prepareRename", index, 0, 0) is None
    edit = met.at("textDocument/rename", index, 0, 7, newName=f"{place.name}/a b")
    applied(edit)
    assert not path.exists() and (place / "a b.md").exists()
    assert f"[T]({place.name}/a%20b.md)".encode() in read(met.memory / "MEMORY.md")
    assert b"[t](a%20b.md#part) and [T](a%20b.md)" in read(other)
    met.tell("textDocument/didClose", {"textDocument": {"uri": index}})


@pytest.mark.parametrize(
    ("character", "name"), [(7, "../out"), (7, "/abs.md"), (7, ""), (7, "{place}/o.md"), (0, "x")]
)
def test_a_rename_that_cannot_be(met: Editor, place: Path, character: int, name: str) -> None:
    laid(met, place)
    index = met.did_open(met.memory / "MEMORY.md", read(met.memory / "MEMORY.md").decode())
    params = {
        "textDocument": {"uri": index},
        "position": {"line": 0, "character": character},
        "newName": name.format(place=place.name),
    }
    assert met.ask("textDocument/rename", params)["error"]["code"] == -32803
    met.tell("textDocument/didClose", {"textDocument": {"uri": index}})


def test_links_follow_a_move_that_the_editor_makes(met: Editor, place: Path) -> None:
    path, _, _ = laid(met, place)
    files = [{"oldUri": uri(path), "newUri": uri(place / "n.md")}]
    edit = met.result("workspace/willRenameFiles", {"files": files})
    assert all("kind" not in each for each in edit["documentChanges"])
    applied(edit)
    assert f"[T]({place.name}/n.md)".encode() in read(met.memory / "MEMORY.md")
    elsewhere = [{"oldUri": "file:///a.md", "newUri": "untitled:b.md"}]
    assert met.result("workspace/willRenameFiles", {"files": elsewhere}) is None


# What the session may not do


def test_a_dream_session_may_neither_pin_nor_unpin(tmp_path: Path) -> None:
    with Editor(tmp_path).met(DREAM, text=RICH) as editor:
        path, _, name = laid(editor, editor.memory)
        pinned = write(editor.memory / "pinned" / "p.md", topic("P"))
        held = editor.did_open(pinned, topic("P"))
        before = snapshot(tmp_path)
        for each, title in ((name, "Pin"), (held, "Unpin")):
            (action,) = actions(editor, each)
            assert action["title"] == title and "command" not in action
            assert "read-only" in action["disabled"]["reason"]
            command = f"pinfold.{title.lower()}"
            error = editor.commanded(command, {"uri": each})["error"]
            assert error["code"] == -32803 and "read-only" in error["message"]
        index = editor.did_open(editor.memory / "MEMORY.md", "[p](pinned/p.md) [t](t.md)")
        for column, new in ((1, "q"), (20, "pinned/q")):
            params = {
                "textDocument": {"uri": index},
                "position": {"line": 0, "character": column},
                "newName": new,
            }
            assert "read-only" in editor.ask("textDocument/rename", params)["error"]["message"]
        files = [{"oldUri": uri(path), "newUri": uri(editor.memory / "pinned" / "t.md")}]
        answer = editor.ask("workspace/willRenameFiles", {"files": files})
        assert "read-only" in answer["error"]["message"]
        assert snapshot(tmp_path) == before


def test_a_pinned_topic_keeps_a_link_that_may_not_be_changed(tmp_path: Path) -> None:
    with Editor(tmp_path).met(DREAM, text=RICH) as editor:
        write(editor.memory / "a.md", topic("A"))
        pinned = write(editor.memory / "pinned" / "p.md", topic("P", "[a](../a.md)"))
        index = write(editor.memory / "MEMORY.md", "[a](a.md)\n")
        name = editor.did_open(index, "[a](a.md)\n")
        edit = editor.at("textDocument/rename", name, 0, 5, newName="b")
        named = [each["textDocument"]["uri"] for each in edit["documentChanges"] if "edits" in each]
        assert named == [name]
        assert uri(pinned) not in named


def test_a_session_that_was_closed_serves_nothing(tmp_path: Path) -> None:
    with Editor(tmp_path).met(text=RICH) as editor:
        name = editor.did_open(editor.memory / "x.md", "x")
        editor.next_diagnostics(name)
        editor.result("session/close", {"sessionId": "editor"})
        answer = editor.ask(
            "textDocument/hover",
            {"textDocument": {"uri": name}, "position": spot((0, 0), (0, 0))["start"]},
        )
        assert answer["error"]["code"] == -32010


# An editor that takes no file operations


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """As eglot 1.9 says of itself."""
    base = tmp_path_factory.mktemp("plain")
    with Editor(base).met(text=RICH, workspace=NO_MOVES) as editor:
        yield editor


@pytest.fixture
def corner(plain: Editor) -> Path:
    path = plain.memory / f"d{uuid.uuid4().hex}"
    path.mkdir()
    return path


def test_the_gateway_moves_where_the_editor_cannot(plain: Editor, corner: Path) -> None:
    path, other, name = laid(plain, corner)
    opened = plain.did_open(other, read(other).decode())
    edits: list[Any] = []

    def editor(edit: Any) -> Any:
        edits.append(edit)
        told = applied(edit)
        plain.did_change(opened, 2, {"text": read(other).decode()})
        return told

    answer = plain.commanded("pinfold.pin", {"uri": name}, editor)
    pinned = plain.memory / "pinned" / corner.name / "t.md"
    assert answer["result"] == {"from": str(path), "to": str(pinned)}
    assert pinned.exists() and not path.exists()
    assert f"[other](../../{corner.name}/o.md)".encode() in read(pinned)
    assert f"(pinned/{corner.name}/t.md)".encode() in read(plain.memory / "MEMORY.md")
    (edit,) = edits  # of what is open, and nothing but texts
    assert [each["textDocument"]["uri"] for each in edit["documentChanges"]] == [opened]
    told = [each["params"] for each in plain.notifications if each["method"] == "memory/didChange"]
    kinds = [each["kind"] for each in told if corner.name in each["path"]]
    assert kinds == ["deleted", "created", "changed"]


def test_the_word_of_an_editor_on_an_open_text_is_not_enough(plain: Editor, corner: Path) -> None:
    _, other, name = laid(plain, corner)
    opened = plain.did_open(other, read(other).decode())
    said = {"result": {"applied": True}}
    error = plain.commanded("pinfold.pin", {"uri": name}, lambda _: said)["error"]
    assert error["code"] == -32803
    assert str(other) in error["message"] and "MEMORY.md" not in error["message"]
    plain.tell("textDocument/didClose", {"textDocument": {"uri": opened}})


def test_unsaved_changes_are_not_moved_away_from(plain: Editor, corner: Path) -> None:
    _, _, name = laid(plain, corner)
    plain.did_change(name, 2, {"range": spot((0, 0), (0, 0)), "text": "x"})
    before = snapshot(plain.memory)
    error = plain.commanded("pinfold.pin", {"uri": name})["error"]
    assert "not saved" in error["message"]
    assert snapshot(plain.memory) == before
    params = {
        "textDocument": {"uri": name},
        "position": {"line": 0, "character": 0},
        "newName": "x",
    }
    assert plain.ask("textDocument/rename", params)["error"]["code"] == -32803


def test_carriage_returns_that_an_editor_does_not_tell_stay(plain: Editor, corner: Path) -> None:
    path, text = corner / "t.md", topic("T", "[t](o.md)")
    write(path, text.replace("\n", "\r\n"))
    name = plain.did_open(path, text)
    assert "result" in plain.commanded("pinfold.pin", {"uri": name})
    after = read(plain.memory / "pinned" / corner.name / "t.md")
    expected = text.replace("o.md", f"../../{corner.name}/o.md").replace("\n", "\r\n")
    assert after == expected.encode()


# Size


def test_a_huge_document_stands_in_nobodys_way(met: Editor, place: Path) -> None:
    text = topic("Huge") + "- [x](y.md) text 😀\n" * 500_000
    name = uri(place / "huge.md")
    item = {"uri": name, "languageId": "markdown", "version": 1, "text": text}
    opening = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}}
    before = len(met.notifications)
    met.send(opening, request("next", "session/list", {}))
    # The host's own methods are answered before it has been looked at.
    assert met.receive()["id"] == "next"
    assert met.notifications[before:] == []
    for version in range(2, 30):
        line = {"range": spot((400_000, 0), (400_000, 1)), "text": "-"}
        met.did_change(name, version, line)
    assert met.on("textDocument/codeLens", name) != []
    write(place / "y.md", topic("Y"))
    assert len(met.on("textDocument/documentLink", name)) == 2000
    assert met.at("textDocument/hover", name, 400_000, 4) is not None
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})


def test_ten_thousand_topics(met: Editor, tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(10_000):
        write(root / f"t{number}.md", topic(f"T{number}"))
    session = {"memory": {"projectRoot": str(root)}}
    with Editor(tmp_path).met({"session": session}) as editor:
        index = editor.did_open(root / "MEMORY.md", "- [x](\n")
        params = {"textDocument": {"uri": index}, "position": {"line": 0, "character": 6}}
        editor.send(request("c", "textDocument/completion", params))
        editor.send(request("s", "session/list", {}))
        assert editor.receive()["id"] == "s"
        listed = editor.receive()["result"]
        assert (len(listed["items"]), listed["isIncomplete"]) == (2000, True)
        # What is typed on brings what was left out.
        editor.did_change(index, 2, {"text": "- [x](t987\n"})
        listed = editor.at("textDocument/completion", index, 0, 10)
        assert listed["isIncomplete"] and len(listed["items"]) == 2000
        labels = [each["label"] for each in listed["items"][:11]]
        assert set(labels) == {"t987.md", *(f"t987{digit}.md" for digit in range(10))}
        # A call that makes a topic is seen at once.
        call = {"file_path": str(root / "t987new.md"), "content": topic("New")}
        editor.call("editor", "write_file", **call)
        listed = editor.at("textDocument/completion", index, 0, 10)
        assert "t987new.md" in [each["label"] for each in listed["items"][:12]]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_memory_is_flat_after_a_thousand_documents(met: Editor, place: Path) -> None:
    """Documents of 20 KB, opened, changed and closed: nothing of them stays."""
    text = topic("X") + "- [x](y.md) 😀 text\n" * 1_000

    def cycles(count: int, at: str) -> int:
        for number in range(count):
            name = met.did_open(place / f"{at}{number}.md", text)
            met.did_change(name, 2, {"range": spot((0, 0), (0, 0)), "text": "x"})
            met.at("textDocument/hover", name, 0, 0)
            met.tell("textDocument/didClose", {"textDocument": {"uri": name}})
            met.notifications.clear()
        met.result("session/list", {})
        return peak_kib(met.process.pid)

    cycles(100, "warm")
    before = cycles(100, "first")
    after = cycles(1000, "then")
    assert after - before < 8 * 1024, (before, after)
