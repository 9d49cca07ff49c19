"""What an editor says of itself in `initialize`, and what it is told: without pygls, so that the
first answer comes at once. LSP's members are read leniently."""

from typing import Any, NamedTuple, cast

from pinfold.doors.questions import member
from pinfold.paths.uri import from_uri, is_uri
from pinfold.text.positions import Encoding
from pinfold_protocol.errors import RpcError

PIN, UNPIN, EXPLAIN = "pinfold.pin", "pinfold.unpin", "pinfold.explain"
COMMANDS = (PIN, UNPIN, EXPLAIN)
_ENCODINGS = ("utf-8", "utf-16", "utf-32")


class Client(NamedTuple):
    """One editor. `folder`: the path of what it has open, None where it has nothing on this
    machine; `moves_files`: it takes a rename of a file in a workspace edit;
    `saves_refactorings`: it may save by itself what it is told to be a refactoring."""

    encoding: Encoding
    folder: str | None
    pulls: bool
    refreshes: bool
    moves_files: bool
    versioned_edits: bool
    applies_edits: bool
    saves_refactorings: bool
    literal_actions: bool
    disabled_actions: bool
    prepares_renames: bool
    asks_before_renames: bool
    nested_symbols: bool
    markdown: bool


def read_client(params: dict[str, Any]) -> Client:
    """What the params of `initialize` say."""
    text = _object(params, "capabilities", "textDocument")
    workspace = _object(params, "capabilities", "workspace")
    operations = member(workspace, "workspaceEdit", "resourceOperations")
    versioned = _versioned(workspace)
    formats = member(text, "hover", "contentFormat")
    return Client(
        encoding=choose_encoding(params),
        folder=_folder(params),
        pulls=member(text, "diagnostic") is not None,
        refreshes=member(workspace, "diagnostics", "refreshSupport") is True,
        moves_files=versioned and isinstance(operations, list) and "rename" in operations,
        versioned_edits=versioned,
        applies_edits=member(workspace, "applyEdit") is True,
        saves_refactorings=member(workspace, "workspaceEdit", "metadataSupport") is True,
        literal_actions=member(text, "codeAction", "codeActionLiteralSupport") is not None,
        disabled_actions=member(text, "codeAction", "disabledSupport") is True,
        prepares_renames=member(text, "rename", "prepareSupport") is True,
        asks_before_renames=member(workspace, "fileOperations", "willRename") is True,
        nested_symbols=member(text, "documentSymbol", "hierarchicalDocumentSymbolSupport") is True,
        markdown=isinstance(formats, list) and "markdown" in formats,
    )


def _versioned(workspace: dict[str, Any]) -> bool:
    """Whether edits may come as `documentChanges`. One that names resource operations and says
    nothing of it (Neovim up to 0.11) takes them: there is no other place for those."""
    said = member(workspace, "workspaceEdit", "documentChanges")
    return said is True or (
        said is None and bool(member(workspace, "workspaceEdit", "resourceOperations"))
    )


def choose_encoding(params: dict[str, Any]) -> Encoding:
    """The first of the editor's position encodings that is one; silence means UTF-16."""
    offered = member(params, "capabilities", "general", "positionEncodings")
    known = [each for each in offered if each in _ENCODINGS] if isinstance(offered, list) else []
    return cast(Encoding, known[0]) if known else "utf-16"


def server_capabilities(client: Client) -> dict[str, Any]:
    """The answer to `initialize`."""
    told: dict[str, Any] = {
        "positionEncoding": client.encoding,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "diagnosticProvider": {
            "identifier": "pinfold",
            "interFileDependencies": True,
            "workspaceDiagnostics": False,
        },
        "hoverProvider": True,
        "documentLinkProvider": {"resolveProvider": False},
        "completionProvider": {"triggerCharacters": ["(", "/", ":"], "resolveProvider": False},
        "documentSymbolProvider": True,
        "codeLensProvider": {"resolveProvider": False},
        "codeActionProvider": True,
        "renameProvider": {"prepareProvider": True} if client.prepares_renames else True,
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if client.literal_actions:
        told["codeActionProvider"] = {"codeActionKinds": ["refactor.move"]}
    if client.asks_before_renames:
        pattern = {"scheme": "file", "pattern": {"glob": "**/*.md", "matches": "file"}}
        told["workspace"]["fileOperations"] = {"willRename": {"filters": [pattern]}}
    return told


def path_of(uri: str) -> str | None:
    """The path that a document's URI names; None for one that is no file of this machine."""
    try:
        return from_uri(uri, "uri") if is_uri(uri) else None
    except RpcError:
        return None


def _folder(params: dict[str, Any]) -> str | None:
    """The first workspace folder, else the root, of what is on this machine."""
    folders = params.get("workspaceFolders")
    named = [member(each, "uri") for each in folders] if isinstance(folders, list) else []
    for uri in (*named, params.get("rootUri")):
        if isinstance(uri, str) and (path := path_of(uri)):
            return path
    path = params.get("rootPath")
    return path if isinstance(path, str) and path.startswith("/") else None


def _object(value: Any, *names: str) -> dict[str, Any]:
    found = member(value, *names)
    return found if isinstance(found, dict) else {}
