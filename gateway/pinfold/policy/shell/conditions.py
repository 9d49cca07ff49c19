"""`test` and `[`: nothing of theirs writes, but `-v` and `-R` evaluate a subscript, and zsh takes a
number for something to compute."""

import re

from pinfold.policy.shell.options import Words
from pinfold.policy.shell.words import NUMERALS, Word, refuse

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[0-9]+\])?|[0-9]+")
_EVALUATES = ("-v", "-R")
_COMPUTES = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")
_NUMBER = re.compile(r"[-+]?[0-9]+|\$\(\([^)]*\)\)|\$\[[^]]*\]")
_UNARY = re.compile(r"-[a-zA-Z]|!")
_BINARY = re.compile(r"=|==|!=|<|>|=~|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef|a|o)")


def check_bracket(name: str, words: Words) -> None:
    """`[ … ]`. Raises Refused."""
    if not words or words[-1].raw != "]":
        raise refuse(name, "has no end")
    check_test(name, words[:-1])


def check_test(name: str, words: Words) -> None:
    """Raises Refused unless no variable of these can come to stand where an operator does."""
    for index, word in enumerate(words):
        _require_numbers(words, index)
        evaluated = index > 0 and words[index - 1].value in _EVALUATES
        named = evaluated and not word.expands and _NAME.fullmatch(word.value)
        if word.splits or word.braces or word.otherwise or (word.globs and not named):
            raise refuse(word.raw, f"could become several words of {name}")
        if evaluated and not named:
            raise refuse(f"{words[index - 1].raw} {word.raw}", "may evaluate a subscript")
    if any(word.expands for word in words) and not _known(words):
        raise refuse(" ".join(word.raw for word in words), f"has too many readings for {name}")


def _require_numbers(words: Words, index: int) -> None:
    """Raises Refused if zsh would compute with more than a number beside this operator: with what a
    variable holds it could run a command."""
    operator = words[index].value
    beside = words[index + 1 : index + 2] if operator in ("-t", *_COMPUTES) else ()
    if operator in _COMPUTES:
        beside = (*words[max(index - 1, 0) : index], *beside)
    for word in beside:
        if word.raw not in NUMERALS and not _NUMBER.fullmatch(word.value):
            raise refuse(f"{operator} {word.raw}", "may compute with more than a number")


def _known(words: Words) -> bool:
    """One of the forms that bash decides on by their number."""
    if len(words) > 1 and words[0].raw == "!":
        return _known(words[1:])
    if len(words) == 2:
        return _operator(words[0], _UNARY)
    if len(words) == 3:
        return _operator(words[1], _BINARY)
    return len(words) == 1


def _operator(word: Word, operators: re.Pattern[str]) -> bool:
    return word.fixed and operators.fullmatch(word.value) is not None
