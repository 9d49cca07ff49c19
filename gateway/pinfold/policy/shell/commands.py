"""The closed table of commands that can be proven read-only. What is not in it is refused."""

import re

from pinfold.policy.shell.conditions import check_bracket, check_test
from pinfold.policy.shell.options import (
    Check,
    Options,
    Words,
    anything,
    require_fixed,
    require_no_option_made,
    without,
)
from pinfold.policy.shell.scripts import check_awk, check_sed
from pinfold.policy.shell.words import Word, refuse


def _find(name: str, words: Words) -> None:
    require_fixed(name, words)
    for word in words:
        if word.value.startswith(("-exec", "-ok", "-delete", "-fls", "-fprint")):
            raise refuse(f"{name} {word.raw}", "may write a file or run a program")


def _uniq(name: str, words: Words) -> None:
    """Its second operand is the file that it writes to."""
    require_fixed(name, words)
    operands = 0
    rest = [word.value for word in words]
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += len(rest)
            break
        if not word.startswith("-") or word == "-":
            operands += 1
        elif re.fullmatch(r"-[^-fsw]*[fsw]|--skip-fields|--skip-chars|--check-chars", word):
            del rest[:1]
    if operands > 1:
        raise refuse(f"{name} {words[-1].raw}", "writes to its second operand")


_FORMAT = re.compile(r"%(?:%|[^%A-Za-z]*[hlLjzt]*(n)?)")


def _printf(name: str, words: Words) -> None:
    """`-v` assigns, and so does `%n`, to any name: PATH, for one."""
    require_fixed(name, words)
    for word in words[:2]:
        if word.value.startswith("-v"):
            raise refuse(f"{name} {word.raw}", "assigns a variable")
        if any(found.group(1) for found in _FORMAT.finditer(word.value)):
            raise refuse(f"{name} {word.raw}", "assigns a variable")


_DATE_LONG = (
    *("date", "debug", "help", "iso-8601", "reference", "resolution", "rfc-2822", "rfc-3339"),
    *("rfc-822", "rfc-email", "uct", "universal", "utc", "version"),
)
_DATE_VALUED = frozenset(("date", "reference", "rfc-3339"))
_DATE_CLUSTER = re.compile(r"-[uR]*+(?:(I)[a-z]*|[dr](.*))?", re.DOTALL)


def _date(name: str, words: Words) -> None:
    """Without setting: an operand that is no format is a time to set."""
    require_fixed(name, words)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.value.startswith("--"):
            takes = _date_long(name, word)
        elif word.value.startswith("-"):
            takes = _date_letters(name, word)
        elif not word.value.startswith("+"):
            raise refuse(f"{name} {word.raw}", "may set the clock")
        else:
            takes = False
        del rest[: int(takes)]


def _date_long(name: str, word: Word) -> bool:
    """Whether the next word is its value. It may be cut short."""
    option, equals, _ = word.value[2:].partition("=")
    meant = {long for long in _DATE_LONG if long.startswith(option)}
    if option and "set".startswith(option):
        raise refuse(f"{name} {word.raw}", "may set the clock")
    if not option or not meant:
        raise refuse(f"{name} {word.raw}", "is not an option that is known to be harmless")
    return not equals and meant <= _DATE_VALUED


def _date_letters(name: str, word: Word) -> bool:
    """Whether the next word is the value of the last of these letters."""
    found = _DATE_CLUSTER.fullmatch(word.value)
    if found is None or word.value == "-":
        raise refuse(f"{name} {word.raw}", "may set the clock, or is an option not known here")
    return found[2] == ""


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
