"""An editor with an agent in it: it keeps texts in a dict, and does with `workspace/applyEdit` what
real ones were seen to do."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from editor import MOVES, Editor, spot
from support import DEADLINE, request

_ENDING = re.compile(r"\r\n|\r|\n")


def offset(text: str, place: dict[str, int], encoding: str) -> int:
    """Where a position is, counted without any code of ours."""
    starts = [0, *(found.end() for found in _ENDING.finditer(text))]
    assert place["line"] < len(starts), "a position behind the text"
    start = starts[place["line"]]
    unit = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
    codec, width = unit[encoding]
    index, units = start, 0
    while units < place["character"]:
        assert text[index] not in "\r\n", "a position behind its line"
        units += len(text[index].encode(codec)) // width
        index += 1
    assert units == place["character"], "a position inside of a character"
    return index


def applied(text: str, edits: list[dict[str, Any]], encoding: str) -> str:
    """As LSP says: all ranges are of the text before."""
    spans = [
        (
            offset(text, each["range"]["start"], encoding),
            offset(text, each["range"]["end"], encoding),
            each["newText"],
        )
        for each in edits
    ]
    assert spans == sorted(spans), "edits in order"
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "edits apart"
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text


class Typist(Editor):
    """`habit` is what it does with an edit that it is asked for: it gets the editor, the document's
    URI, the edits, and a function that replies."""

    def __init__(self, base: Path, encoding: str = "utf-16") -> None:
        super().__init__(base)
        self.encoding = encoding
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.asked: list[dict[str, Any]] = []
        self.habit: Habit = applies
        self.withdrawn: list[Any] = []

    def start(self, seconds: int = 1, **more: Any) -> "Typist":
        options = {"limits": {"editorSeconds": seconds}}
        self.meet(options, encodings=[self.encoding], workspace=MOVES | more)
        return self

    def agent(self, profile: str = "main", backend: str = "editor", **more: Any) -> str:
        opened = self.open(self.project, profile, backend=backend, **more)
        return str(opened["sessionId"])

    # The person

    def shows(self, path: Path | str, text: str) -> str:
        name = self.did_open(path, text)
        self.texts[name], self.versions[name] = text, 1
        return name

    def types(self, name: str, text: str) -> None:
        """The whole text is another one now, and that is told."""
        self.texts[name] = text
        self.versions[name] += 1
        self.did_change(name, self.versions[name], {"text": text})

    def saves(self, name: str) -> None:
        self.tell("textDocument/didSave", {"textDocument": {"uri": name}})

    def shuts(self, name: str) -> None:
        self.tell("textDocument/didClose", {"textDocument": {"uri": name}})
        del self.texts[name]

    # The agent

    def does(self, session: str, tool: str, path: Path | str, **arguments: Any) -> dict[str, Any]:
        """A call's result; what the editor is asked meanwhile is done as is its habit."""
        self.calls(session, tool, path, **arguments)
        return self.outcome(self._last_id)

    def calls(self, session: str, tool: str, path: Path | str, **arguments: Any) -> int:
        params = {
            "sessionId": session,
            "name": tool,
            "arguments": {"file_path": str(path)} | arguments,
        }
        self._last_id += 1
        self.send(request(self._last_id, "tools/call", params))
        return self._last_id

    def outcome(self, wanted: int) -> dict[str, Any]:
        while True:
            message = self.receive(DEADLINE)
            if message.get("method") == "workspace/applyEdit":
                self._apply(message)
            elif message.get("id") == wanted:
                assert "result" in message, message
                found: dict[str, Any] = message["result"]
                return found

    def _apply(self, message: dict[str, Any]) -> None:
        self.asked.append(message["params"])
        name, edits, _ = workspace_edit(message["params"])

        def reply(value: Any) -> None:
            self.send({"jsonrpc": "2.0", "id": message["id"], **value})

        self.habit(self, name, edits, reply)


def workspace_edit(params: dict[str, Any]) -> tuple[str, list[dict[str, Any]], int | None]:
    """The document, the edits and the version of what an editor is asked."""
    edit = params["edit"]
    if "changes" in edit:
        ((name, edits),) = edit["changes"].items()
        return name, edits, None
    (change,) = edit["documentChanges"]
    return change["textDocument"]["uri"], change["edits"], change["textDocument"]["version"]


Reply = Callable[[Any], None]
Habit = Callable[[Typist, str, list[dict[str, Any]], Reply], None]
YES = {"result": {"applied": True}}
NO = {"result": {"applied": False, "failureReason": "read-only"}}
ERROR = {"error": {"code": -32603, "message": "Edits on `a.md' require version 1, you have 2"}}


def outcome_of(editor: Typist, name: str, edits: list[dict[str, Any]]) -> str:
    return applied(editor.texts[name], edits, editor.encoding)


def applies(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    editor.types(name, outcome_of(editor, name, edits))
    reply(YES)


def ends_every_line(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    """As Neovim, whose last line always ends, and with LF as all others."""
    text = outcome_of(editor, name, edits).replace("\r\n", "\n")
    editor.types(name, text.removesuffix("\n") + "\n")
    reply(YES)


def replies_first(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    reply(YES)
    editor.types(name, outcome_of(editor, name, edits))


def tells_ranges(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    """As VS Code: one event for each edit, from the last, all in one message."""
    editor.texts[name] = outcome_of(editor, name, edits)
    editor.versions[name] += 1
    changes = [{"range": each["range"], "text": each["newText"]} for each in reversed(edits)]
    editor.did_change(name, editor.versions[name], *changes)
    reply(YES)


def one_by_one(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    """A version for each of several edits."""
    for each in reversed(edits):
        editor.types(name, applied(editor.texts[name], [each], editor.encoding))
    reply(YES)


def lies(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    reply(YES)


def never_replies(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    pass


def applies_and_never_replies(
    editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply
) -> None:
    editor.types(name, outcome_of(editor, name, edits))


def says_no(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    reply(NO)


def says_null(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    reply({"result": None})


def errs(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    reply(ERROR)


def says_no_and_applies(
    editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply
) -> None:
    reply(NO)
    editor.types(name, outcome_of(editor, name, edits))


def a_line_off(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    moved = []
    for each in edits:
        start, end = each["range"]["start"], each["range"]["end"]
        lower = spot((start["line"] + 1, start["character"]), (end["line"] + 1, end["character"]))
        moved.append({"range": lower, "newText": each["newText"]})
    editor.types(name, outcome_of(editor, name, moved))
    reply(YES)


def typed_before(typed: str, then: Any) -> Habit:
    """Somebody typed, and the edit of the older version is dropped, with this reply."""

    def habit(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
        if then is not None:
            reply(then)
        editor.types(name, editor.texts[name] + typed)

    return habit


def typed_after(typed: str) -> Habit:
    """The edit was made, and somebody typed on before that was told: one version has both."""

    def habit(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
        reply(YES)
        editor.types(name, outcome_of(editor, name, edits) + typed)

    return habit


def shuts(editor: Typist, name: str, edits: list[dict[str, Any]], reply: Reply) -> None:
    editor.shuts(name)
    reply(YES)
