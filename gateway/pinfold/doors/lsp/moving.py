"""Moving a document, and every link that has to follow: one workspace edit, or, for an editor that
cannot move files, a move on the disk. Both ends are decided as calls of the editor's session."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from lsprotocol import types

from pinfold import library
from pinfold.doors.lsp.client import path_of
from pinfold.doors.lsp.context import MOST_TOPICS, Context, text_lines
from pinfold.doors.lsp.convert import Converter
from pinfold.doors.lsp.documents import Document
from pinfold.doors.lsp.features import pin_command, refusal
from pinfold.language.model import Change
from pinfold.language.moves import mended, unmended
from pinfold.paths.literal import encode
from pinfold.paths.opened import identity
from pinfold.paths.uri import to_uri
from pinfold.text.editable import EditableText
from pinfold.text.frontmatter import INDEX_NAME
from pinfold_protocol.errors import REQUEST_FAILED, RpcError

if TYPE_CHECKING:
    from pinfold.text.positions import Encoding

_MOST_TEXT = 1 << 20
"""In a topic that is not open and larger than this, in bytes, no links are looked for."""


class Mend(msgspec.Struct, frozen=True):
    """The changes of one document. `document` is None where it is not open."""

    path: str
    uri: str
    document: Document | None
    text: str
    lines: list[str]
    changes: list[Change]


class Plan(msgspec.Struct, frozen=True):
    """A move, decided: from where, to where, and what has to be mended."""

    old: str
    old_uri: str
    new: str
    mends: list[Mend]


def failed(message: str) -> RpcError:
    """A feature that cannot be done, and why."""
    return RpcError(REQUEST_FAILED, message)


def plan_pin(context: Context, name: str) -> Plan:
    """A topic into `pinned/` or out of it. Raises RpcError with the reason where it cannot be."""
    found = pin_command(context.where)
    if found is None or found[0] != name:
        raise failed("This is no topic that could be moved so: it is no topic, or there already.")
    return plan(context, found[1], context.uri)


def plan(context: Context, new: str, uri: str, *, moved_by_editor: bool = False) -> Plan:
    """A document to another path. Raises RpcError where the session may not, or something is
    there already."""
    old = context.where.path
    if not os.path.isfile(encode(old)):
        raise failed("It is not saved yet: save it first.")
    if os.path.islink(encode(old)) or os.path.islink(encode(path_of(uri) or old)):
        raise failed("It is a link, and what it leads to would stay where it is. Move that.")
    if not moved_by_editor and os.path.lexists(encode(new)):
        raise failed(f"{new} is there already. Choose another name.")
    if reason := refusal(context, old, new):
        raise failed(f"Denied: {reason}")
    _require_only_name(context)
    mends = []
    for mend in _mends(context, old, new):
        index = mend.path == f"{context.where.root}/{INDEX_NAME}"
        reason = None if mend.path == old else refusal(context, mend.path)
        if reason is not None and index:
            raise failed(f"Denied: {reason}")
        if reason is None:  # a topic that may not be changed keeps its link
            mends.append(mend)
    return Plan(old, uri, new, mends)


def _mends(context: Context, old: str, new: str) -> Iterator[Mend]:
    root = context.where.root
    index = library.index(context.gateway, context.session, [context.where.kind], MOST_TOPICS)
    small = [each for each in index.documents if each.size_bytes <= _MOST_TEXT]
    paths = [f"{root}/{INDEX_NAME}", old, *(f"{root}/{each.relative_path}" for each in small)]
    for path in dict.fromkeys(paths):
        document = open_document(context, path)
        if document is not None and document.lost:
            raise failed(f"What the editor shows of {path} is not known; close it and open it.")
        text = context.text if path == old else None
        if text is None and document:
            text = document.text
        elif text is None:
            text = library.text_of(context.gateway, context.session, path)
        if text is None or "](" not in text:
            continue
        if mend := find_mend(path, document, text, old, new):
            yield mend


def find_mend(path: str, document: Document | None, text: str, old: str, new: str) -> Mend | None:
    """What has to change in a document with this text; None where nothing has."""
    lines = text_lines(text)
    changes = mended(lines, path, old, new)
    uri = document.uri if document else to_uri(path)
    return Mend(path, uri, document, text, lines, changes) if changes else None


def _require_only_name(context: Context) -> None:
    """What moves is looked at under one name: another document of the file has a text, and maybe
    changes that are not saved, which the plan would know nothing of."""
    here = context.document
    for each in _open_documents(context, context.where.path):
        if here is None or each.uri != here.uri:
            raise failed(f"The editor has it open as {each.uri}: do it there, or close that.")


def open_document(context: Context, path: str) -> Document | None:
    """The document of the file that is at a path now; None where it is not open."""
    return next(iter(_open_documents(context, path)), None)


def _open_documents(context: Context, path: str) -> list[Document]:
    """All documents of the file that is at a path now."""
    try:
        file = identity(os.stat(encode(path)))
    except OSError:
        file = None
    return context.documents.behind(path, file)


def workspace_edit(plan: Plan, encoding: "Encoding", *, move: bool) -> types.WorkspaceEdit:
    """The whole of it, in order: texts by the names that they have now, then the move."""
    changes: list[
        types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile
    ] = [_edit(mend, encoding) for mend in plan.mends]
    if move:
        options = types.RenameFileOptions(overwrite=False)
        changes.append(types.RenameFile(plan.old_uri, to_uri(plan.new), options=options))
    return types.WorkspaceEdit(document_changes=changes)


def _edit(mend: Mend, encoding: "Encoding") -> types.TextDocumentEdit:
    version = None if mend.document is None else mend.document.version
    named = types.OptionalVersionedTextDocumentIdentifier(mend.uri, version)
    convert = Converter(mend.lines, encoding)
    return types.TextDocumentEdit(named, [convert.edit(each) for each in mend.changes])


def plain_edit(plan: Plan, encoding: "Encoding") -> types.WorkspaceEdit:
    """Texts only, for an editor that knows no versions."""
    changes = {
        mend.uri: [Converter(mend.lines, encoding).edit(each) for each in mend.changes]
        for mend in plan.mends
    }
    return types.WorkspaceEdit(changes=changes)


def is_done(plan: Plan) -> bool:
    """Whether the file is at its new place, and no longer at the old one. Editors say that they
    did it when they did not."""
    return os.path.isfile(encode(plan.new)) and not os.path.lexists(encode(plan.old))


def left_behind(context: Context, plan: Plan, seconds: float) -> list[str]:
    """The documents whose links are not mended, after `seconds` at most: an editor tells what it
    shows only a moment after it was told to change it. What is open counts by its text, all else by
    the disk. May block for so long."""
    waiting = list(plan.mends)

    def some_left() -> bool:
        waiting[:] = [mend for mend in waiting if _is_left(context, plan, mend)]
        return bool(waiting)

    if some_left():
        context.documents.wait(lambda: not some_left(), seconds)
    return [place_after(plan, mend) for mend in waiting]


def place_after(plan: Plan, mend: Mend) -> str:
    """Where a document is once the move is made."""
    return plan.new if mend.path == plan.old else mend.path


def _is_left(context: Context, plan: Plan, mend: Mend) -> bool:
    """Whether a document still has what was to be mended in it. One that an editor shows under the
    name that it had before it moved has the disk beneath it, and either may be mended."""
    path = place_after(plan, mend)

    def is_old(text: str | None) -> bool:
        return text is None or unmended(mend.lines, text_lines(text), mend.path, plan.old, plan.new)

    if documents := _open_documents(context, path):
        return any(each.lost or is_old(each.text) for each in documents)
    before = context.documents.behind(mend.path)
    if any(not each.lost and not is_old(each.text) for each in before):
        return False
    return is_old(library.text_of(context.gateway, context.session, path))


def changed(text: str, mend: Mend) -> str:
    """The text of a document, whatever ends its lines, with its changes."""
    edited = EditableText(text)
    for change in sorted(mend.changes, key=lambda each: each.span, reverse=True):
        span = change.span
        edited.replace((span.line, span.start), (span.line, span.end), change.text, "utf-32")
    return edited.text
