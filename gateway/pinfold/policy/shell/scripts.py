"""The small languages of awk and sed, as far as a script in them is proven to write nothing."""

import re

from pinfold.policy.shell.options import Words, require_fixed
from pinfold.policy.shell.words import Refused, refuse

# awk


def check_awk(name: str, words: Words) -> None:
    """Options `-F` and `-v` alone, then the program. Raises Refused."""
    require_fixed(name, words)
    rest = list(words)
    while rest and rest[0].value.startswith("-") and rest[0].value != "-":
        option = rest.pop(0)
        if option.value[:2] not in ("-F", "-v"):
            raise refuse(f"{name} {option.raw}", "is not an option that is known to be harmless")
        if len(option.value) == 2:
            del rest[:1]
    if not rest:
        raise refuse(name, "has no program")
    if reason := _awk_problem(rest[0].value):
        raise refuse(f"{name} {rest[0].raw}", reason)


def _awk_problem(program: str) -> str | None:
    """What speaks against a program. Read as mere text, since what is a string or a pattern to one
    awk may be code to another: output goes elsewhere by a `>` or `|` behind a print."""
    for word in ("system", "getline", "close", "@", "\\\n"):
        if word in program:
            return f"has `{word.strip()}` in it"
    if not re.search(r"[/\\#]", program):  # then a quote can only begin or end a string
        program = re.sub(r'"[^"\n]*"', '""', program)
    _, printing, behind = program.partition("print")
    if printing and re.search(r"[>|]", behind.replace("||", "")):
        return "may write what it prints elsewhere"
    return None


# sed

_SED_FLAGS = frozenset("nErsuz")
_SED_LONG = frozenset(
    (
        *("--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data"),
        *("--posix", "--sandbox", "--help", "--version", "--"),
    )
)


def check_sed(name: str, words: Words) -> None:
    """Raises Refused unless every script is simple. GNU sed takes options behind files too."""
    require_fixed(name, words)
    scripts: list[str] = []
    operands: list[str] = []
    rest = [word.value for word in words]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word not in _SED_LONG:
            scripts += _sed_cluster(name, word, rest)
    for script in scripts or operands[:1]:
        _require_simple(name, script)
    if not scripts and not operands and not set(words_of(words)) & {"--help", "--version"}:
        raise refuse(name, "has no script")


def words_of(words: Words) -> list[str]:
    """Their values."""
    return [word.value for word in words]


def _sed_cluster(name: str, word: str, rest: list[str]) -> list[str]:
    """The script that a cluster of letters brings, if any; it may be the next word."""
    for index, letter in enumerate(word[1:], 2):
        if letter == "e":
            if index < len(word):
                return [word[index:]]
            return [rest.pop(0)] if rest else []
        if letter not in _SED_FLAGS:
            raise refuse(f"{name} {word}", "is not an option that is known to be harmless")
    return []


_ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$)(?:[ \t]*,[ \t]*[+~]?[0-9]+|[ \t]*,[ \t]*\$)?"
_COMMAND = re.compile(
    rf"[ \t;\n]*(?:{_ADDRESS})?[ \t]*!?[ \t]*(?:([pdDPnNhHgGxl=])|[qQ][0-9]*|(s))"
)
_END = re.compile(r"[ \t]*(?:[;\n]|$)")
_FLAGS = re.compile(r"[0-9gIpM]*")


def _require_simple(name: str, script: str) -> None:
    at = 0
    while script[at:].strip(" \t;\n"):
        command = _COMMAND.match(script, at)
        if command is None:
            raise refuse(f"{name} {script[at:]}", "is not a command that is known to be harmless")
        at = command.end()
        if command.group(2):
            at = _substitution(script, at)
        end = _END.match(script, at)
        if end is None:
            raise refuse(f"{name} {script}", "is not a script that is known to be harmless")
        at = end.end()


def _substitution(script: str, at: int) -> int:
    """The end of `s/pattern/replacement/flags`; `at` is behind the `s`. Raises Refused."""
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\\\n;" or not delimiter.isascii():
        raise refuse(f"s{delimiter}", "is no substitution that is read here")
    pattern = _part(script, at + 1, delimiter)
    _require_whole_brackets(script[at + 1 : pattern])
    replacement = _part(script, pattern + 1, delimiter)
    flags = _FLAGS.match(script, replacement + 1)
    assert flags is not None
    return flags.end()


def _part(script: str, at: int, delimiter: str) -> int:
    """Where the delimiter stands that ends this part."""
    while at < len(script) and script[at] != delimiter:
        if script[at] == "\n":
            break
        at += 2 if script[at] == "\\" else 1
    if script[at : at + 1] != delimiter:
        raise Refused("A substitution of sed has no end")
    return at


def _require_whole_brackets(pattern: str) -> None:
    """Some seds take a delimiter in brackets for a part of the pattern, others do not."""
    bare = re.sub(r"\\.", "", pattern, flags=re.DOTALL)
    if bare.count("[") != bare.count("]"):
        raise refuse(pattern, "has brackets that seds read differently")
