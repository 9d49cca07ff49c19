"""The language server on our wire: envelopes, errors, order, documents, encodings."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from editor import TEXT, Editor, spot, uri
from support import DEADLINE, SERVE, Raw, clean_env, framed, request, write

TOPIC = "---\ntype: user\nname: N\ndescription: D\n---\n"


def code(answer: dict[str, Any]) -> int:
    found: int = answer["error"]["code"]
    return found


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One editor for many tests: what one of them does wrong must harm no other."""
    with Editor(tmp_path_factory.mktemp("editor")).met() as editor:
        yield editor


def fresh(editor: Editor, text: str) -> str:
    """A new document below memory."""
    return editor.did_open(editor.memory / f"{uuid.uuid4()}.md", text)


# Who gets one


@pytest.mark.parametrize(
    ("capabilities", "mounted"),
    [
        ({"textDocument": TEXT}, True),
        ({"textDocument": {}}, False),
        ({"textDocument": None}, False),
        ({"textDocument": [1]}, False),
        ({"workspace": {"applyEdit": True}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_only_a_client_with_documents_gets_a_language_server(
    tmp_path: Path, capabilities: Any, mounted: bool
) -> None:
    with Editor(tmp_path) as editor:
        told = editor.result("initialize", {"capabilities": capabilities})["capabilities"]
        assert ("hoverProvider" in told) is mounted
        assert told["experimental"]["pinfold"]["protocolVersion"] == 1
        answer = editor.ask("textDocument/hover", {})
        assert code(answer) == (-32602 if mounted else -32601)
        assert editor.result("session/list", {})["sessions"] == (
            [] if not mounted else [{
                "sessionId": "editor", "profile": "main", "projectRoot": str(Path.cwd()),
                "turns": [], "calls": 0, "denials": 0,
            }]
        )  # fmt: skip


def test_initialize_is_answered_before_pygls_is_imported(tmp_path: Path) -> None:
    """An lsprotocol whose import does not end, until somebody reads from its pipe."""
    write(tmp_path / "lsprotocol" / "__init__.py", f"open({str(tmp_path / 'pipe')!r}, 'w').close()")
    os.mkfifo(tmp_path / "pipe")
    with Raw(clean_env(PYTHONPATH=str(tmp_path))) as raw:
        told = raw.result("initialize", {"capabilities": {"textDocument": TEXT}})
        assert told["capabilities"]["hoverProvider"] is True
        os.close(os.open(tmp_path / "pipe", os.O_RDONLY))  # it was being imported


@pytest.mark.parametrize(("root", "expected"), [("file:///d%20e", "/d e"), (None, None)])
def test_the_project_of_the_editors_session(
    tmp_path: Path, root: str | None, expected: str | None
) -> None:
    with Editor(tmp_path).met(rootUri=root) as editor:
        (session,) = editor.result("session/list", {})["sessions"]
    assert session["projectRoot"] == (expected or str(Path.cwd()))


def test_the_editors_session_is_what_its_options_say(tmp_path: Path) -> None:
    wanted = {
        "profile": "dream",
        "sessionId": "mine",
        "projectRoot": "/p",
        "scope": {"shell": "deny"},
    }
    with Editor(tmp_path).met({"session": wanted}) as editor:
        # It is there before anything that came later, and its name is taken.
        params = {"sessionId": "mine", "profile": "main", "projectRoot": "/"}
        assert code(editor.ask("session/open", params)) == -32602
        (session,) = editor.result("session/list", {})["sessions"]
        assert (session["profile"], session["projectRoot"]) == ("dream", "/p")
        explained = editor.result(
            "policy/explain",
            {"sessionId": "mine", "name": "run_shell_command", "arguments": {"command": "ls"}},
        )
        assert explained["decision"] == "deny"


@pytest.mark.parametrize(
    ("session", "path"),
    [
        ({"profil": "dream"}, "profil"),
        ({"profile": "drem"}, "profile"),
        ({"projectRoot": "x"}, "projectRoot"),
        ({"sessionId": ""}, "sessionId"),
        ({"scope": {"protectPined": True}}, "scope.protectPined"),
        ({"memory": {"userRoot": "x"}}, "memory.userRoot"),
        ({"rules": [{"decision": "deny", "tools": ["edti"]}]}, "rules[0].tools[0]"),
        ({"backend": "editor"}, "backend"),
        ([], ""),
    ],
)
def test_a_wrong_session_refuses_initialize(tmp_path: Path, session: Any, path: str) -> None:
    with Editor(tmp_path) as editor:
        params = {
            "capabilities": {"textDocument": TEXT},
            "initializationOptions": {"pinfold": {"session": session}},
        }
        answer = editor.ask("initialize", params)
        assert code(answer) == -32602
        whole = "initializationOptions.pinfold.session"
        assert answer["error"]["data"]["path"] == (f"{whole}.{path}" if path else whole)


def test_nothing_is_kept_of_a_wrong_session(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        options = {"pinfold": {"session": {"profile": "dream", "projectRoot": "x"}}}
        params = {"capabilities": {"textDocument": TEXT}, "initializationOptions": options}
        assert code(editor.ask("initialize", params)) == -32602
        editor.meet()
        sessions = editor.result("session/list", {})["sessions"]
        assert [each["profile"] for each in sessions] == ["main"]


def test_a_session_for_a_client_without_documents_is_refused(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        options = {"pinfold": {"session": {"profile": "dream"}}}
        answer = editor.ask("initialize", {"initializationOptions": options})
        assert answer["error"]["data"]["path"] == "initializationOptions.pinfold.session"


# Errors

POSITION = {"line": 0, "character": 0}
DOCUMENT = {"uri": "file:///x.md"}


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("textDocument/unheardOf", {}, -32601),
        ("textDocument/references", {"textDocument": DOCUMENT, "position": POSITION}, -32601),
        ("window/showMessage", {}, -32601),
        ("textDocument/didOpen", {}, -32602),
        ("textDocument/hover", None, -32602),
        ("textDocument/hover", [], -32602),
        ("textDocument/hover", 5, -32602),
        ("textDocument/hover", {"textDocument": DOCUMENT}, -32602),
        ("textDocument/hover", {"textDocument": DOCUMENT, "position": None}, -32602),
        (
            "textDocument/hover",
            {"textDocument": DOCUMENT, "position": {"line": "x", "character": 0}},
            -32602,
        ),
        (
            "textDocument/hover",
            {"textDocument": DOCUMENT, "position": {"line": -1, "character": 0}},
            -32602,
        ),
        ("textDocument/codeAction", {"textDocument": DOCUMENT}, -32602),
        ("workspace/executeCommand", {"command": "rm"}, -32602),
        ("workspace/executeCommand", {"command": "pinfold.pin"}, -32602),
        ("workspace/executeCommand", {"command": "pinfold.pin", "arguments": [1]}, -32602),
        ("workspace/executeCommand", {"command": "pinfold.pin", "arguments": [{}, {}]}, -32602),
        (
            "workspace/executeCommand",
            {"command": "pinfold.explain", "arguments": [{"uri": "x", "more": 1}]},
            -32602,
        ),
        (
            "workspace/executeCommand",
            {"command": "pinfold.explain", "arguments": [{"uri": "untitled:x.md"}]},
            -32803,
        ),
        ("textDocument/hover", {"textDocument": DOCUMENT, "position": POSITION, "zzz": 1}, None),
        ("textDocument/hover", {"textDocument": {"uri": "\0"}, "position": POSITION}, None),
        ("textDocument/documentSymbol", {"textDocument": {"uri": "untitled:Untitled-1"}}, None),
        ("textDocument/documentSymbol", {"textDocument": {"uri": "vscode-remote://h/x.md"}}, None),
        ("textDocument/documentSymbol", {"textDocument": {"uri": "file://host/x.md"}}, None),
        ("textDocument/documentSymbol", {"textDocument": {"uri": "file:///%zz%00.md"}}, None),
    ],
)
def test_every_request_is_answered_once(
    met: Editor, method: str, params: Any, expected: int | None
) -> None:
    answer = met.ask(method, params)
    assert (answer["error"]["code"] if "error" in answer else None) == expected
    met.send(request("next", "session/list", {}))
    assert met.receive()["id"] == "next"  # and nothing came in between
    assert "Traceback" not in str(answer)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", {"textDocument": 5}),
        ("textDocument/didChange", None),
        ("textDocument/didClose", {"textDocument": DOCUMENT}),
        ("textDocument/didChange", {"textDocument": {"uri": "file:///x", "version": 1}, "contentChanges": [{"text": ""}]}),
        ("textDocument/willSave", {"textDocument": DOCUMENT, "reason": 1}),
        ("workspace/didChangeConfiguration", {"settings": None}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "file:///x", "type": 1}]}),
        ("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [{"uri": "file:///x", "name": "x"}]}}),
        ("notebookDocument/didChange", {"notebookDocument": {"uri": "x", "version": 1}, "change": {}}),
        ("$/setTrace", {"value": "verbose"}),
        ("$/unheardOf", {}),
        ("textDocument/hover", {"textDocument": DOCUMENT, "position": POSITION}),
        ("initialize", {"capabilities": {}}),
    ],
)  # fmt: skip
def test_no_notification_is_answered_or_harms(met: Editor, method: str, params: Any) -> None:
    before = len(met.notifications)
    met.tell(method, params)
    met.send(request("next", "session/list", {}))
    assert met.receive()["id"] == "next"
    assert met.notifications[before:] == []


def test_the_end_is_ours(tmp_path: Path) -> None:
    with Editor(tmp_path).met() as editor:
        editor.did_open(tmp_path / "x.md", TOPIC)
        assert editor.result("shutdown") is None
        assert code(editor.ask("textDocument/hover", {})) == -32600
        editor.tell("exit")
        assert editor.status() == 0


def test_a_cancelled_request_is_answered_so(met: Editor) -> None:
    name = fresh(met, TOPIC)
    hover = request(
        "h", "textDocument/hover", {"textDocument": {"uri": name}, "position": POSITION}
    )
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "h"}}
    met.send(hover, cancel)
    answer = met.receive()
    assert (answer["id"], answer["error"]["code"]) == ("h", -32800)
    assert "result" in met.ask("session/list", {})


METHODS = [
    "textDocument/hover", "textDocument/completion", "textDocument/documentSymbol",
    "textDocument/documentLink", "textDocument/codeLens", "textDocument/codeAction",
    "textDocument/diagnostic", "textDocument/prepareRename", "textDocument/rename",
    "workspace/willRenameFiles", "workspace/executeCommand", "workspace/symbol",
    "textDocument/willSaveWaitUntil", "$/unheardOf",
]  # fmt: skip
HEARD = ["didOpen", "didChange", "didClose", "didSave"]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 7, 1.5, 2**40, "", "x", "file:///x.md", [], {}, [1], "\0"]
)
NUMBER = st.integers(0, 3) | ODD
POINT = st.fixed_dictionaries({"line": NUMBER, "character": NUMBER}) | ODD
SPAN = st.fixed_dictionaries({"start": POINT, "end": POINT}) | ODD
CHANGE = st.fixed_dictionaries({"text": st.text(max_size=3) | ODD}, optional={"range": SPAN}) | ODD
NAMED = st.fixed_dictionaries(
    {"uri": st.sampled_from(["{x}", "untitled:x.md"]) | ODD},
    optional={"version": NUMBER, "text": st.text(max_size=9) | ODD, "languageId": st.just("x")},
)
PARAMS: st.SearchStrategy[Any] = (
    st.fixed_dictionaries(
        {"textDocument": NAMED | ODD},
        optional={
            "position": POINT,
            "range": SPAN,
            "context": st.just({"diagnostics": []}) | ODD,
            "newName": st.text(max_size=3) | ODD,
            "files": st.lists(
                st.just({"oldUri": "{x}", "newUri": "file:///y.md"}) | ODD, max_size=2
            )
            | ODD,
            "command": st.sampled_from(["pinfold.explain", "pinfold.unpin"]) | ODD,
            "arguments": st.lists(st.just({"uri": "{x}"}) | ODD, max_size=2) | ODD,
            "contentChanges": st.lists(CHANGE, max_size=2) | ODD,
        },
    )
    | ODD
)


