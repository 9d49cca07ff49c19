"""What to tell a model whose text did not match: the nearest line and the first difference."""

import difflib
import re
from collections.abc import Callable
from typing import Any

from pinfold.text.lines import endings, normalize

_QUOTES = str.maketrans("‘’‚‛′`´“”„‟″«»", "'''''''\"\"\"\"\"\"\"")
_NUMBER = re.compile(r"^[ \t]*\d+(?:\t| ?[→:|│)] ?| {2,})", re.MULTILINE)
_ESCAPE = re.compile(r"""\\([nrt"'\\])""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_NAMES = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}
_MOST_LINES = 5000
_COMPARED = 12
_MOST_CHARACTERS = 2_000_000


def _without_blanks(text: str) -> str:
    return "\n".join("".join(line.split()) for line in text.split("\n"))


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("", text)


def _without_escapes(text: str) -> str:
    return normalize(_ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text))


def _straight_quotes(text: str) -> str:
    return text.translate(_QUOTES)


# What the text that was looked for may have too much of, what takes that away, and how it is told.
_TOO_MUCH: tuple[tuple[Callable[[str], str], str], ...] = (
    (_without_numbers, " A line-number prefix was copied into old_string."),
    (
        _without_escapes,
        " old_string is escaped: a backslash and a letter stand where the file has the character.",
    ),
)
# What the text that was looked for may differ in, and what makes both alike.
_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("white space", _without_blanks),
    ("quote characters", _straight_quotes),
    ("letter case", str.casefold),
)


def no_match_hint(text: str, old: str) -> tuple[str, dict[str, Any]]:
    """A sentence, and members for the error's details (`line` from 0); both may be empty."""
    if len(text) > _MOST_CHARACTERS or len(old) > _MOST_CHARACTERS:
        return "", {}
    have, want = endings(text), endings(old)
    text, old = normalize(text), normalize(old)
    if (at := text.find(old)) >= 0:
        return _other_ending(text, text.count("\n", 0, at), have, want)
    if old.endswith("\n") and text.endswith(old[:-1]):
        line = text.count("\n")
        cause = f" The file ends there, in line {line + 1}, without a final newline."
        return cause, {"line": line, "column": len(text) - text.rfind("\n") - 1}
    for less, cause in _TOO_MUCH:
        plain = less(old)
        if plain != old and plain.strip() and (at := text.find(plain)) >= 0:
            return _describe(text, old, text.count("\n", 0, at), cause)
    for name, alike in _DIFFERENCES:
        wanted, changed = alike(old), alike(text)
        if wanted.strip() and (at := changed.find(wanted)) >= 0:
            return _describe(text, old, changed.count("\n", 0, at), f" It differs in {name}.")
    return _nearest(text, old)


def _other_ending(
    text: str, line: int, have: list[str], want: list[str]
) -> tuple[str, dict[str, Any]]:
    """Where all else is alike: the first ending from `line` on that is not what was asked for."""
    pairs = enumerate(zip(have[line:], want, strict=False), line)
    found = next((pair for pair in pairs if pair[1][1] not in ("\n", pair[1][0])), None)
    if found is None:
        return "", {}
    number, (own, other) = found
    sentence = (
        f" It differs in line endings: line {number + 1} (offset {number}) ends with "
        f"{_NAMES[own]} where old_string has {_NAMES[other]}. Give \\n instead, which matches all."
    )
    return sentence, {"line": number, "column": len(text.split("\n", number + 1)[number])}


def _nearest(text: str, old: str) -> tuple[str, dict[str, Any]]:
    wanted = next((line for line in old.split("\n") if line.strip()), "")
    if not wanted:
        return "", {}
    lines = text.split("\n")[:_MOST_LINES]
    alike = _most_alike(wanted, lines) if len(wanted) < 500 else []
    close = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.6)
    if not close:
        return "", {}
    skipped = old.split("\n").index(wanted)
    line = max(0, lines.index(close[0]) - skipped)
    return _describe(text, old, line, "")


def _most_alike(wanted: str, lines: list[str]) -> list[str]:
    """The few lines that share the most triples of characters; the careful comparison is slow."""
    triples = {wanted[i : i + 3] for i in range(len(wanted) - 2)} or {wanted}
    length = len(wanted)
    near = {line for line in lines if length <= 2 * len(line) and len(line) <= 2 * length}
    ranked = sorted(near, key=lambda line: -sum(triple in line for triple in triples))
    return ranked[:_COMPARED]


def _describe(text: str, old: str, line: int, cause: str) -> tuple[str, dict[str, Any]]:
    """Compare line by line from `line` on; the first pair that differs tells the difference."""
    here, wanted = text.split("\n")[line:], old.split("\n")
    pairs = enumerate(zip(here, wanted, strict=False))
    count = next((i for i, (a, b) in pairs if a != b), 0)
    have, want = here[count], wanted[min(count, len(wanted) - 1)]
    if count == 0 and want not in have:  # it may begin in the middle of the line
        start = _best_start(have, want)
        have, shift = have[start:], start
    else:
        shift = 0
    column = next((i for i, (a, b) in enumerate(zip(have, want, strict=False)) if a != b), None)
    if column is None:
        column = min(len(have), len(want))
    number = line + count
    sentence = (
        f" The nearest text is at line {number + 1} (offset {number}): from character "
        f"{column + shift} on the file has {_excerpt(have, column)} where old_string has "
        f"{_excerpt(want, column)}."
    )
    return sentence + cause, {"line": number, "column": column + shift}


def _best_start(have: str, want: str) -> int:
    """Where in a line the text that was looked for probably begins: its first few characters."""
    for length in range(min(len(want), 12), 1, -1):
        if (at := have.find(want[:length])) >= 0:
            return at
    return 0


def _excerpt(line: str, column: int) -> str:
    return repr(line[column : column + 40]) if column < len(line) else "no more on this line"


def ambiguous_hint(lines: list[int], matches: int, many: bool) -> str:
    """Where a text matched that had to match once; `lines` from 0, the first of them, none where
    they are not to be told."""
    shown = ", ".join(str(line + 1) for line in lines)
    more = ", …" if matches > len(lines) else ""
    count = f"{matches} times or more" if many else f"{matches} times"
    if not lines:
        return f"It matches {count}."
    return f"It matches {count}, in lines {shown}{more} (counted from 1)."
