"""Carrying out a move: by the editor in one edit where it can, else on the disk; and looking
whether it happened."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from pinfold import library
from pinfold.doors.lsp.client import Client, path_of
from pinfold.doors.lsp.context import Context
from pinfold.doors.lsp.features import link_at
from pinfold.doors.lsp.moving import (
    Mend,
    Plan,
    changed,
    failed,
    find_mend,
    is_done,
    left_behind,
    open_document,
    place_after,
    plain_edit,
    plan,
    plan_pin,
    workspace_edit,
)
from pinfold.doors.rpc import Request
from pinfold.language.moves import renamed_place
from pinfold.paths.uri import to_uri
from pinfold.text.lines import normalize
from pinfold_protocol.errors import RpcError, ToolError

if TYPE_CHECKING:
    from pinfold.doors.native import Native

_T = TypeVar("_T")
_EDITOR_SECONDS = 10.0
_TOLD_SECONDS = 1.0
"""How long after its reply an editor may take to tell what it changed: some wait for a pause."""
_NO_MOVES = "This editor cannot move files as a part of an edit."


class OnDocument(Protocol):
    """Work on the pool, on a document."""

    async def __call__(self, uri: str, work: Callable[[Context | None], _T]) -> _T: ...


class Mover:
    """Everything runs on the loop's thread; what may block is sent to the pool."""

    def __init__(
        self, server: LanguageServer, client: Client, native: "Native", on_document: OnDocument
    ) -> None:
        self._server = server
        self._client = client
        self._native = native
        self._on_document = on_document
        self._gone = asyncio.get_running_loop().create_future()

    def lost(self) -> None:
        """Nothing more will come from the editor."""
        if not self._gone.done():
            self._gone.set_result(None)

    # What the editor carries out by itself

    async def rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        """`textDocument/rename`: the file behind the link at a position, and all links to it."""
        if not self._client.moves_files:
            raise failed(_NO_MOVES)

        def work(context: Context | None) -> types.WorkspaceEdit:
            link = None if context is None else link_at(context, params.position)
            if context is None or link is None:
                raise failed("There is no link to a topic here. Put the cursor on one.")
            new = renamed_place(context.where.root, params.new_name)
            if new is None:
                raise failed("A topic's name is a path below the memory root that ends in .md.")
            target = context.moved_to(context.leads(link))
            if target is None:
                raise failed(
                    "The link does not lead to a document of this memory root. Correct it first."
                )
            found = plan(target, new, _uri_of(target))
            return workspace_edit(found, self._client.encoding, move=True)

        return await self._on_document(params.text_document.uri, work)

    async def will_rename(self, params: types.RenameFilesParams) -> types.WorkspaceEdit | None:
        """`workspace/willRenameFiles`: links that follow a move that the editor will make."""
        if len(params.files) != 1 or not self._client.versioned_edits:
            return None
        file = params.files[0]
        new = path_of(file.new_uri)

        def work(context: Context | None) -> types.WorkspaceEdit | None:
            if context is None or new is None:
                return None
            found = plan(context, new, context.uri, moved_by_editor=True)
            return workspace_edit(found, self._client.encoding, move=False)

        return await self._on_document(file.old_uri, work)

    # What we see to

    async def pin(self, uri: str, name: str, request: Request) -> dict[str, Any]:
        """A topic into `pinned/` or out of it: where it was and where it is. Raises RpcError where
        that is not so in the end."""

        def work(context: Context | None) -> Plan:
            if context is None:
                raise failed("This is no memory document: it is below no memory root.")
            return plan_pin(context, name)

        found = await self._on_document(uri, work)
        if self._client.moves_files and self._client.applies_edits:
            await self._by_editor(found, request)
        else:
            await self._on_disk(found, uri, request)
        return {"from": found.old, "to": found.new}

    async def _by_editor(self, found: Plan, request: Request) -> None:
        edit = workspace_edit(found, self._client.encoding, move=True)
        request.cancel = lambda: False  # the editor may have done it already
        said = await self._applied(edit)
        if not await self._native.workers.run(lambda: is_done(found)):
            if self._gone.done():
                raise failed(f"The connection ends. Whether {found.old} moved is not known: look.")
            raise failed(f"The editor did not move the file{said}. {found.old} is where it was.")
        await self._require_mended(found, said)

    async def _applied(self, edit: types.WorkspaceEdit) -> str:
        """Let the editor apply an edit; why it did not, as far as it says so."""
        known = self._client.saves_refactorings
        refactoring = types.WorkspaceEditMetadata(is_refactoring=True) if known else None
        params = types.ApplyWorkspaceEditParams(edit, label="pinfold", metadata=refactoring)
        seconds = self._native.gateway.limits.editor_seconds or _EDITOR_SECONDS
        asked = self._server.protocol.send_request_async(types.WORKSPACE_APPLY_EDIT, params)
        try:
            either = (asked, self._gone)
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                late = f"it did not answer within {seconds:g} seconds"
                return f": {'the connection ends' if self._gone.done() else late}"
            answer = asked.result()
        except RpcError:
            return ": it answered an error"
        finally:
            asked.cancel()
        return "" if answer.applied else f": {answer.failure_reason or 'it refused the edit'}"

    async def _on_disk(self, found: Plan, uri: str, request: Request) -> None:
        """The gateway moves the file, and mends on the disk what is not open; the texts that are
        open are the editor's to mend."""
        request.cancel = lambda: False

        def work(context: Context | None) -> list[Mend]:
            if context is None:
                raise failed("This is no memory document any more.")
            return _move(context, found)

        mends = await self._on_document(uri, work)
        said = ""
        if mends and self._client.applies_edits:
            edit = self._texts(Plan(found.old, found.old_uri, found.new, mends))
            said = await self._applied(edit)
        await self._require_mended(found, said)

    async def _require_mended(self, found: Plan, said: str) -> None:
        """Links are believed to follow when the documents show it, and not before. Raises
        RpcError."""

        def work(context: Context | None) -> list[str]:
            if context is None:  # it was closed to us, or moved on
                return [place_after(found, mend) for mend in found.mends]
            return left_behind(context, found, _TOLD_SECONDS)

        if left := await self._on_document(to_uri(found.new), work):
            names = ", ".join(left)
            raise failed(f"It is {found.new} now, but links were not mended in {names}{said}.")

    def _texts(self, found: Plan) -> types.WorkspaceEdit:
        if self._client.versioned_edits:
            return workspace_edit(found, self._client.encoding, move=False)
        return plain_edit(found, self._client.encoding)


def _uri_of(context: Context) -> str:
    document = context.documents.find_path(context.where.path)
    return document.uri if document else to_uri(context.where.path)


def _move(context: Context, found: Plan) -> list[Mend]:
    """Move, then mend what is not open. Returns what is left to the editor: the documents that it
    shows at that moment, whether it did when the move was planned or not."""
    gateway, session = context.gateway, context.session
    saved = library.text_of(gateway, session, found.old)
    if context.document is not None and (
        saved is None or normalize(saved) != normalize(context.text)
    ):
        raise failed("It has changes that are not saved: save it first.")
    try:
        library.move(gateway, session, found.old, found.new)
    except ToolError as error:
        raise failed(error.message) from None
    shown = []
    for mend in found.mends:
        path = place_after(found, mend)
        document = open_document(context, path)
        if document is None:
            library.rewrite(gateway, session, path, mend.text, partial(changed, mend=mend))
            continue
        now = find_mend(mend.path, document, document.text, found.old, found.new)
        if now is not None and not document.lost:
            shown.append(now)
    return shown