def placed(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: placed(each, name) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, name) for each in value]
    return name if value == "{x}" else value


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(METHODS),
    PARAMS,
    st.lists(st.tuples(st.sampled_from(HEARD), PARAMS), max_size=2),
)
def test_whatever_is_sent_is_no_bug_of_ours(
    met: Editor, method: str, params: Any, heard: list[tuple[str, Any]]
) -> None:
    name = uri(met.memory / "any.md")
    for each, more in heard:
        met.tell(f"textDocument/{each}", placed(more, name))
    answer = met.ask(method, placed(params, name))
    assert answer.get("error", {"code": None})["code"] in (None, -32601, -32602, -32803)


# Documents


def text_of(editor: Editor, name: str) -> str:
    """What the gateway has: told by where the first heading of the document is."""
    (symbol,) = editor.on("textDocument/documentSymbol", name)
    return str(symbol["name"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([{"range": spot((0, 2), (0, 3)), "text": "B"}], "B"),
        ([{"text": "# C\n"}], "C"),  # the whole text, though told ranges
        ([{"range": spot((0, 2), (0, 3)), "text": ""}, {"range": spot((0, 2), (0, 2)), "text": "D"}], "D"),
        ([], "a"),
        ([{"range": spot((0, 3), (0, 3)), "rangeLength": 0, "text": "\u2028e"}], "a\u2028e"),
    ],
)  # fmt: skip
def test_what_an_editor_types_is_what_is_looked_at(
    met: Editor, changes: Any, expected: str
) -> None:
    name = fresh(met, "# a\n")
    met.did_change(name, 2, *changes)
    assert text_of(met, name) == expected


