"""Markdown links in a memory document: where they stand, and which file they name."""

import re
import urllib.parse
from collections.abc import Sequence

import attrs

from pinfold.language.model import Span
from pinfold.policy.names import collapse

# Possessive throughout, so that a long line costs one look at each of its characters.
_LINK = re.compile(
    r"(?<!!)\[(?P<title>(?:[^\[\]\\]|\\.)*+)\]"
    r"\([ \t]*+(?:<(?P<angle>[^<>]*+)>|(?P<plain>(?:[^\s()<>]|\([^\s()]*+\))*+))"
    r"(?:[ \t]++(?:\"[^\"]*+\"|'[^']*+'))?+[ \t]*+\)"
)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KEPT = "._~-/"
"""What the other program leaves as it is in a link, beside letters and digits (reference, C.4)."""
MOST_COLUMNS = 20_000
"""In a line that is longer, no links are looked for."""


@attrs.frozen
class Link:
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
        return None if not path or "\0" in path else path

    @property
    def fragment(self) -> str:
        """What follows the path, with its `#`."""
        at = self.target.find("#")
        return "" if at < 0 else self.target[at:]


def find_links(lines: Sequence[str]) -> list[Link]:
    """The links of a document, in order; those in fenced code are none."""
    found: list[Link] = []
    fence = ""
    for number, line in enumerate(lines):
        if mark := _FENCE.match(line):
            run, rest = mark[1], mark[2].strip()
            if not fence:
                fence = run
                continue
            if run[0] == fence[0] and len(run) >= len(fence) and not rest:
                fence = ""
                continue
        if not fence and "](" in line and len(line) <= MOST_COLUMNS:
            found += [_link(hit, number) for hit in _LINK.finditer(line)]
    return found


def _link(hit: "re.Match[str]", line: int) -> Link:
    group = "plain" if hit["angle"] is None else "angle"
    at = Span(line, hit.start(group), hit.end(group))
    return Link(hit["title"], hit[group], Span(line, hit.start(), hit.end()), at)


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
