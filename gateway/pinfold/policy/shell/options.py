"""How programs read their options: a few rules that the table of commands is written with.

A word that begins with `-` is taken for options wherever it stands, also behind `--`: that can only
refuse more.
"""

from collections.abc import Callable

import attrs

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


def require_no_option_from_names(name: str, words: Words) -> None:
    """A pattern is fine that cannot match a name beginning with `-`."""
    for word in words:
        if word.expands or word.braces or (word.globs and word.value[:1] in ("-", "*", "?", "[")):
            raise refuse(word.raw, f"could become an option of {name}")


@attrs.frozen
class Options:
    """`short`: letters that are refused; `long`: names without `--`, refused with each of their
    beginnings, since many programs let them be cut short, but not where the word is one of
    `exact`. `valued`: letters whose value may follow in the same word."""

    short: str = ""
    long: tuple[str, ...] = ()
    valued: str = ""
    exact: frozenset[str] = frozenset()

    def require_none(self, name: str, words: Words) -> None:
        """Raises Refused for a word that has one of the refused options."""
        for word in words:
            if self.hits(word.value):
                raise refuse(f"{name} {word.raw}", "may write a file or run a program")

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


def without(options: Options, words_may_be: Check = require_fixed) -> Check:
    """A check: none of these options."""

    def check(name: str, words: Words) -> None:
        words_may_be(name, words)
        options.require_none(name, words)

    return check
