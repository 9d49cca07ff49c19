"""The features that answer from one document: a context in, LSP's own types out. On the pool."""

import time

from lsprotocol import types

from pinfold.doors.lsp.client import EXPLAIN, PIN, UNPIN
from pinfold.doors.lsp.context import Context
from pinfold.language.complete import MOST_PROPOSALS, complete, complete_topic, likely
from pinfold.language.diagnose import diagnose, is_index
from pinfold.language.facts import Where
from pinfold.language.hover import hover as words
from pinfold.language.links import Link
from pinfold.language.moves import pinned_place, unpinned_place
from pinfold.language.outline import outline
from pinfold.paths.uri import to_uri
from pinfold_protocol.errors import RpcError

_PIN_WORDS = {PIN: "Pin", UNPIN: "Unpin"}
MOVE_KIND = types.CodeActionKind.RefactorMove


def diagnostics(context: Context) -> list[types.Diagnostic]:
    """Everything that there is to say of a document."""
    links = context.looked_up(context.links())
    found = diagnose(context.text, context.lines, context.where, links)
    convert = context.convert
    return [convert.diagnostic(each) for each in found]


def hover(context: Context, position: types.Position) -> types.Hover | None:
    """The topic behind the link at a position."""
    link = link_at(context, position)
    if link is None:
        return None
    found = context.looked_up([link])[link.path or ""]
    text = words(found, time.time_ns(), markdown=context.client.markdown)
    kind = types.MarkupKind.Markdown if context.client.markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, text), context.convert.range(link.span))


def link_at(context: Context, position: types.Position) -> Link | None:
    """The link to a file at a position."""
    column = context.convert.column(position)
    links = context.links_on(position.line)
    return next((link for link in links if link.span.holds(position.line, column)), None)


def document_links(context: Context) -> list[types.DocumentLink]:
    """The links that stay in the root."""
    links = context.links()
    found = context.looked_up(links)
    convert = context.convert
    return [
        convert.link(link, to_uri(context.leads(link)) + link.fragment)
        for link in links
        if (leads := found.get(link.path or "")) and leads.exists and leads.inside
    ]


def completion(context: Context, position: types.Position) -> types.CompletionList:
    """What fits at a position."""
    line, column = position.line, context.convert.column(position)
    where = context.where
    proposals = complete(context.lines, where, line, column)
    more = False
    if proposals is None:
        topics = context.topics()
        more = len(topics) > MOST_PROPOSALS
        offered = likely(context.lines, line, column, topics)
        proposals = complete_topic(context.lines, where, line, column, offered)
    convert = context.convert
    return types.CompletionList(more, [convert.proposal(each) for each in proposals])


def symbols(
    context: Context,
) -> list[types.DocumentSymbol] | list[types.SymbolInformation]:
    """The outline, nested if the editor knows that."""
    found = outline(context.lines, context.where)
    convert = context.convert
    if context.client.nested_symbols:
        return convert.nested_symbols(found)
    return [convert.flat_symbol(each, context.uri) for each in found]


def renamed(context: Context, position: types.Position) -> types.PrepareRenamePlaceholder | None:
    """What would be renamed at a position: the document behind a link, by its path in the root."""
    link = link_at(context, position)
    target = None if link is None else context.survey.where(context.leads(link))
    if link is None or target is None or target.kind != context.where.kind:
        return None
    return types.PrepareRenamePlaceholder(context.convert.range(link.at), target.relative)


# Pinning


def pin_command(where: Where) -> tuple[str, str] | None:
    """Whether a document can be pinned or unpinned, and the path that it then has."""
    if place := pinned_place(where):
        return PIN, place
    if place := unpinned_place(where):
        return UNPIN, place
    return None


def code_lenses(context: Context) -> list[types.CodeLens]:
    """Above a topic: pin or unpin it, and who may change it."""
    if is_index(context.where):
        return []
    top = types.Range(types.Position(0, 0), types.Position(0, 0))
    argument: list[types.LSPAny] = [{"uri": context.uri}]
    lenses = []
    if found := pin_command(context.where):
        title = _PIN_WORDS[found[0]]
        lenses.append(types.CodeLens(top, types.Command(title, found[0], arguments=argument)))
    shown: list[types.LSPAny] = [{"uri": context.uri, "show": True}]
    explain = types.Command("Who may change it?", EXPLAIN, arguments=shown)
    return [*lenses, types.CodeLens(top, explain)]


def code_actions(
    context: Context, params: types.CodeActionParams
) -> list[types.CodeAction | types.Command]:
    """Pin or unpin the topic, or the one behind the link in an index. What the session may not do
    is shown with the reason, where the editor can."""
    only = params.context.only
    if only and not any(_within(MOVE_KIND, kind) for kind in only):
        return []
    target = _target(context, params.range.start)
    found = None if target is None else pin_command(target)
    if target is None or found is None:
        return []
    name, place = found
    title = _PIN_WORDS[name]
    uri = context.uri if target.path == context.where.path else to_uri(target.path)
    command = types.Command(title, name, arguments=[{"uri": uri}])
    refused = refusal(context, target.path, place)
    if not context.client.literal_actions:
        return [] if refused else [command]
    if refused is None:
        return [types.CodeAction(title, kind=MOVE_KIND, command=command)]
    if not context.client.disabled_actions:
        return []
    disabled = types.CodeActionDisabled(refused)
    return [types.CodeAction(title, kind=MOVE_KIND, disabled=disabled)]


def _within(kind: str, wanted: str) -> bool:
    return not wanted or kind == wanted or kind.startswith(f"{wanted}.")


def _target(context: Context, position: types.Position) -> Where | None:
    if not is_index(context.where):
        return context.where
    link = link_at(context, position)
    return None if link is None else context.survey.where(context.leads(link))


def refusal(context: Context, *paths: str) -> str | None:
    """Why the session may not change one of these files, decided as any call of it, or why that
    cannot be said; None if it may."""
    from pinfold.explaining import explain
    from pinfold_protocol.decision import ExplainParams

    for path in paths:
        params = ExplainParams(context.session.session_id, "write_file", {"file_path": path})
        try:
            decision = explain(context.gateway, params, context.session)
        except RpcError as error:
            return str((error.data or {}).get("problem", error.message))
        if decision.decision != "allow":
            return decision.reason
    return None
