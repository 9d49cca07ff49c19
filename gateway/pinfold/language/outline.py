"""The symbols of a document: frontmatter, headings, and the entries of an index."""

import re
from collections.abc import Sequence

import msgspec

from pinfold.language.diagnose import is_index
from pinfold.language.facts import Where
from pinfold.language.fences import outside_fences
from pinfold.language.links import find_links
from pinfold.language.matter import read_matter
from pinfold.language.model import Span, Symbol

_HEADING = re.compile(r" {0,3}(#{1,6}+)(?:[ \t]++(.*))?$")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
MOST_SYMBOLS = 5000


def outline(lines: Sequence[str], where: Where) -> list[Symbol]:
    """In order, at most MOST_SYMBOLS; each reaches to the next one that is not inside of it."""
    found = _headings(lines)
    if is_index(where):
        found += [
            Symbol(link.title or link.target, "topic", link.span, link.span.line, 7)
            for link in find_links(lines, MOST_SYMBOLS)
        ]
    found.sort(key=lambda each: (each.span.line, each.span.start))
    return _with_ends(found[:MOST_SYMBOLS], len(lines) - 1)


def _headings(lines: Sequence[str]) -> list[Symbol]:
    matter = read_matter(lines)
    found: list[Symbol] = []
    start = 0
    if matter is not None and matter.end is not None:
        title = matter.first("name", "title", "type")
        name = title.value if title and title.value else "frontmatter"
        found.append(Symbol(name, "frontmatter", Span(0, 0, len(lines[0])), matter.end))
        start = matter.end + 1
    for number, line in outside_fences(lines, start):
        if len(found) >= MOST_SYMBOLS:
            break
        if line.lstrip(" ").startswith("#") and (hit := _HEADING.match(line)):
            name = _CLOSING.sub("", hit[2] or "").strip()
            span = Span(number, 0, len(line))
            found.append(Symbol(name or "#", "heading", span, number, len(hit[1])))
    return found


def _with_ends(symbols: list[Symbol], last: int) -> list[Symbol]:
    ended = list(symbols)
    open_: list[int] = []
    for index, symbol in enumerate(symbols):
        while open_ and symbols[open_[-1]].depth >= symbol.depth:
            before = open_.pop()
            ended[before] = msgspec.structs.replace(
                ended[before], last=max(symbol.span.line - 1, ended[before].span.line)
            )
        if symbol.kind == "heading":
            open_.append(index)
    for index in open_:
        ended[index] = msgspec.structs.replace(ended[index], last=max(last, ended[index].span.line))
    return ended
