"""What an editor says of itself, read leniently, and what it is told."""

from typing import Any

import pytest
from lsprotocol.converters import get_converter
from lsprotocol.types import ServerCapabilities

from pinfold.doors.lsp.client import COMMANDS, Client, path_of, read_client, server_capabilities
from pinfold.doors.native import is_editor


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"workspaceFolders": [{"uri": "file:///a%20b"}, {"uri": "file:///c"}]}, "/a b"),
        ({"workspaceFolders": [{"uri": "vscode-remote://h/x"}, {"uri": "file:///c"}]}, "/c"),
        ({"workspaceFolders": [], "rootUri": "file:///d"}, "/d"),
        ({"workspaceFolders": None, "rootUri": "file:///d", "rootPath": "/e"}, "/d"),
        ({"workspaceFolders": "nonsense", "rootUri": 5, "rootPath": "/e"}, "/e"),
        ({"rootUri": "untitled:x", "rootPath": "relative"}, None),
        ({"rootUri": "file://elsewhere/x"}, None),
        ({"workspaceFolders": [None, {}, {"uri": 5}], "rootUri": None}, None),
        ({}, None),
    ],
)
def test_the_folder(params: dict[str, Any], path: str | None) -> None:
    assert read_client(params).folder == path


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-16", "utf-8"], "utf-16"),
        (["utf-32"], "utf-32"),
        (["utf-7", "utf-8"], "utf-8"),
        (["utf-7"], "utf-16"),
        ([], "utf-16"),
        ("utf-8", "utf-16"),
        ([8, None, "utf-8"], "utf-8"),
        (None, "utf-16"),
    ],
)
def test_the_encoding_is_the_editors_first_that_is_one(offered: Any, chosen: str) -> None:
    params = {"capabilities": {"general": {"positionEncodings": offered}}}
    assert read_client(params).encoding == chosen


@pytest.mark.parametrize(
    ("capabilities", "yes"),
    [
        ({"textDocument": {"hover": {}}}, True),
        ({"textDocument": {}}, False),
        ({"textDocument": [1]}, False),
        ({"textDocument": "x"}, False),
        (None, False),
        ([], False),
    ],
)
def test_who_is_an_editor(capabilities: Any, yes: bool) -> None:
    assert is_editor({"capabilities": capabilities}) is yes


@pytest.mark.parametrize("junk", [None, 5, "x", [], {}, {"capabilities": 5}, [None]])
def test_nonsense_means_no(junk: Any) -> None:
    capabilities = {
        "textDocument": {"codeAction": junk, "hover": junk, "rename": junk},
        "workspace": junk,
    }
    client = read_client({"capabilities": capabilities})
    assert not (client.moves_files or client.applies_edits or client.literal_actions)
    assert not (client.prepares_renames or client.markdown or client.nested_symbols)


ALL = {
    "textDocument": {
        "diagnostic": {},
        "hover": {"contentFormat": ["markdown"]},
        "codeAction": {"codeActionLiteralSupport": {}, "disabledSupport": True},
        "rename": {"prepareSupport": True},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    },
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["rename"],
            "metadataSupport": True,
        },
        "fileOperations": {"willRename": True},
        "diagnostics": {"refreshSupport": True},
    },
}


def test_an_editor_that_can_everything() -> None:
    client = read_client({"capabilities": ALL})
    assert client == Client("utf-16", None, *[True] * 12)


@pytest.mark.parametrize("capabilities", [ALL, {"textDocument": {"hover": {}}}])
def test_what_it_is_told_is_lsp(capabilities: Any) -> None:
    told = server_capabilities(read_client({"capabilities": capabilities}))
    typed = get_converter().structure(told, ServerCapabilities)
    assert get_converter().unstructure(typed) == told
    assert typed.execute_command_provider is not None
    assert tuple(typed.execute_command_provider.commands) == COMMANDS
    moves = (told["workspace"].get("fileOperations") or {}).get("willRename")
    assert (moves is not None) is (capabilities is ALL)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b", "/a b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://other/a", None),
        ("file:///a%00b", None),
        ("file:///%FF", None),
        ("file:a", None),
        ("untitled:/a", None),
        ("/a", None),
        ("", None),
    ],
)
def test_the_path_of_a_uri(uri: str, path: str | None) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize(
    ("said", "versioned", "moves"),
    [
        ({"documentChanges": True, "resourceOperations": ["rename"]}, True, True),
        ({"documentChanges": True}, True, False),
        ({"resourceOperations": ["rename", "create"]}, True, True),  # Neovim 0.11
        ({"documentChanges": False, "resourceOperations": ["rename"]}, False, False),
        ({"resourceOperations": []}, False, False),
        ({}, False, False),
    ],
)
def test_edits_with_versions(said: dict[str, Any], versioned: bool, moves: bool) -> None:
    client = read_client({"capabilities": {"workspace": {"workspaceEdit": said}}})
    assert (client.versioned_edits, client.moves_files) == (versioned, moves)
