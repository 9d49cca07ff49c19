"""Frontmatter: is it a memory topic, and what is it called? Observed of Qwen Code, section C.2.

The first line is `---`, and the text up to the next line that begins with `---` holds lines of
`key: value`, each at the very beginning of its line. It is no YAML: nothing is unquoted, nested or
taken for a comment, and the first line of a key counts.
"""

import re
from typing import NamedTuple, cast

from pinfold_protocol.memory import DocumentType

MOST_BYTES = 64 * 1024
"""How far frontmatter may reach."""

INDEX_NAME = "MEMORY.md"
TYPES = ("user", "feedback", "project", "reference")
WHY = {
    "frontmatter-missing": "it does not begin with a line of `---`",
    "frontmatter-mark": "it begins with a byte-order mark, and not with a line of `---`",
    "frontmatter-unclosed": "its frontmatter has no end: no second line of `---`",
    "frontmatter-long": f"its frontmatter is longer than {MOST_BYTES} bytes",
    "type-missing": "its frontmatter has no type",
    "type-unknown": f"its type is none of {', '.join(TYPES)}",
}
"""Why a file that is not empty is no topic, by names that stay."""
EMPTY = "it is empty"

_FENCE, _END = b"---\n", b"\n---"
_LINE_ENDS = re.compile("[\r\u2028\u2029]")
# What the other program trims: Python's own idea of a blank is another one.
_BLANKS = "\t\v\f \xa0\u1680\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


class Topic(NamedTuple):
    """What the frontmatter of a valid topic says."""

    type: DocumentType
    title: str
    description: str


def read_topic(head: bytes, *, whole: bool) -> Topic | str | None:
    """The beginning of a file (`whole`: all of it) → its topic, or why it is none, in words that
    quote nothing of it; None where more of it is needed, which is never beyond MOST_BYTES.

    A byte that is no UTF-8 is read as U+FFFD.
    """
    if b"\r" in head:
        head = head.replace(b"\r\n", b"\n")
    if not head.startswith(_FENCE):
        return _no_beginning(head)
    end = head.find(_END, len(_FENCE))
    if 0 <= end <= MOST_BYTES:
        return _topic(head[len(_FENCE) - 1 : end + 1].decode("utf-8", "replace"))
    if len(head) >= MOST_BYTES:
        return WHY["frontmatter-long"]
    return WHY["frontmatter-unclosed"] if whole else None


def _no_beginning(head: bytes) -> str:
    if not head:
        return EMPTY
    if head.startswith(_MARKS):
        return WHY["frontmatter-mark"]
    return WHY["frontmatter-missing"]


def _topic(text: str) -> Topic | str:
    """`text` begins and ends with the ends of lines."""
    if not text.isascii() or "\r" in text:
        text = _LINE_ENDS.sub("\n", text)
    kind = _value(text, "\ntype:")
    if not kind:
        return WHY["type-missing"]
    if kind not in TYPES:
        return WHY["type-unknown"]
    title = _value(text, "\nname:") or _value(text, "\ntitle:") or kind
    return Topic(cast(DocumentType, kind), title, _value(text, "\ndescription:"))


def _value(text: str, key: str) -> str:
    """The rest of the first line that begins with a key and goes on, if only with a blank; empty
    where there is none."""
    start = 0
    while (at := text.find(key, start)) >= 0:
        start = at + len(key)
        end = text.index("\n", start)
        if start < end:
            return text[start:end].strip(_BLANKS)
    return ""
