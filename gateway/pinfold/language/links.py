"""Markdown links in a memory document: where they stand, and which file they name."""

import re
import urllib.parse
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import msgspec

from pinfold.language.fences import outside_fences
from pinfold.language.model import Span
from pinfold.policy.names import collapse

# Possessive throughout, so that a long line costs one look at each of its characters.
_WORDS = r"(?P<title>(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*+\])*+)"
_PLACE = r"(?:<(?P<angle>[^<>]*+)>|(?P<plain>(?:[^\s()<>]|\([^\s()]*+\))*+))"
_MORE = r"(?:[ \t]++(?:\"[^\"]*+\"|'[^']*+'|\([^()]*+\)))?+[ \t]*+"
_LINK = re.compile(rf"(?<![!\\])\[{_WORDS}\]\([ \t]*+{_PLACE}{_MORE}\)")
# `[label]: place`, but no footnote
_DEFINITION = re.compile(
    rf" {{0,3}}\[(?P<title>(?!\^)(?:[^\[\]\\]|\\.)++)\]:[ \t]*+(?!$){_PLACE}{_MORE}$"
)
_TICKS = re.compile(r"`++")
_MARK = re.compile("[?#]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KEPT = "._~-/"
"""What the other program leaves as it is in a link, beside letters and digits (reference, C.4)."""
MOST_COLUMNS = 20_000
"""In a line that is longer, no links are looked for."""
MOST_LINKS = 2000
"""How many links of one document are told and looked up."""


class Link(msgspec.Struct, frozen=True):
    """One link: its title, what stands between its parentheses, and where."""

    title: str
    target: str
    span: Span
    at: Span

    @property
    def path(self) -> str | None:
        """The path that it names, decoded, without a fragment; None where it names no file."""
        if _SCHEME.match(self.target) or self.target.startswith(("#", "?")):
            return None
        text = self.target.partition("#")[0].partition("?")[0]
        path = urllib.parse.unquote(text, errors="surrogateescape")
        return path if path and "\0" not in path and is_nameable(path) else None

    @property
    def fragment(self) -> str:
        """What follows the path, with its `?` or `#`."""
        hit = _MARK.search(self.target)
        return "" if hit is None else self.target[hit.start() :]


def find_links(lines: Sequence[str], most: int | None = None) -> list[Link]:
    """The links of a document, and what its reference links are defined as, in order; those in code
    are none. With `most`, no more than so many, and nothing is read behind them."""
    links = (link for number, line in outside_fences(lines) for link in _in_line(number, line))
    return list(islice(links, most))


def links_on(lines: Sequence[str], number: int) -> list[Link]:
    """The links in one line of a document."""
    above = takewhile(lambda each: each[0] <= number, outside_fences(lines))
    return [link for at, line in above if at == number for link in _in_line(at, line)]


def _in_line(number: int, line: str) -> Iterator[Link]:
    if ("](" not in line and "]:" not in line) or len(line) > MOST_COLUMNS:
        return
    text = _without_code(line)
    if hit := _DEFINITION.match(text):
        yield _link(hit, line, number)
    else:
        yield from (_link(hit, line, number) for hit in _LINK.finditer(text))


def _without_code(line: str) -> str:
    """A line with blanks in place of its code: what is between two runs of as many backticks."""
    if "`" not in line:
        return line
    runs = [hit.span() for hit in _TICKS.finditer(line)]
    later: dict[int, list[int]] = {}
    for index in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[index][1] - runs[index][0], []).append(index)
    parts: list[str] = []
    at = index = 0
    while index < len(runs):
        start, end = runs[index]
        same = later[end - start]
        while same and same[-1] <= index:
            same.pop()
        if same:
            index = same.pop()
            parts += (line[at:start], " " * (runs[index][1] - start))
            at = runs[index][1]
        index += 1
    return "".join((*parts, line[at:]))


def _link(hit: "re.Match[str]", text: str, line: int) -> Link:
    group = "plain" if hit["angle"] is None else "angle"
    at = Span(line, hit.start(group), hit.end(group))
    title = text[hit.start("title") : hit.end("title")]
    return Link(title, hit[group], Span(line, hit.start(), hit.end()), at)


def is_nameable(path: str) -> bool:
    """Whether a file could have this path: lone surrogates stand for bytes that are no UTF-8, and
    some for none."""
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def resolve(document: str, path: str) -> str:
    """The absolute path that a link in `document` names, folded as text."""
    base = document.rpartition("/")[0]
    return collapse(path if path.startswith("/") else f"{base}/{path}")


def as_target(document: str, path: str) -> str:
    """How a link in `document` names an absolute path: relative to it, encoded as the other program
    does."""
    here, there = document.split("/")[:-1], path.split("/")
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    steps = [".."] * (len(here) - same) + there[same:]
    return urllib.parse.quote("/".join(steps), safe=_KEPT, errors="surrogateescape")
