"""How programs read their options: the rules that the table of commands is written with.

There are two kinds of programs. Of one kind no operand does harm, only options do: `without` takes
each word that begins with `-` for options wherever it stands, also behind `--`, which can only
refuse more. Of the other kind the operands decide (a file to write, a script, a time to set), so
it matters which words are operands, and programs of one name differ in that: `readings` gives all
that a row of words may mean, and a command passes if each of them only reads.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import product

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


# A file may have any name, so `*` could become each option there is; `./*` cannot. Nor can what zsh
# takes for a pattern, but by a `#`, of which there may be none of what is before it.
_NO_OPTION = re.compile(r"[\"']?(?:[A-Za-z0-9_./@]|~/)[^#]*", re.DOTALL)


def require_settled(name: str, words: Words) -> None:
    """The same where only options do harm: what zsh alone takes for a pattern (`HEAD^`, `x~`) is
    fine behind a beginning that is no option's."""
    for word in words:
        if not (word.fixed or (word.settled and _NO_OPTION.fullmatch(word.raw))):
            raise refuse(word.raw, f"could become an option of {name}")


def require_no_option_made(name: str, words: Words) -> None:
    """A variable, a pattern or a list of braces is fine behind such a beginning."""
    for word in words:
        if not word.fixed and (word.splits or not _NO_OPTION.fullmatch(word.raw)):
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


def without(*groups: Options, words_may_be: Check = require_settled) -> Check:
    """A check: none of the options of these groups."""

    def check(name: str, words: Words) -> None:
        words_may_be(name, words)
        for options in groups:
            options.require_none(name, words)

    return check


_UNKNOWN = "is not an option that is known to be harmless"
_NOTHING, _VALUE, _SAME_WORD = "bare", "valued", "attached"
_Arities = dict[str, frozenset[str]]


class Syntax(msgspec.Struct, frozen=True):
    """Every option by which a program is known; what is not here is refused.

    `bare`: letters with nothing behind them; `valued`: with a value, the rest of the word or else
    the next word; `attached`: with one that can only be the rest of the word. A letter that is in
    several of them is read in each way. The long ones, which may be cut short: likewise.
    """

    bare: str = ""
    valued: str = ""
    attached: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    long_attached: tuple[str, ...] = ()


@cache
def _arities(syntax: Syntax) -> tuple[_Arities, _Arities]:
    """What may follow each letter, and each long option."""
    return (
        _inverted({_NOTHING: syntax.bare, _VALUE: syntax.valued, _SAME_WORD: syntax.attached}),
        _inverted(
            {
                _NOTHING: syntax.long,
                _VALUE: syntax.long_valued,
                _SAME_WORD: syntax.long_attached,
            }
        ),
    )


def _inverted(kinds: Mapping[str, Iterable[str]]) -> _Arities:
    found: dict[str, set[str]] = {}
    for kind, options in kinds.items():
        for option in options:
            found.setdefault(option, set()).add(kind)
    return {option: frozenset(arities) for option, arities in found.items()}


class Reading(msgspec.Struct, frozen=True):
    """`options`: each with its value, long ones as they stand there; `operands`: all else."""

    options: tuple[tuple[str, str | None], ...]
    operands: tuple[Word, ...]

    def values(self, *names: str) -> list[str]:
        """Of the options with these names, in their order. A long one may be cut short."""
        return [
            value
            for option, value in self.options
            if value is not None
            and any(
                option == name or (len(option) > 1 and name.startswith(option)) for name in names
            )
        ]


def readings(name: str, words: Words, syntax: Syntax) -> tuple[Reading, ...]:
    """All that the words may mean to a program of that name. Raises Refused where one of them has
    an option that is not known.

    GNU's programs look for options behind operands too; with POSIXLY_CORRECT in the environment,
    and on BSD, all that follows the first operand is one. Each letter that programs differ in is
    read in each way.
    """
    require_fixed(name, words)
    letters, _ = _arities(syntax)
    unsettled = [letter for letter, arities in letters.items() if len(arities) > 1]
    found = {
        _Reader(name, syntax, dict(zip(unsettled, choice)), permutes).read(words): None
        for choice in product(*(sorted(letters[letter]) for letter in unsettled))
        for permutes in (True, False)
    }
    return tuple(found)


class _Reader:
    """One reading: `chosen` says what follows a letter that has several, `permutes` whether options
    are looked for behind operands."""

    def __init__(self, name: str, syntax: Syntax, chosen: dict[str, str], permutes: bool) -> None:
        self._name = name
        letters, self._long_ones = _arities(syntax)
        self._letters = {letter: min(arities) for letter, arities in letters.items()} | chosen
        self._permutes = permutes
        self._options: list[tuple[str, str | None]] = []

    def read(self, words: Words) -> Reading:
        rest, operands = iter(words), []
        for word in rest:
            if word.value == "--":
                break
            if not word.value.startswith("-") or word.value == "-":
                operands.append(word)
                if not self._permutes:
                    break
            elif word.value.startswith("--"):
                self._long(word, rest)
            else:
                self._cluster(word, rest)
        return Reading(tuple(self._options), (*operands, *rest))

    def _long(self, word: Word, rest: Iterator[Word]) -> None:
        option, equals, value = word.value[2:].partition("=")
        arities = self._meant(option)
        if len(arities) != 1:
            raise refuse(f"{self._name} {word.raw}", _UNKNOWN)
        if not equals and arities == {_VALUE}:
            self._options.append((option, _value(rest)))
        else:
            self._options.append((option, value if equals else None))

    def _meant(self, start: str) -> frozenset[str]:
        """What may follow a long option that begins so: several where it is cut too short."""
        if start in self._long_ones:
            return self._long_ones[start]
        meant = (each for name, each in self._long_ones.items() if name.startswith(start))
        return frozenset().union(*meant)

    def _cluster(self, word: Word, rest: Iterator[Word]) -> None:
        for index, letter in enumerate(word.value[1:], 2):
            arity = self._letters.get(letter)
            if arity is None:
                raise refuse(f"{self._name} {word.raw}", _UNKNOWN)
            if arity != _NOTHING:
                behind = word.value[index:] or (_value(rest) if arity == _VALUE else None)
                self._options.append((letter, behind))
                return
            self._options.append((letter, None))


def _value(rest: Iterator[Word]) -> str | None:
    """The next word; None where there is none, which ends the program with an error."""
    word = next(rest, None)
    return None if word is None else word.value
