"""The small languages of awk and sed, as far as a script in them is proven to write nothing."""

import re

from pinfold.policy.shell.options import Syntax, Words, readings
from pinfold.policy.shell.words import Refused, refuse

# awk

_INPUT = "/inet"
_AWK = Syntax(valued="Fv")


def check_awk(name: str, words: Words) -> None:
    """Options `-F` and `-v` alone, then the program, then files. Raises Refused.

    What lies in ARGV and ARGC, by an assignment too, is opened."""
    for reading in readings(name, words, _AWK):
        _check_awk(name, reading.operands)
    for word in words:
        if found := _AWK_FILES.search(word.value):
            raise refuse(f"{name} {word.raw}", f"has `{found[0]}` in it, so it may open anything")


def _check_awk(name: str, operands: Words) -> None:
    """Some awks connect to what looks like a file."""
    if not operands:
        raise refuse(name, "has no program")
    program, files = operands[0], operands[1:]
    if program.value.startswith("-"):
        raise refuse(f"{name} {program.raw}", "is not a program, or an option behind `--`")
    if reason := _awk_problem(program.value):
        raise refuse(f"{name} {program.raw}", reason)
    for word in files:
        if word.value.startswith(_INPUT):
            raise refuse(f"{name} {word.raw}", "may connect to a network")


_AWK_FILES = re.compile("ARGV|ARGC|SYMTAB")
# Each as it has to be written to have an effect, whether or not it is in a string or a pattern: a
# call has its bracket right behind the name; an `@` calls by a name that a variable holds.
_AWK_REFUSED = re.compile(
    r"(?:system|close|extension)\s*+\(|getline|@\s*+(?:load|include|namespace|[A-Za-z_][\w:]*+\s*+\()|\\\n"
)


def _awk_problem(program: str) -> str | None:
    """What speaks against a program. Read as mere text, since what is a string or a pattern to one
    awk may be code to another: output goes elsewhere by a `>` or `|` behind a print."""
    if found := _AWK_REFUSED.search(program):
        return f"has `{found[0].strip()}` in it"
    if not re.search(r"[/\\#]", program):  # then a quote can only begin or end a string
        program = re.sub(r'"[^"\n]*"', '""', program)
    _, printing, behind = program.partition("print")
    if printing and re.search(r"[>|]", behind.replace("||", "")):
        return "may write what it prints elsewhere"
    return None


# sed

_SED = Syntax(
    bare="nErsuzl",
    valued="el",  # -l has a value for GNU's alone
    long=(
        *("help", "null-data", "posix", "quiet", "regexp-extended", "sandbox", "separate"),
        *("silent", "unbuffered", "version"),
    ),
    long_valued=("expression", "line-length"),
)
_ANSWERS = ("help", "version")


def check_sed(name: str, words: Words) -> None:
    """Raises Refused unless every script is simple. The first operand is one if no option is."""
    for reading in readings(name, words, _SED):
        scripts = reading.values("e", "expression")
        if not scripts:
            # A mere number was the value of an option that this sed lacks, and ends it.
            first = [word.value for word in reading.operands[:1]]
            scripts = [script for script in first if not _NUMBER.fullmatch(script)]
            if not first and not any(option in _ANSWERS for option, _ in reading.options):
                raise refuse(name, "has no script")
        for script in scripts:
            _require_simple(name, script)


_NUMBER = re.compile("[0-9]+")
_BLANKS = r"[ \t]*+"
_TO = rf"{_BLANKS},{_BLANKS}(?:[+~]?[0-9]++|\$)"
_LINES = rf"(?:[0-9]++(?:~[0-9]++)?|\$)(?:{_TO})?+{_BLANKS}(?:!{_BLANKS})?+"
# Where a `/` in brackets ends the pattern for one sed and not for another, it is not read.
_BRACKETS = r"\[\^?+\]?+(?:\[:[a-z]++:\]|\[(?![.:=])|\\[^\]\\\n]|[^\]\[\\\n])*+\]"
_PATTERN = re.compile(rf"(?:[^\[\\\n]|\\[^\n]|{_BRACKETS})*+")
_MATCH = rf"/((?:[^/\\\n]|\\[^\n])*+)/{_BLANKS}"
_COMMAND = re.compile(rf"(?:{_LINES}|{_MATCH}|!{_BLANKS})?+(?:[pdDPnNhHgGxlz=]|[qQ][0-9]*+|(s))")
_BEFORE = re.compile(r"[ \t;\n]*+")
_END = re.compile(rf"{_BLANKS}(?:[;\n]|\Z)")
_FLAGS = re.compile(r"[0-9gIpM]*+")


def _require_simple(name: str, script: str) -> None:
    """Raises Refused unless it is a row of commands that print, delete or substitute lines, each
    for lines by number or for those that match one pattern."""
    at = _skipped(_BEFORE, script, 0)
    while at < len(script):
        command = _COMMAND.match(script, at)
        if command is None:
            raise refuse(f"{name} {script[at:]}", "is not a command that is known to be harmless")
        _require_whole_brackets(command[1] or "")
        at = command.end()
        if command[2]:
            at = _substitution(script, at)
        end = _END.match(script, at)
        if end is None:
            raise refuse(f"{name} {script}", "is not a script that is known to be harmless")
        at = _skipped(_BEFORE, script, end.end())


def _skipped(what: re.Pattern[str], text: str, at: int) -> int:
    found = what.match(text, at)
    return found.end() if found else at


def _substitution(script: str, at: int) -> int:
    """The end of `s/pattern/replacement/flags`; `at` is behind the `s`. Raises Refused."""
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\\\n;" or not delimiter.isascii():
        raise refuse(f"s{delimiter}", "is no substitution that is read here")
    pattern = _part(script, at + 1, delimiter)
    _require_whole_brackets(script[at + 1 : pattern])
    replacement = _part(script, pattern + 1, delimiter)
    return _skipped(_FLAGS, script, replacement + 1)


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
    if not _PATTERN.fullmatch(pattern):
        raise refuse(pattern, "has brackets that seds read differently")
