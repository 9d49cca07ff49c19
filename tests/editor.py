"""An editor in a dict, for tests: the raw client with documents, and what it was told."""

import re
import time
import urllib.parse
from pathlib import Path
from typing import Any, Self

from support import DEADLINE, Raw, clean_env, request

TEXT: dict[str, Any] = {"synchronization": {}, "publishDiagnostics": {"versionSupport": True}}
MOVES: dict[str, Any] = {
    "applyEdit": True,
    "workspaceEdit": {
        "documentChanges": True,
        "resourceOperations": ["create", "rename", "delete"],
    },
}


def uri(path: Path | str) -> str:
    return "file://" + urllib.parse.quote(str(path))


class Editor(Raw):
    """A client with text documents, in a project of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.project.mkdir(exist_ok=True)
        super().__init__(clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(base / "mem"), HOME=str(base)))

    def meet(
        self,
        options: Any = None,
        *,
        text: dict[str, Any] | None = None,
        workspace: dict[str, Any] | None = None,
        encodings: list[str] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """`initialize`: the server's capabilities."""
        capabilities: dict[str, Any] = {
            "textDocument": TEXT if text is None else text,
            "workspace": MOVES if workspace is None else workspace,
        }
        if encodings is not None:
            capabilities["general"] = {"positionEncodings": encodings}
        params = {"processId": None, "rootUri": uri(self.project), "capabilities": capabilities}
        if options is not None:
            params["initializationOptions"] = {"pinfold": options}
        told: dict[str, Any] = self.result("initialize", params | more)["capabilities"]
        self.tell("initialized", {})
        return told

    def met(self, options: Any = None, **more: Any) -> Self:
        self.meet(options, **more)
        return self

    def tell(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else message | {"params": params})

    def did_open(self, where: Path | str, text: str, version: int = 1) -> str:
        name = where if isinstance(where, str) and ":" in where else uri(where)
        item = {"uri": name, "languageId": "markdown", "version": version, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return name

    def did_change(self, name: str, version: int, *changes: Any) -> None:
        document = {"uri": name, "version": version}
        self.tell(
            "textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)}
        )

    def on(self, method: str, name: str, **more: Any) -> Any:
        """A feature's result for a document."""
        return self.result(method, {"textDocument": {"uri": name}, **more})

    def at(self, method: str, name: str, line: int, character: int, **more: Any) -> Any:
        return self.on(method, name, position={"line": line, "character": character}, **more)

    @property
    def memory(self) -> Path:
        """The project's memory root, made."""
        roots = self.result("memory/roots", {"sessionId": "editor"})["roots"]
        path = Path(roots[0]["path"])
        path.mkdir(parents=True, exist_ok=True)
        return path

    # What an editor does when it is told to

    def commanded(self, name: str, argument: Any, answer: Any = None) -> dict[str, Any]:
        """The answer to a command. `answer(edit)` carries out the edit that is asked for on the
        way, and gives what the editor says of it; by default it is applied on the disk."""
        params = {"command": name, "arguments": [argument]}
        self._last_id += 1
        own = self._last_id
        self.send(request(own, "workspace/executeCommand", params))
        while True:
            message = self.receive()
            if message.get("method") == "workspace/applyEdit":
                said = (answer or applied)(message["params"]["edit"])
                self.send({"jsonrpc": "2.0", "id": message["id"], **said})
            elif message["id"] == own:
                return message

    def told(self, method: str, name: str) -> list[Any]:
        """What the notifications of a method say of a document, so far."""
        self.result("session/list", {})
        return [
            each["params"]
            for each in self.notifications
            if each["method"] == method and each["params"].get("uri") == name
        ]

    def next_diagnostics(self, name: str, count: int = 1) -> list[list[str]]:
        """The codes that were pushed for a document, once there are `count` pushes."""
        deadline = time.monotonic() + DEADLINE
        while len(pushed := self.told("textDocument/publishDiagnostics", name)) < count:
            assert time.monotonic() < deadline, pushed
        return [[each["code"] for each in push["diagnostics"]] for push in pushed]


def path_of(name: str) -> Path:
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(name).path))


def applied(edit: dict[str, Any]) -> dict[str, Any]:
    """An edit carried out on the disk, columns in UTF-16, with nothing of the gateway's code."""
    for each in edit.get("documentChanges", []):
        if each.get("kind") == "rename":
            target = path_of(each["newUri"])
            assert not target.exists()
            target.parent.mkdir(parents=True, exist_ok=True)
            path_of(each["oldUri"]).rename(target)
        else:
            rewrite(path_of(each["textDocument"]["uri"]), each["edits"])
    for name, edits in edit.get("changes", {}).items():
        rewrite(path_of(name), edits)
    return {"result": {"applied": True}}


def rewrite(path: Path, edits: list[dict[str, Any]]) -> None:
    with open(path, encoding="utf-8", newline="") as file:
        lines = re.split(r"(?<=\n)", file.read())
    for edit in sorted(edits, key=lambda each: each["range"]["start"]["character"], reverse=True):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        raw = lines[start["line"]].encode("utf-16-le")
        new = edit["newText"].encode("utf-16-le")
        raw = raw[: 2 * start["character"]] + new + raw[2 * end["character"] :]
        lines[start["line"]] = raw.decode("utf-16-le")
    path.write_bytes("".join(lines).encode())


def spot(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }
