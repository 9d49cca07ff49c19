"""The closed table of commands that can be proven read-only. What is not in it is refused."""

import re

from pinfold.policy.shell.conditions import check_bracket, check_test
from pinfold.policy.shell.options import (
    Check,
    Options,
    Syntax,
    Words,
    anything,
    readings,
    require_fixed,
    require_no_option_made,
    require_settled,
    without,
)
from pinfold.policy.shell.scripts import check_awk, check_sed
from pinfold.policy.shell.words import refuse


def _find(name: str, words: Words) -> None:
    require_settled(name, words)
    for word in words:
        if word.value.startswith(("-exec", "-ok", "-delete", "-fls", "-fprint")):
            raise refuse(f"{name} {word.raw}", "may write a file or run a program")


_UNIQ = Syntax(
    bare="cdiuzD0123456789",
    valued="fsw",
    attached="dD",  # to some: how groups are set apart
    long=("count", "help", "ignore-case", "repeated", "unique", "version", "zero-terminated"),
    long_valued=("check-chars", "skip-chars", "skip-fields"),
    long_attached=("all-repeated", "group"),
)


def _uniq(name: str, words: Words) -> None:
    """Its second operand is the file that it writes to."""
    for reading in readings(name, words, _UNIQ):
        for word in reading.operands[1:]:
            raise refuse(f"{name} {word.raw}", "writes to its second operand")


_FORMAT = re.compile(r"%(?:%|[^%A-Za-z]*[hlLjzt]*(n)?)")
_TEXTS = re.compile(r"(?:[^%\\]|\\[abefnrtv\\'\"]|%(?:%|[-0-9.]*[sbqc]))*+", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|0x[0-9A-Fa-f]+)")


def _printf(name: str, words: Words) -> None:
    """`-v` assigns, and so does `%n`, to any name: PATH, for one. What is printed as a number zsh
    computes first, and then it could be any code."""
    require_fixed(name, words)
    for word in words[:2]:
        if word.value.startswith("-v"):
            raise refuse(f"{name} {word.raw}", "assigns a variable")
        if any(found.group(1) for found in _FORMAT.finditer(word.value)):
            raise refuse(f"{name} {word.raw}", "assigns a variable")
    formats = 2 if words and words[0].value.startswith("-") else 1
    if not all(_TEXTS.fullmatch(word.value) for word in words[:formats]):
        for word in words[1:]:
            if not _NUMBER.fullmatch(word.value):
                raise refuse(f"{name} {word.raw}", "may be computed where it is to be a number")


_DATE = Syntax(
    bare="uR",
    valued="dr",
    attached="I",
    long=(
        *("debug", "help", "resolution", "rfc-2822", "rfc-822", "rfc-email", "uct", "universal"),
        *("utc", "version"),
    ),
    long_valued=("date", "reference", "rfc-3339"),
    long_attached=("iso-8601",),
)
_DATE_SETS = Options("s", ("set",), "drI", why="may set the clock")


def _date(name: str, words: Words) -> None:
    """Without setting: an operand that is no format is a time to set. None begins with a `-`: such
    an operand ends the program."""
    _DATE_SETS.require_none(name, words)
    for reading in readings(name, words, _DATE):
        for word in reading.operands:
            if word.value.startswith("-"):
                break
            if not word.value.startswith("+"):
                raise refuse(f"{name} {word.raw}", "may set the clock")


_RG = Options(
    "z", ("pre", "hostname-bin", "search-zip"), "ABCEMTdefgjmrt", frozenset(("pre-glob",))
)
# -S too may lead to files, but so does any large input: they have no name of the command's choice,
# are where the environment says, and go away. Where they are made is a change (-T).
_SORT = Options("oT", ("output", "temporary-directory", "compress-program"), "ktS")
_TREE = Options("oR", ("output",))
_DIFF = Options("l", ("paginate",), "CDFILSUWXx", why="runs the program `pr`")
_FILE = Options("CzZp", ("compile", "uncompress", "uncompress-noreport", "preserve-date"), "eFfmP")

_HARMLESS = (
    *("basename", "cat", "cd", "column", "cut", "df", "dirname", "du", "echo", "grep"),
    *("head", "ls", "printenv", "ps", "pwd", "stat", "tail", "true", "wc", "where", "which"),
    "whoami",
)

COMMANDS: dict[str, Check] = {
    **dict.fromkeys(_HARMLESS, anything),
    "[": check_bracket,
    "awk": check_awk,
    "date": _date,
    "diff": without(_DIFF, words_may_be=require_no_option_made),
    "file": without(_FILE, words_may_be=require_no_option_made),
    "find": _find,
    "printf": _printf,
    "rg": without(_RG),
    "ripgrep": without(_RG),
    "sed": check_sed,
    "sort": without(_SORT),
    "test": check_test,
    "tree": without(_TREE),
    "uniq": _uniq,
}
"""Name → check of its other words. git and shells are not here: `git.py`, `gate.py`."""
