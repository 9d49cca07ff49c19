"""The language service as pytest-lsp's client sees it, with the capabilities that real editors sent."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest_lsp = pytest.importorskip("pytest_lsp")
import pytest_asyncio  # noqa: E402
from lsprotocol import types  # noqa: E402

from editor import applied, uri  # noqa: E402
from support import DEADLINE, clean_env, write  # noqa: E402

pytestmark = [pytest.mark.editor, pytest.mark.asyncio]
EDITORS = ["neovim@0.11.0", "visual_studio_code@1.65.2", "emacs@29.1", "neovim@0.6.1"]
TOPIC = "---\ntype: user\nname: T\ndescription: about T\n---\n\n# H\n"


@pytest_asyncio.fixture(params=EDITORS)
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    command = [sys.executable, "-m", "pinfold", "serve"]
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(tmp_path / "mem"), HOME=str(tmp_path))
    config = pytest_lsp.ClientServerConfig(command, server_env=env)
    client = await config.start()
    capabilities = pytest_lsp.client_capabilities(request.param)
    params = types.InitializeParams(capabilities, root_uri=uri(tmp_path))
    async with asyncio.timeout(DEADLINE):
        await client.initialize_session(params)
    roots = await client.protocol.send_request_async("memory/roots", {"sessionId": "editor"})
    client.memory = Path(roots.roots[0].path)
    client.memory.mkdir(parents=True)
    try:
        yield client
    finally:
        async with asyncio.timeout(DEADLINE):
            await client.shutdown_session()
            await client.stop()


def opened(client: Any, name: str, text: str, *, saved: bool = True) -> str:
    path = client.memory / name
    if saved:
        write(path, text)
    item = types.TextDocumentItem(uri(path), "markdown", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return uri(path)


async def diagnosed(client: Any, name: str) -> list[str]:
    document = types.TextDocumentIdentifier(name)
    told = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
    return [str(each.code) for each in told.items]


async def test_breadth(client: Any) -> None:
    async with asyncio.timeout(DEADLINE):
        name = opened(client, "user/t.md", TOPIC)
        text = "- 😀 [T](user/t.md)\n- [Gone](gone.md)\n"
        index = opened(client, "MEMORY.md", text)
        document = types.TextDocumentIdentifier(index)
        assert await diagnosed(client, index) == ["link-dead"]
        assert await diagnosed(client, name) == []
        at = types.Position(0, 8)
        hover = await client.text_document_hover_async(types.HoverParams(document, at))
        assert "about T" in hover.contents.value
        links = await client.text_document_document_link_async(types.DocumentLinkParams(document))
        assert [each.target for each in links] == [name]
        symbols = await client.text_document_document_symbol_async(
            types.DocumentSymbolParams(types.TextDocumentIdentifier(name))
        )
        assert [each.name for each in symbols] == ["T", "H"]
        items = await client.text_document_completion_async(
            types.CompletionParams(document, types.Position(1, 11))
        )
        assert [each.label for each in items.items] == ["user/t.md"]
        lenses = await client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(name))
        )
        assert [each.command.title for each in lenses] == ["Pin", "Who may change it?"]


async def test_pin_in_every_editor(client: Any) -> None:
    """An editor that says it takes file operations moves; for the others the gateway does."""

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        applied(client.protocol._converter.unstructure(params.edit))
        return types.ApplyWorkspaceEditResult(True)

    async with asyncio.timeout(DEADLINE):
        write(client.memory / "MEMORY.md", "- [T](user/t.md)\n")
        name = opened(client, "user/t.md", TOPIC)
        # Of the lens: lsprotocol takes a code action that has a command for a bare command.
        lens, _ = await client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(name))
        )
        command = lens.command
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, arguments=command.arguments)
        )
    assert (client.memory / "pinned/user/t.md").read_text("utf-8") == TOPIC
    assert not (client.memory / "user/t.md").exists()
    assert (client.memory / "MEMORY.md").read_text("utf-8") == "- [T](pinned/user/t.md)\n"


async def test_diagnostics_come_one_way(client: Any) -> None:
    """Pushed to an editor that cannot pull, and to no other."""
    async with asyncio.timeout(DEADLINE):
        name = opened(client, "x.md", "no topic", saved=False)
        pulls = client.capabilities.text_document.diagnostic is not None
        if not pulls:
            await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        assert await diagnosed(client, name) == ["frontmatter-missing"]
    pushed = [str(each.code) for each in client.diagnostics.get(name, [])]
    assert pushed == ([] if pulls else ["frontmatter-missing"])


async def test_columns(client: Any) -> None:
    encodings = (
        client.capabilities.general or types.GeneralClientCapabilities()
    ).position_encodings
    units = {"utf-8": 4, "utf-16": 2, "utf-32": 1}[(encodings or ["utf-16"])[0]]
    async with asyncio.timeout(DEADLINE):
        name = opened(client, "MEMORY.md", "😀[x](y.md)\n")
        document = types.TextDocumentIdentifier(name)
        told = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
    (found,) = told.items
    assert (found.range.start.character, found.range.end.character) == (units + 4, units + 8)
