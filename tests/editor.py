"""An editor in a dict, for tests: the raw client with documents, and what it was told."""

import urllib.parse
from pathlib import Path
from typing import Any, Self

from support import Raw, clean_env

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


def spot(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }
