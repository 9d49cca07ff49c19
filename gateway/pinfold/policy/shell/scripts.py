"""The small languages of awk and sed, as far as a script in them is proven to write nothing."""

import re

from pinfold.policy.shell.options import Words, require_fixed
from pinfold.policy.shell.words import Refused, Word, refuse

# awk

_INPUT = "/inet"


def check_awk(name: str, words: Words) -> None:
    """Options `-F` and `-v` alone, then the program, then files. Raises Refused."""
    require_fixed(name, words)
    rest = list(words)
    while rest and rest[0].value.startswith("-") and rest[0].value != "-":
        option = rest.pop(0)
        if option.value == "--":
            break
        _require_known(name, option)
        if len(option.value) == 2:
            del rest[:1]
    if not rest:
        raise refuse(name, "has no program")
    if rest[0].value.startswith("-"):
        raise refuse(f"{name} {rest[0].raw}", "is not a program, or an option behind `--`")
    if reason := _awk_problem(rest[0].value):
        raise refuse(f"{name} {rest[0].raw}", reason)
    _require_files(name, words, rest[1:])


def _require_known(name: str, option: Word) -> None:
    if option.value[:2] not in ("-F", "-v"):
        raise refuse(f"{name} {option.raw}", "is not an option that is known to be harmless")


def _require_files(name: str, words: Words, operands: list[Word]) -> None:
    """Some awks connect to what looks like a file, and some look for options behind the program.
    What lies in ARGV and ARGC, by an assignment too, is opened."""
    for word in words:
        if found := _AWK_FILES.search(word.value):
            raise refuse(f"{name} {word.raw}", f"has `{found[0]}` in it, so it may open anything")
    for word in operands:
        if word.value.startswith(_INPUT):
            raise refuse(f"{name} {word.raw}", "may connect to a network")
        if word.value.startswith("-") and word.value != "-":
            _require_known(name, word)


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

_SED_FLAGS = frozenset("nErsuz")
_SED_LONG = frozenset(
    (
        *("--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data"),
        *("--posix", "--sandbox", "--help", "--version", "--"),
    )
)
_LINE_LENGTH = re.compile("--line-length=[0-9]+")


def check_sed(name: str, words: Words) -> None:
    """Raises Refused unless every script is simple. GNU sed takes options behind files too; where
    options end at the first file, that file is the script if none came before."""
    require_fixed(name, words)
    scripts: list[str] = []
    operands = 0
    rest = [word.value for word in words]
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and word != "-":
            scripts += _sed_option(name, word, rest)
            continue
        if not scripts and not operands:
            _require_simple(name, word)
        operands += 1
    for script in scripts:
        _require_simple(name, script)
    if (
        not scripts
        and not operands
        and not {"--help", "--version"} & {word.value for word in words}
    ):
        raise refuse(name, "has no script")


def _sed_option(name: str, word: str, rest: list[str]) -> list[str]:
    """The script that an option brings, if any; it may be the next word."""
    if word.startswith("--expression="):
        return [word.partition("=")[2]]
    if word == "--expression":
        return [rest.pop(0)] if rest else []
    if word in _SED_LONG or _LINE_LENGTH.fullmatch(word):
        return []
    if word in ("-l", "--line-length"):
        _skip_number(name, word, rest)
        return []
    return _sed_cluster(name, word, rest)


def _skip_number(name: str, option: str, rest: list[str]) -> None:
    """The value of an option that has none everywhere: a mere number is no script either."""
    if not rest or not (rest[0].isascii() and rest[0].isdecimal()):
        raise refuse(f"{name} {option}", "has no number behind it")
    del rest[0]


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
