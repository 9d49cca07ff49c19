"""What a page of Markdown consists of, for those who check or build pages: anchors, links, blocks.

Read by a CommonMark parser with GitHub's tables, since that is how a code host shows it.
"""

import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
_PATTERNS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    "protocol/*.md",
    "editors/**/README*.md",
    "examples/**/*.md",
)
_FOREIGN = ("node_modules", ".venv", "dist")


class Link(msgspec.Struct, frozen=True):
    """A link or an image: where it points, as written, and the line (from 1) of its paragraph."""

    line: int
    target: str


class Block(msgspec.Struct, frozen=True):
    """A fenced block. `line` (from 1) is that of its fence, `language` the first word after it;
    `note` is the comment that stands right before it, without the marks, or empty."""

    line: int
    language: str
    text: str
    note: str


class Page(msgspec.Struct, frozen=True):
    """A page. `path` is relative to the repository, with slashes."""

    path: str
    anchors: frozenset[str]
    links: tuple[Link, ...]
    blocks: tuple[Block, ...]


def sources(root: Path = ROOT) -> list[str]:
    """The pages that people read, relative to the repository, in order."""
    found = {path for pattern in _PATTERNS for path in root.glob(pattern)}
    names = [path.relative_to(root) for path in found]
    return sorted(name.as_posix() for name in names if not set(name.parts) & set(_FOREIGN))


def load(path: str, root: Path = ROOT) -> Page:
    """The page at a path relative to the repository. Raises OSError and UnicodeDecodeError."""
    return parse(path, (root / path).read_text("utf-8"))


def parse(path: str, text: str) -> Page:
    """The page with this text."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return Page(
        path,
        frozenset(_anchors(tokens)),
        tuple(_links(tokens)),
        tuple(_blocks(tokens)),
    )


def slug(heading: str) -> str:
    """The anchor that a code host gives to a heading with this text: small letters; white space is
    a hyphen; what is no letter, mark, number, hyphen or underscore is left out."""
    kept = (c for c in heading.strip().lower() if c in " -" or _is_of_a_word(c))
    return "".join(kept).replace(" ", "-")


def _is_of_a_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc")


def _anchors(tokens: list[Token]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            name = slug(_words(inline))
            count = seen.get(name, 0)
            seen[name] = count + 1
            yield f"{name}-{count}" if count else name
    for _, html in _html(tokens):
        yield from html.anchors


def _words(inline: Token) -> str:
    """The text of a heading as it is shown."""
    shown = ("text", "code_inline")
    return "".join(each.content for each in inline.children or () if each.type in shown)


def _links(tokens: list[Token]) -> Iterator[Link]:
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or ():
            target = child.attrs.get("href", child.attrs.get("src"))
            if target is not None:
                yield Link(line, str(target))
    for line, html in _html(tokens):
        yield from (Link(line, target) for target in html.targets)


def _html(tokens: list[Token]) -> Iterator[tuple[int, "_Html"]]:
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        pieces = [token, *(token.children or ())]
        raw = "".join(each.content for each in pieces if each.type in ("html_block", "html_inline"))
        if raw:
            html = _Html()
            html.feed(raw)
            html.close()
            yield line, html


class _Html(HTMLParser):
    """What raw HTML names, and where it points."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: list[str] = []
        self.targets: list[str] = []
        self.comments: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.append(value)
            if name in ("href", "src", "srcset"):
                self.targets.append(value)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data.strip())


def _blocks(tokens: list[Token]) -> Iterator[Block]:
    before: Token | None = None
    for token in tokens:
        if token.type == "fence":
            assert token.map is not None
            language = (token.info.split() or [""])[0]
            yield Block(token.map[0] + 1, language, token.content, _note(before, token.map[0]))
        before = token


def _note(before: Token | None, fence: int) -> str:
    """The comment that ends on the line before the fence, where there is one."""
    if before is None or before.type != "html_block":
        return ""
    if before.map is None or before.map[1] != fence:
        return ""
    html = _Html()
    html.feed(before.content)
    html.close()
    return html.comments[-1] if html.comments else ""
