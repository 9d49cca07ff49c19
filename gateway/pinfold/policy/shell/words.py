"""One word of a command as bash reads it: quotes, escapes and the expansions that run nothing.

This lexer is closed: whatever it does not know is refused, so that what it does hand out means the
same to bash, to a POSIX shell and to tree-sitter's grammar, which is asked as well (`tree.py`), and
nothing worse to zsh.
"""

import re
import unicodedata

import msgspec


class Refused(Exception):
    """The command is not proven read-only; the text names the offending part."""


def refuse(part: str, why: str) -> Refused:
    """`part` as a person can find it again, and what speaks against it."""
    part = part if len(part) <= _LONGEST_PART else f"{part[:_LONGEST_PART]}…"
    return Refused(f"`{part}` {why}")


_LONGEST_PART = 80
BLANKS = " \t"
_ENDS = frozenset(" \t\n;&|<>()")


class Word(msgspec.Struct, frozen=True):
    """`raw`: as it stands there. `value`: without its quotes, expansions as written.

    `expands`: a variable or arithmetic is in it. `splits`: one that may become several words.
    `globs`, `braces`: names or words that are made of it. `tilde`: it begins with an unquoted `~`.
    `returned`: a carriage return followed, which bash takes for a part of the word. `otherwise`:
    zsh, as many set it up, makes other words of it. `closes`: it ends with a `}` that ends a group
    for zsh, also behind a command's words.
    """

    raw: str
    value: str
    expands: bool = False
    splits: bool = False
    globs: bool = False
    braces: bool = False
    tilde: bool = False
    returned: bool = False
    otherwise: bool = False
    closes: bool = False

    @property
    def settled(self) -> bool:
        """Whether `value` is exactly what the command will get of bash (but for a `~`)."""
        return not (self.expands or self.globs or self.braces)

    @property
    def fixed(self) -> bool:
        """The same, and of zsh too."""
        return self.settled and not self.otherwise

    @property
    def bare(self) -> bool:
        """Whether it is written without any quoting."""
        return self.fixed and self.raw == self.value


_NUMBERS = r"[0-9 \t+*/%-]*"
_PARAMETER = r"\$\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])"
_HEAD = re.compile(_PARAMETER + r"(?:\[(?:[0-9]+|[@*])\])?")
# No `${!x}` (it evaluates subscripts), no `${x=y}` (it assigns), no `${x@P}` (it runs commands).
# Nor `${x:}`, whose brace dash takes for something else.
_ENDING = re.compile(rf"(?::(?!\}})[ \t]?{_NUMBERS}(?::{_NUMBERS})?|\^\^?|,,?|@[QEULuAaKk])?\}}")
_OPERATOR = re.compile(r":?[-+?]|##?|%%?|/[/#%]?")
_HARMLESS = r"[\w./,:=@%+?*!^~#\[\] \t-]"
_OPERAND = re.compile(rf"{_HARMLESS}+|\\[\w./,:=@%+?*^~#\[\] -]|'{_HARMLESS}*'")
_MOST_NESTED = 8
# What a shell that knows less than bash takes for one word though a blank is in it.
_POSIX = re.compile(rf"\$\(\(|{_PARAMETER}(?::?[-+?]|##?|%%?|\}})")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[#?$!-]\})")
_ARITHMETIC = re.compile(rf"\$(?:\(\({_NUMBERS}\)\)|\[{_NUMBERS}\])")
NUMERALS = ("$?", "$#", "$$")
# Behind a variable without braces zsh reads a subscript or a modifier, both of which may compute,
# and so assign, PATH for one; `$#` it takes for the length of what follows.
_GOES_ON = re.compile(r"\[|:[A-Za-z&\\]|\\\n|[^\x00-\x7f]")
_LENGTH = re.compile(r"\$#[\w*@?$!#{-]|\$[0-9][0-9]")
_FLAGGED = "~^=+"
"""Signs that tell zsh how to expand what follows: by `$~x` a text is a pattern, with code in it."""
_ANSI = re.compile(r"\$'((?:[^'\\\r]|\\[nt\\'\"])*)'")
_ANSI_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\'": "'", '\\"': '"'}


def expansion(text: str, at: int, depth: int = 0) -> int:
    """The end of the expansion that begins with the `$` at `at`; `at` + 1 for a mere dollar.

    Raises Refused for one that runs something, assigns, or computes with anything but digits.
    """
    for form in (_ARITHMETIC, _VARIABLE):
        if found := form.match(text, at):
            if form is _VARIABLE:
                _require_ended(text, at, found.end())
            return found.end()
    if head := _HEAD.match(text, at):
        return _rest_of_braced(text, at, head.end(), depth)
    following = text[at + 1 : at + 2]
    if text.startswith("\\\n", at + 1):
        raise refuse("$\\", "goes on in the next line")
    if following and following in "({[`'\"":
        raise _no_expansion(text, at)
    if following and (following in _FLAGGED or not following.isascii()):
        raise refuse(text[at : at + 2], "is an expansion to zsh")
    return at + 1


def _require_ended(text: str, at: int, end: int) -> None:
    """Raises Refused where zsh takes what follows a variable for a part of the expansion."""
    goes_on = text[end - 1] != "}" and _GOES_ON.match(text, end)
    if goes_on or _LENGTH.match(text, at):
        raise refuse(text[at : end + 1], "goes on for zsh; put it in braces")


def _rest_of_braced(text: str, start: int, at: int, depth: int) -> int:
    """The end of `${x…}`; `at` is behind the parameter.

    Between operator and brace only what leaves no doubt where it ends, whether its quotes mean
    something to a shell or not: no brace and nothing that runs, and quotes in pairs.
    """
    if ending := _ENDING.match(text, at):
        return ending.end()
    operator = _OPERATOR.match(text, at)
    if operator is None or depth >= _MOST_NESTED:
        raise _no_expansion(text, start)
    at, quoted = operator.end(), False
    while quoted or text[at : at + 1] != "}":
        if text[at : at + 1] == '"':
            at, quoted = at + 1, not quoted
            continue
        piece = _OPERAND.match(text, at)
        end = piece.end() if piece else _nested(text, at, depth)
        if end <= at + 1 and piece is None:
            raise _no_expansion(text, start)
        at = end
    return at + 1


def _nested(text: str, at: int, depth: int) -> int:
    """The end of an expansion inside of another; `at` where none begins."""
    return expansion(text, at, depth + 1) if text[at : at + 1] == "$" else at


def _no_expansion(text: str, at: int) -> Refused:
    part = re.split(r"[\n;]", text[at : at + 2 * _LONGEST_PART], maxsplit=1)[0]
    return refuse(part, _DOLLARS.get(text[at + 1 : at + 2], "is not an expansion known here"))


_DOLLARS = {
    "(": "runs a command, or computes with more than digits",
    "[": "computes with more than digits",
    "{": "is an expansion that may run, assign or evaluate something",
}


# To zsh with EXTENDED_GLOB, signs of a pattern; with BRACE_CCL, `{ab}` is two words.
_OTHERWISE = re.compile(r"[#^]|(?<=.)~|\{[^}]+\}", re.DOTALL)


def _closes(unquoted: str) -> bool:
    """Whether the last `}` is the word's end and closes nothing in it."""
    depth = 0
    for char in unquoted:
        depth = max(depth, 0) + (char == "{") - (char == "}")
    return depth < 0 and unquoted.endswith("}")


def _has_brace_list(unquoted: str) -> bool:
    """Whether a `{`, a `,` or `..`, and a `}` follow each other, whatever is between them."""
    opened, closed = unquoted.find("{"), unquoted.rfind("}")
    between = unquoted[opened:closed] if 0 <= opened < closed else ""
    return "," in between or ".." in between


def require_visible(char: str) -> None:
    """Outside of quotes: nothing that another reader could take for a blank. Raises Refused."""
    if not char.isascii() and unicodedata.category(char)[0] in "ZC":
        raise refuse(f"U+{ord(char):04X}", "is no character for an unquoted word")
    if ord(char) < 32 or ord(char) == 127:
        raise refuse(f"U+{ord(char):04X}", "is a control character")


class WordReader:
    """Reads the word that begins at `at`. `posix`: a shell without bash's `$'…'` will read it."""

    def __init__(self, text: str, at: int, *, posix: bool = False) -> None:
        self._text = text
        self._start = at
        self._posix = posix
        self.at = at
        self._value: list[str] = []
        self._raw: list[str] = []
        self._unquoted: list[str] = []  # what braces and globs are looked for in
        self._expands = self._splits = self._doubled = False

    def read(self) -> Word:
        """The word; `self.at` is behind it. Raises Refused."""
        while self.at < len(self._text) and self._text[self.at] not in _ENDS:
            char = self._text[self.at]
            if char == "\r" and self._text[self.at + 1 : self.at + 2] == "\n":
                break
            _PIECES.get(char, WordReader._character)(self)
        unquoted = "".join(self._unquoted)
        return Word(
            "".join(self._raw),
            "".join(self._value),
            expands=self._expands,
            splits=self._splits,
            globs=any(char in unquoted for char in "*?["),
            braces=_has_brace_list(unquoted),
            tilde=unquoted.startswith("~"),
            returned=self._text[self.at : self.at + 1] == "\r",
            otherwise=self._doubled or _OTHERWISE.search(unquoted) is not None,
            closes=_closes(unquoted),
        )

    def _take(self, end: int, value: str, unquoted: str = "x") -> None:
        """Go on to `end`. `unquoted` stands for what was read where globs are looked for."""
        self._raw.append(self._text[self.at : end])
        self._value.append(value)
        self._unquoted.append(unquoted)
        self.at = end

    def _character(self) -> None:
        char = self._text[self.at]
        require_visible(char)
        self._take(self.at + 1, char, char)

    def _backtick(self) -> None:
        raise refuse(self._text[self.at :].split("\n")[0], "runs a command")

    def _escape(self) -> None:
        char = self._text[self.at + 1 : self.at + 2]
        if char == "\n":  # joined, as if it were not there
            self.at += 2
            return
        if not char:
            raise refuse("\\", "at the end escapes nothing")
        require_visible(char)
        self._take(self.at + 2, char)

    def _single(self) -> None:
        end = self._text.find("'", self.at + 1)
        if end < 0:
            raise refuse(self._text[self.at :], "is a quotation without an end")
        value = self._text[self.at + 1 : end]
        if "\r" in value:
            raise refuse("\\r", "in quotes is read in several ways")
        self._doubled |= self._text.startswith("'", end + 1)  # to RC_QUOTES, one quote in a text
        self._take(end + 1, value)

    def _double(self) -> None:
        value: list[str] = []
        at = self.at + 1
        while (char := self._text[at : at + 1]) != '"':
            if char in ("", "\r", "`"):
                why = {"": "is a quotation without an end", "`": "runs a command"}
                raise refuse(self._text[self.at :], why.get(char, "has a carriage return"))
            end = self._in_double(char, at)
            value.append(self._quoted(at, end))
            at = end
        self._take(at + 1, "".join(value))

    def _in_double(self, char: str, at: int) -> int:
        """The end of one piece between double quotes."""
        if char == "\\":
            return at + 2
        if char != "$" or self._text[at + 1 : at + 2] in ("'", '"'):
            return at + 1
        end = expansion(self._text, at)
        if end > at + 1:
            self._expands = True
            piece = self._text[at:end]
            self._splits |= any(part in piece for part in ("$@", "{@", "[@]", '"'))
        return end

    def _quoted(self, at: int, end: int) -> str:
        piece = self._text[at:end]
        if piece == "\\\n":
            return ""
        return piece[1:] if piece[0] == "\\" and piece[1:] in ("$", "`", '"', "\\") else piece

    def _dollar(self) -> None:
        if not self._posix and (ansi := _ANSI.match(self._text, self.at)):
            value = re.sub(r"\\.", lambda escape: _ANSI_ESCAPES[escape.group()], ansi.group(1))
            self._take(ansi.end(), value)
            return
        end = expansion(self._text, self.at)
        piece = self._text[self.at : end]
        if self._posix and re.search(r"[ \t]", piece) and not _POSIX.match(piece):
            raise refuse(piece, "would be several words to a plain sh")
        if len(piece) > 1:
            self._expands = True
            self._splits |= piece not in NUMERALS and not _ARITHMETIC.match(piece)
        self._take(end, piece)


_PIECES = {
    "'": WordReader._single,
    '"': WordReader._double,
    "\\": WordReader._escape,
    "$": WordReader._dollar,
    "`": WordReader._backtick,
}
