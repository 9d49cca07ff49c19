"""How programs read their options: a few rules that the table of commands is written with.

A word that begins with `-` is taken for options wherever it stands, also behind `--`: that can only
refuse more.
"""

import re
from collections.abc import Callable

import msgspec

from pinfold.policy.shell.words import Word, refuse

Words = tuple[Word, ...]
Check = Callable[[str, Words], None]
"""A command's name and its other words; raises Refused for what is not proven read-only."""


def anything(name: str, words: Words) -> None:
    """No option of it writes or runs anything."""


def require_fixed(name: str, words: Words) -> None:
    """What a variable, a pattern or a list of braces becomes could be an option."""
    for word in words:
        if not word.fixed:
            raise refuse(word.raw, f"could become an option of {name}")


_NO_OPTION = re.compile(r"[\"']?(?:[A-Za-z0-9_./]|~/)")


def require_no_option_made(name: str, words: Words) -> None:
    """A variable, a pattern or a list of braces is fine behind a beginning that is no option's. A
    file may have any name, so `*` could become each option there is; `./*` cannot."""
    for word in words:
        if not word.fixed and (word.splits or not _NO_OPTION.match(word.raw)):
            raise refuse(word.raw, f"could become an option of {name}")


class Options(msgspec.Struct, frozen=True):
    """`short`: letters that are refused; `long`: names without `--`, refused with each of their
    beginnings, since many programs let them be cut short, but not where the word is one of
    `exact`. `valued`: letters whose value may follow in the same word. `why`: what they do."""

    short: str = ""
    long: tuple[str, ...] = ()
    valued: str = ""
    exact: frozenset[str] = frozenset()
    why: str = "may write a file or run a program"

    def require_none(self, name: str, words: Words) -> None:
        """Raises Refused for a word that has one of the refused options."""
        for word in words:
            if self.hits(word.value):
                raise refuse(f"{name} {word.raw}", self.why)

    def hits(self, text: str) -> bool:
        """Whether this word has a refused option."""
        if text.startswith("--"):
            option = text[2:].partition("=")[0]
            if option in self.exact or not option:
                return False
            return any(long.startswith(option) for long in self.long)
        return text.startswith("-") and self._in_cluster(text[1:])

    def _in_cluster(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.short:
                return True
            if letter in self.valued:
                return False
        return False


def without(*groups: Options, words_may_be: Check = require_fixed) -> Check:
    """A check: none of the options of these groups."""

    def check(name: str, words: Words) -> None:
        words_may_be(name, words)
        for options in groups:
            options.require_none(name, words)

    return check
