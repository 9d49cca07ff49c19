"""The service's values as LSP's, with columns in the units that the editor counts in."""

from collections.abc import Sequence

from lsprotocol import types

from pinfold.doors.lsp.manual import page_of
from pinfold.language.links import Link
from pinfold.language.model import Change, Finding, Proposal, Span, Symbol
from pinfold.text.positions import Encoding, characters, units

SOURCE = "pinfold"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
_SYMBOLS = {
    "heading": types.SymbolKind.String,
    "frontmatter": types.SymbolKind.Namespace,
    "topic": types.SymbolKind.File,
}
_PROPOSALS = {
    "key": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "file": types.CompletionItemKind.File,
}


class Converter:
    """Between one text's lines (without endings) and an editor's positions."""

    def __init__(self, lines: Sequence[str], encoding: Encoding) -> None:
        self._lines = lines
        self._encoding = encoding

    def column(self, position: types.Position) -> int:
        """Where a position is in its line, in characters; at most at its end."""
        if position.line >= len(self._lines):
            return 0
        return characters(self._lines[position.line], position.character, self._encoding)

    def position(self, line: int, column: int) -> types.Position:
        """A place as the editor counts."""
        text = self._lines[line][:column] if line < len(self._lines) else ""
        return types.Position(line, units(text, self._encoding))

    def range(self, span: Span, last: int | None = None) -> types.Range:
        """A span; with `last`, from its beginning to the end of that line."""
        start = self.position(span.line, span.start)
        if last is None or last == span.line:
            return types.Range(start, self.position(span.line, span.end))
        return types.Range(start, self.position(last, len(self._lines[last])))

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        """A finding, with a link to its page where there is one."""
        page = page_of(finding.code)
        return types.Diagnostic(
            self.range(finding.span),
            finding.message,
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            code_description=None if page is None else types.CodeDescription(page),
            source=SOURCE,
        )

    def edit(self, change: Change) -> types.TextEdit:
        """A change of the text."""
        return types.TextEdit(self.range(change.span), change.text)

    def link(self, link: Link, uri: str) -> types.DocumentLink:
        """A link that can be followed."""
        return types.DocumentLink(self.range(link.at), target=uri)

    def proposal(self, proposal: Proposal) -> types.CompletionItem:
        """A completion. The filter is what stands there already, so that no editor drops it."""
        span = proposal.change.span
        text = self._lines[span.line] if span.line < len(self._lines) else ""
        return types.CompletionItem(
            proposal.label,
            kind=_PROPOSALS[proposal.kind],
            detail=proposal.detail or None,
            documentation=proposal.documentation or None,
            filter_text=f"{text[span.start : span.end].strip()}{proposal.label}"
            if proposal.kind == "file"
            else None,
            text_edit=self.edit(proposal.change),
        )

    def flat_symbol(self, symbol: Symbol, uri: str) -> types.SymbolInformation:
        """A symbol for an editor that knows no nesting."""
        where = types.Location(uri, self.range(symbol.span, symbol.last))
        return types.SymbolInformation(where, symbol.name, _SYMBOLS[symbol.kind])

    def nested_symbols(self, symbols: Sequence[Symbol]) -> list[types.DocumentSymbol]:
        """Symbols inside of those of a lesser depth before them."""
        top: list[types.DocumentSymbol] = []
        above: list[tuple[Symbol, list[types.DocumentSymbol]]] = []
        for symbol in symbols:
            while above and (
                above[-1][0].depth >= symbol.depth or above[-1][0].last < symbol.span.line
            ):
                above.pop()
            children: list[types.DocumentSymbol] = []
            found = types.DocumentSymbol(
                symbol.name,
                _SYMBOLS[symbol.kind],
                self.range(symbol.span, symbol.last),
                self.range(symbol.span),
                children=children,
            )
            (above[-1][1] if above else top).append(found)
            above.append((symbol, children))
        return top
