"""Completion: keys and types in frontmatter, topics in an index."""

import re
import urllib.parse
from collections.abc import Iterable, Sequence

from pinfold.language.diagnose import is_index, is_topic
from pinfold.language.facts import Where
from pinfold.language.links import as_target
from pinfold.language.matter import read_matter
from pinfold.language.model import Change, Proposal, Span
from pinfold.text.frontmatter import TYPES
from pinfold_protocol.memory import MemoryDocument

_KEYS = {
    "type": "user, feedback, project or reference; without it no agent sees the topic",
    "name": "the title in the index",
    "description": "one line that tells an agent when to read it",
}
_TYPES = {
    "user": "who the user is and what they like",
    "feedback": "what the user corrected or confirmed",
    "project": "what is going on and why",
    "reference": "where things are to be found",
}
MOST_PROPOSALS = 2000
_TARGET = re.compile(r"\]\((<?[^()<>\s]*)$")
_ENTRY = re.compile(r"^\s*[-*+][ \t]+(\[?[^\[\]]*)$")
_REST = re.compile(r"[^()<>\s]*>?")


def complete(lines: Sequence[str], where: Where, line: int, column: int) -> list[Proposal] | None:
    """What fits at the cursor in frontmatter; None where topics do, which `complete_topic` has."""
    if is_topic(where):
        return _in_frontmatter(lines, line, column)
    return None if is_index(where) and wants_topic(lines, line, column) else []


def _in_frontmatter(lines: Sequence[str], line: int, column: int) -> list[Proposal]:
    matter = read_matter(lines)
    if matter is None or line < 1 or (matter.end is not None and line >= matter.end):
        return []
    before = lines[line][:column] if line < len(lines) else ""
    key, colon, _ = before.partition(":")
    if not colon:
        present = {entry.key for entry in matter.entries if entry.at.line != line}
        span = Span(line, 0, len(key))
        return [
            Proposal(name, "key", Change(span, f"{name}: "), detail)
            for name, detail in _KEYS.items()
            if name not in present
        ]
    if key != "type":
        return []
    span = Span(line, len(key) + 1, len(lines[line]))
    return [Proposal(name, "value", Change(span, f" {name}"), _TYPES[name]) for name in TYPES]


def wants_topic(lines: Sequence[str], line: int, column: int) -> bool:
    """Whether a topic could stand at the cursor in an index."""
    before = lines[line][:column] if line < len(lines) else ""
    return bool(_TARGET.search(before) or _ENTRY.match(before))


def likely(
    lines: Sequence[str], line: int, column: int, topics: Sequence[MemoryDocument]
) -> Sequence[MemoryDocument]:
    """The topics to propose at the cursor: all of them, or else MOST_PROPOSALS, those first whose
    path or title has what was typed so far."""
    if len(topics) <= MOST_PROPOSALS:
        return topics
    before = lines[line][:column]
    hit = _TARGET.search(before) or _ENTRY.match(before)
    typed = urllib.parse.unquote(hit[1]).lstrip("<[ ").casefold() if hit else ""

    def is_other(topic: MemoryDocument) -> bool:
        return typed not in f"{topic.relative_path}\n{topic.title}".casefold()

    return sorted(topics, key=is_other)[:MOST_PROPOSALS]


def complete_topic(
    lines: Sequence[str], where: Where, line: int, column: int, topics: Iterable[MemoryDocument]
) -> list[Proposal]:
    """The topics of the root: their paths inside of a link, whole entries at the start of one."""
    text = lines[line]
    if hit := _TARGET.search(text[:column]):
        rest = _REST.match(text, column)
        span = Span(line, hit.start(1), rest.end() if rest else column)
        return [
            Proposal(
                each.relative_path,
                "file",
                Change(span, _target(where, each)),
                each.title,
                each.description,
            )
            for each in topics
        ]
    entry = _ENTRY.match(text[:column])
    if entry is None:
        return []
    end = len(text) if not text[column:].strip("] ") else column
    span = Span(line, entry.start(1), end)
    return [
        Proposal(
            each.title,
            "file",
            Change(span, as_entry(where, each)),
            each.relative_path,
            each.description,
        )
        for each in topics
    ]


def _target(where: Where, topic: MemoryDocument) -> str:
    return as_target(where.path, f"{where.root}/{topic.relative_path}")


def as_entry(where: Where, topic: MemoryDocument) -> str:
    """An entry as the other program writes it, without what leads it (reference, C.4)."""
    title = topic.title.replace("`", "'").replace("](", "] (").replace("[", "(").replace("]", ")")
    more = f" — {topic.description}" if topic.description else ""
    return f"[{title}]({_target(where, topic)}){more}"
