"""A shell around a command: `bash -c '…'`. Its other words must be harmless as well."""

import re

from pinfold.policy.shell.options import Words
from pinfold.policy.shell.words import Refused, Word, refuse

_POSIX = frozenset(("sh", "/bin/sh", "/usr/bin/sh"))
SHELLS = _POSIX | {"bash", "/bin/bash", "/usr/bin/bash"}
"""Shells whose grammar is known here. zsh, cmd and PowerShell read some things differently."""

# No -a, -k (assignments reach programs), -s (reads commands), -O (changes the grammar), -H.
_LETTERS = re.compile(r"[-+](?:([BCcefhilnpruvx])(?!.*\1))+")
_LONG = frozenset(("--login", "--noprofile", "--norc", "--posix"))
# Bash takes them with one dash as well, before any letters.
_WITH_A_DASH = (
    *("debug", "debugger", "dump-po-strings", "dump-strings", "help", "init-file", "login"),
    *("noediting", "noprofile", "norc", "posix", "pretty-print", "protected", "rcfile"),
    *("restricted", "verbose", "version", "wordexp"),
)
_LEAST = 3
"""So many letters make a beginning of a long option; `-rc` is two letters."""
_NAMES = frozenset(
    (
        "errexit",
        "noclobber",
        "noexec",
        "noglob",
        "nounset",
        "pipefail",
        "posix",
        "verbose",
        "xtrace",
    )
)


def inner_command(words: Words) -> tuple[str, bool]:
    """What a shell is told to run, and whether it may know less than bash. Raises Refused."""
    shell, rest = words[0], list(words[1:])
    has_command = False
    while rest and rest[0].value[:1] in ("-", "+"):
        option = rest.pop(0)
        if not option.fixed:
            raise refuse(option.raw, f"could be any option of {shell.raw}")
        if option.value in ("-", "--"):
            break
        if option.value in ("-o", "+o"):
            _skip_name(option.value, rest)
        elif option.value not in _LONG and not _is_cluster(option.value):
            raise refuse(
                f"{shell.raw} {option.raw}", "is not an option that is known to be harmless"
            )
        has_command |= option.value[:1] == "-" and "c" in option.value and option.value not in _LONG
    if not has_command or not rest:
        raise refuse(" ".join(word.raw for word in words), "runs a script or what it is fed")
    if not rest[0].fixed:
        raise Refused(f"What `{shell.raw}` is to run is not known: `{rest[0].raw}`")
    return rest[0].value, shell.value in _POSIX


def _is_cluster(option: str) -> bool:
    """Whether it is harmless letters, each once, and nothing else to any shell."""
    name = option[1:]
    if len(name) >= _LEAST and any(long.startswith(name) for long in _WITH_A_DASH):
        return False
    return _LETTERS.fullmatch(option) is not None


def _skip_name(option: str, rest: list[Word]) -> None:
    """The name behind `-o`; one that is switched off may be any."""
    if not rest or not rest[0].fixed or (option == "-o" and rest[0].value not in _NAMES):
        part = f"{option} {rest[0].raw}" if rest else option
        raise refuse(part, "is not an option that is known to be harmless")
    del rest[0]
