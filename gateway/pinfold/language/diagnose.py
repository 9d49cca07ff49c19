"""What is wrong with a memory document, or worth knowing of it."""

from collections.abc import Iterator, Mapping, Sequence

from pinfold.language.facts import Linked, Where
from pinfold.language.links import find_links
from pinfold.language.matter import Matter, read_matter
from pinfold.language.model import Finding, Severity, Span
from pinfold.policy.names import RESERVED, below, same, split
from pinfold.text.columns import units
from pinfold.text.frontmatter import EMPTY, INDEX_NAME, MOST_BYTES, WHY, read_topic

MOST_LINES, MOST_UNITS, MOST_LINE_UNITS = 200, 25_000, 150
"""What an agent's prompt takes of an index, and how long an entry is written (reference, C.4 and
C.6), in lines and in UTF-16 units."""
MOST_FINDINGS = 500

SEVERITIES: dict[str, Severity] = {
    "frontmatter-missing": "error",
    "frontmatter-mark": "error",
    "frontmatter-unclosed": "error",
    "frontmatter-long": "error",
    "type-missing": "error",
    "type-unknown": "error",
    "key-repeated": "warning",
    "description-missing": "information",
    "index-lines": "warning",
    "index-size": "warning",
    "index-line": "information",
    "link-dead": "error",
    "link-leaves": "error",
    "document-leaves": "error",
    "pinned-nested": "error",
    "pinned-hard-link": "warning",
    "pinned": "hint",
}
"""Every code that there is; docs/language.md has a section for each."""


def is_index(where: Where) -> bool:
    """Whether a document is the index of its root."""
    return where.relative == INDEX_NAME


def is_topic(where: Where) -> bool:
    """Whether a document is meant to be a topic."""
    return where.relative.endswith(".md") and split(where.relative)[-1] != INDEX_NAME


def diagnose(
    text: str, lines: Sequence[str], where: Where, links: Mapping[str, Linked]
) -> list[Finding]:
    """The findings, by place, at most MOST_FINDINGS. `lines`: those of `text`, without endings;
    `links`: what the paths that its links name lead to, as far as that was looked up."""
    found = [*_of_place(where, lines)]
    if is_topic(where):
        found += _of_topic(text, lines, where)
    if is_index(where):
        found += _of_index(lines)
    found += _of_links(lines, where, links)
    return sorted(found, key=lambda each: each.span)[:MOST_FINDINGS]


def _finding(code: str, span: Span, message: str) -> Finding:
    return Finding(code, SEVERITIES[code], span, message)


def _line(lines: Sequence[str], number: int) -> Span:
    return Span(number, 0, len(lines[number]) if number < len(lines) else 0)


# Where it is


def _of_place(where: Where, lines: Sequence[str]) -> Iterator[Finding]:
    first = _line(lines, 0)
    if where.leaves:
        message = (
            "This document is, or is below, a link that leads out of its memory root: no agent "
            "sees it as memory, and none that is confined may change it."
        )
        yield _finding("document-leaves", first, message)
    if where.pinned == "hard-link":
        message = (
            "This file is a hard link to a pinned document: the gateway refuses to change it, but "
            "other programs that write in place change both."
        )
        yield _finding("pinned-hard-link", first, message)
    elif where.pinned is not None:
        message = "Pinned: automated maintenance can read this document and cannot change it."
        yield _finding("pinned", first, message)
    elif protects_nothing(where):
        yield _finding("pinned-nested", first, _NESTED)


_NESTED = (
    f"This {RESERVED}/ protects nothing: only {RESERVED}/ at the top level of the project or the "
    "user root does."
)


def protects_nothing(where: Where) -> bool:
    """Whether a document that is not pinned is in a directory that looks as if it were."""
    return where.pinned is None and _looks_pinned(split(where.relative))


def _looks_pinned(names: Sequence[str]) -> bool:
    return any(same(name, RESERVED) for name in names[:-1])


# Frontmatter

_CODES = {words: code for code, words in WHY.items()} | {EMPTY: "frontmatter-missing"}


def _of_topic(text: str, lines: Sequence[str], where: Where) -> Iterator[Finding]:
    matter = read_matter(lines)
    said = WHY["frontmatter-mark"] if where.mark else read_topic(_head(text), whole=True)
    if isinstance(said, str):
        code = _CODES[said]
        span = _blamed(code, lines, matter)
        yield _finding(code, span, f"No agent sees this document as a topic: {said}.")
    if matter is not None and matter.end is not None:
        yield from _of_entries(matter, valid=not isinstance(said, str))


def _head(text: str) -> bytes:
    """What decides is in the first 64 KiB of the bytes; so many characters have no fewer."""
    head = text[: MOST_BYTES + 8]
    return head.replace("\r\n", "\n").encode("utf-8", "surrogatepass")


def _blamed(code: str, lines: Sequence[str], matter: Matter | None) -> Span:
    if code == "type-unknown" and matter is not None and (entry := matter.first("type")):
        return entry.value_at
    if code == "type-missing" and matter is not None and (entry := matter.first("type")):
        return entry.at
    return _line(lines, 0)


def _of_entries(matter: Matter, *, valid: bool) -> Iterator[Finding]:
    seen: set[str] = set()
    for entry in matter.entries:
        if entry.key in seen:
            message = f"{entry.key} stands here once more; the first one counts."
            yield _finding("key-repeated", entry.at, message)
        seen.add(entry.key)
    described = matter.first("description")
    if valid and (described is None or not described.value):
        message = "Without a description the index has nothing to say of this topic but its title."
        span = Span(0, 0, 3) if described is None else described.at
        yield _finding("description-missing", span, message)


# The index


def _of_index(lines: Sequence[str]) -> Iterator[Finding]:
    first, last = _trimmed(lines)
    count = last - first
    if count > MOST_LINES:
        message = f"{count} lines: agents are shown the first {MOST_LINES}, and not from here on."
        yield _finding("index-lines", _line(lines, first + MOST_LINES), message)
    size, told = 0, False
    for number in range(first, last):
        length = units(lines[number], "utf-16")
        size += length + 1
        if size - 1 > MOST_UNITS and not told:
            told = True
            message = f"Agents are shown {MOST_UNITS:,} characters of the index, up to here."
            yield _finding("index-size", _line(lines, number), message)
        if length > MOST_LINE_UNITS:
            message = (
                f"An entry of {length} characters is cut to {MOST_LINE_UNITS} when the index is "
                "rebuilt."
            )
            yield _finding("index-line", _line(lines, number), message)


def _trimmed(lines: Sequence[str]) -> tuple[int, int]:
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


# Links


def _of_links(lines: Sequence[str], where: Where, links: Mapping[str, Linked]) -> Iterator[Finding]:
    for link in find_links(lines):
        found = links.get(link.path or "")
        if found is None:
            continue
        if not found.inside:
            message = f"{link.path} leads out of the memory root, and no agent follows it there."
            yield _finding("link-leaves", link.at, message)
        elif not found.exists and is_index(where):
            yield _finding("link-dead", link.at, f"There is no {link.path} in this memory root.")
        elif found.exists and not found.pinned and _looks_pinned(_inside(found, where)):
            yield _finding("pinned-nested", link.at, _NESTED)


def _inside(linked: Linked, where: Where) -> tuple[str, ...]:
    return below(linked.path, where.root) or ()