def test_a_document_that_is_opened_twice_has_the_newer_text(met: Editor) -> None:
    path = met.memory / "twice.md"
    met.did_open(path, "# a\n")
    name = met.did_open(path, "# b\n", 7)
    assert text_of(met, name) == "b"


def test_a_missed_change_is_not_papered_over(met: Editor) -> None:
    name = fresh(met, "# a\n")
    met.did_change(name, 2, {"range": "nonsense", "text": "b"})
    assert met.on("textDocument/documentSymbol", name) == []
    met.did_change(name, 3, {"range": spot((0, 2), (0, 3)), "text": "c"})
    assert met.on("textDocument/documentSymbol", name) == []
    met.did_change(name, 4, {"text": "# d\n"})
    assert text_of(met, name) == "d"


def test_a_document_that_is_closed_is_what_the_disk_has(met: Editor) -> None:
    path = met.memory / "closed.md"
    write(path, "# disk\n")
    name = met.did_open(path, "# buffer\n")
    assert text_of(met, name) == "buffer"
    met.tell("textDocument/didClose", {"textDocument": {"uri": name}})
    assert text_of(met, name) == "disk"


@pytest.mark.parametrize(
    ("offered", "chosen", "column", "length"),
    [
        (["utf-8", "utf-16"], "utf-8", 5, 4),
        (["utf-32", "utf-8"], "utf-32", 2, 1),
        (None, "utf-16", 3, 2),
    ],
)
def test_columns_are_counted_as_agreed(
    tmp_path: Path, offered: Any, chosen: str, column: int, length: int
) -> None:
    with Editor(tmp_path) as editor:
        told = editor.meet(encodings=offered)
        assert told["positionEncoding"] == chosen
        name = editor.did_open(editor.memory / "MEMORY.md", "😀 [x](y.md)\n")
        (found,) = editor.on("textDocument/diagnostic", name)["items"]
        assert found["range"] == spot((0, length + 5), (0, length + 9))
        # and on the way in: what stands behind the emoji and the blank becomes a heading
        editor.did_change(name, 2, {"range": spot((0, 0), (0, column - 1)), "text": "#"})
        editor.did_change(name, 3, {"range": spot((0, 2), (0, 11)), "text": "h"})
        assert text_of(editor, name) == "h"


def test_a_line_may_end_in_any_way(met: Editor) -> None:
    name = fresh(met, "a\r\nb\rc\n# d")
    met.did_change(name, 2, {"range": spot((3, 2), (3, 3)), "text": "e"})
    (symbol,) = met.on("textDocument/documentSymbol", name)
    assert (symbol["name"], symbol["location"]["range"]["start"]["line"]) == ("e", 3)


def test_stdout_stays_clean_and_one_command_serves(tmp_path: Path) -> None:
    params = {"capabilities": {"textDocument": TEXT}, "rootUri": None}
    messages = [
        request(1, "initialize", params),
        {"jsonrpc": "2.0", "method": "initialized"},
        request(2, "textDocument/hover", {}),
        request(3, "shutdown"),
        {"jsonrpc": "2.0", "method": "exit"},
    ]
    result = subprocess.run(
        SERVE,
        input=b"".join(map(framed, messages)),
        capture_output=True,
        timeout=DEADLINE,
        check=False,
        env=clean_env(),
    )
    assert result.returncode == 0
    assert result.stdout.count(b"Content-Length") == 3
