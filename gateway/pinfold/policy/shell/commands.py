"""The closed table of commands that can be proven read-only. What is not in it is refused."""

import re

from pinfold.policy.shell.conditions import check_bracket, check_test
from pinfold.policy.shell.options import (
    Check,
    Options,
    Words,
    anything,
    require_fixed,
    require_no_option_from_names,
    without,
)
from pinfold.policy.shell.scripts import check_awk, check_sed
from pinfold.policy.shell.words import refuse


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


_DATE_VALUE = re.compile(r"-[uR]*[dr]|--date|--reference")
_DATE_KNOWN = re.compile(
    r"-[uR]*(?:I(?:date|hours|minutes|seconds|ns)?|[dr].+)?|--(?:utc|universal|debug|rfc-email|help|"
    r"version|iso-8601(?:=.*)?|(?:rfc-3339|date|reference)=.*)",
    re.DOTALL,
)


def _date(name: str, words: Words) -> None:
    """Without setting: an operand that is no format is a time to set."""
    require_fixed(name, words)
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if _DATE_VALUE.fullmatch(word.value):
            del rest[:1]
        elif not (_DATE_KNOWN.fullmatch(word.value) or word.value.startswith("+")):
            raise refuse(f"{name} {word.raw}", "may set the clock")


_RG = Options(
    "z", ("pre", "hostname-bin", "search-zip"), "ABCEMTdefgjmrt", frozenset(("pre-glob",))
)
_SORT = Options("oT", ("output", "temporary-directory", "compress-program"), "ktS")
_TREE = Options("oR", ("output",))
_FILE = Options("CzZp", ("compile", "uncompress", "uncompress-noreport", "preserve-date"), "eFfmP")

_HARMLESS = (
    *("basename", "cat", "cd", "column", "cut", "df", "diff", "dirname", "du", "echo", "grep"),
    *("head", "ls", "printenv", "ps", "pwd", "stat", "tail", "true", "wc", "where", "which"),
    "whoami",
)

COMMANDS: dict[str, Check] = {
    **dict.fromkeys(_HARMLESS, anything),
    "[": check_bracket,
    "awk": check_awk,
    "date": _date,
    "file": without(_FILE, require_no_option_from_names),
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
