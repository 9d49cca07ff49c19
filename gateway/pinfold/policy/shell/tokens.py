"""A command as a row of tokens: simple commands, and the operators between them.

Here-documents and redirections are judged here and taken out: a redirection is fine or not whatever
it belongs to. What is left is written out again plainly, as `Tokens.text`, for the grammar.
"""

import re

import msgspec

from pinfold.policy.shell.words import BLANKS, Refused, Word, WordReader, expansion, refuse

LONGEST = 32_768
_BEHIND_A_WORD = "would define a function, or is a pattern of many, neither of which is read here"
_MOST_COMMANDS = 200
_DEEPEST = 30

_OPERATOR = re.compile(r"&>>|<<<|<<-|;;&|&>|>>|>&|>\||<>|<<|<&|&&|\|\||\|&|;;|;&|[<>|&;()\n]")
_REDIRECTIONS = frozenset(("&>>", "<<<", "<<-", "&>", ">>", ">&", ">|", "<>", "<<", "<&", "<", ">"))
_SEPARATORS = frozenset((";", "&", "\n"))
_JOINTS = frozenset(("&&", "||", "|", "|&"))
_DESCRIPTOR = re.compile("[0-9]")
"""No more than one digit: to zsh and some plain shells `12<f` is the word `12` and a `<f`."""
# To zsh a pattern, so that what follows is no redirection of the same command.
_NUMBERS = re.compile("<[0-9]*-[0-9]*>")
_CLOSES = "ends a group for zsh"
# Only directly before a line feed; not escaped, and not a word of its own behind others.
_RETURN = re.compile(r"\r(?!\n)|\\\r|[ \t]\r|\\\n\r")
# Bash opens connections by such names in a redirection, once they are expanded.
_NETWORK = re.compile(r"/dev/+(?:tcp|udp)(?:/|$)")
_ENDS_IN_NETWORK = re.compile(r"(?:^|/)(?:tcp|udp)(?:/|$)")
_TILDE = re.compile(r"~(?:[a-z_][a-z0-9_-]*)?(?:/|$)")
_BY_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})[^$]*")
_OF_THE_SHELL = re.compile(
    r"_|BASH.*|COMP_.*|READLINE_.*|COPROC.*|(?:OLD)?PWD|DIRSTACK|FUNCNAME|MAPFILE|REPLY|OPTARG"
)
"""Variables that bash sets by itself, some to a text of the command's choice."""

_KEYWORDS = {
    **dict.fromkeys(("for", "while", "until", "select"), "begins a loop, which is not read here"),
    **dict.fromkeys(("if", "case", "[["), "begins a condition, which is not read here"),
    **dict.fromkeys(("then", "elif", "else", "fi", "esac", "in"), "is a part of a condition"),
    **dict.fromkeys(("do", "done"), "is a part of a loop"),
    "function": "defines a function, which is not read here",
    "coproc": "runs a command in the background with pipes to it",
    "time": "is not one",
}
"""What bash and its grammar take for more than a name where a command begins."""


class Run(msgspec.Struct, frozen=True):
    """One simple command: its words, and the bytes where it stands in `Tokens.text`. `posix`: it
    is for a shell that may know less than bash."""

    words: tuple[Word, ...]
    start: int
    end: int
    posix: bool = False


class Tokens(msgspec.Struct, frozen=True):
    """`operators`: how many there are, so that the grammar can be held to them."""

    text: str
    runs: tuple[Run, ...]
    operators: tuple[str, ...]


def tokenize(command: str, *, posix: bool = False) -> Tokens:
    """Raises Refused. `posix`: for a shell that may know less than bash."""
    if len(command) > LONGEST:
        raise Refused(f"A command of more than {LONGEST} characters is not read")
    if "\0" in command:
        raise refuse("\\0", "ends the command for some readers")
    if _RETURN.search(command):
        raise refuse("\\r", "is read in several ways where it stands")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise Refused("A lone surrogate is no character") from None
    return _Tokenizer(command, posix).run()


class _Tokenizer:
    def __init__(self, text: str, posix: bool) -> None:
        self._text = text
        self._posix = posix
        self._at = 0
        self._out: list[str] = []
        self._length = 0
        self._runs: list[Run] = []
        self._operators: list[str] = []
        self._words: list[Word] = []
        self._start = 0
        self._closed = False  # behind a `)` or `}`, where only a redirection or operator may stand
        self._open: list[str] = []
        self._documents: list[tuple[str, bool, bool]] = []
        self._assigns = False
        self._redirected = False  # since the last command's end

    def run(self) -> Tokens:
        """All of it."""
        while self._at < len(self._text):
            if not self._skip_blank():
                self._token()
        self._end_run()
        if self._documents:
            raise refuse(f"<<{self._documents[0][0]}", "is a here-document without an end")
        if self._open or (self._operators and self._operators[-1] in _JOINTS and not self._ended):
            raise refuse((self._open or self._operators)[-1], "has no end")
        return Tokens("".join(self._out), tuple(self._runs), tuple(self._operators))

    @property
    def _ended(self) -> bool:
        return bool(self._out) and self._out[-1].strip() not in _JOINTS

    def _skip_blank(self) -> bool:
        following = self._text[self._at : self._at + 2]
        if following[:1] in BLANKS or following == "\r\n":
            self._at += 1
        elif following == "\\\n":
            self._at += 2
        else:
            return False
        return True

    def _token(self) -> None:
        if self._text[self._at] == "#":
            raise refuse(self._text[self._at :].split("\n")[0], "is a comment")
        if found := _OPERATOR.match(self._text, self._at):
            if found.group() in _REDIRECTIONS:
                self._redirection("", found.group())
            else:
                self._operator(found.group())
            return
        word = self._word()
        following = _OPERATOR.match(self._text, self._at)
        if following is not None and following.group() in _REDIRECTIONS:
            if _DESCRIPTOR.fullmatch(word.raw) and following.group()[0] != "&":
                self._redirection(word.raw, following.group())
                return
            if word.raw.startswith("{") or word.raw.isdecimal():
                raise refuse(word.raw + following.group(), "is no descriptor that is known here")
        self._add_word(word)

    def _word(self) -> Word:
        reader = WordReader(self._text, self._at, posix=self._posix)
        word = reader.read()
        if not word.raw and reader.at < len(self._text):
            part = self._text[reader.at : reader.at + 20]
            raise refuse(part, "is no word")
        self._at = reader.at
        return word

    # What becomes of the tokens

    def _emit(self, text: str) -> int:
        """Write a token out; the byte where it begins."""
        start = self._length
        self._out.append(text)
        self._length += len(text.encode())
        return start

    def _add_word(self, word: Word) -> None:
        if not self._words and word.raw in ("{", "}", "!"):
            self._group(word.raw)
            return
        if self._closed:
            raise refuse(word.raw, "stands behind a group")
        if word.closes:
            raise refuse(word.raw, _CLOSES)
        if not self._words and word.raw in _KEYWORDS:
            raise refuse(word.raw, _KEYWORDS[word.raw])
        if self._documents and "\n" in word.raw:
            raise refuse(word.raw, "is a line's end before a here-document")
        if self._words:
            self._emit(" ")
        start = self._emit(word.raw)
        if not self._words:
            self._start = start
            if len(self._runs) >= _MOST_COMMANDS:
                raise Refused(f"More than {_MOST_COMMANDS} commands are not read")
        self._assigns = self._assigns or assignment(word, posix=False) is not None
        self._words.append(word)

    def _end_run(self) -> None:
        if self._redirected and not (self._words or self._closed):
            raise Refused("A redirection without a command would run a program for zsh")
        self._redirected = False
        if self._words:
            self._runs.append(Run(tuple(self._words), self._start, self._length, self._posix))
            self._words = []

    def _group(self, mark: str) -> None:
        if self._redirected and mark != "}":
            raise refuse(mark, "stands behind a redirection")
        if self._closed and mark != "}":
            raise refuse(mark, "stands behind a group")
        if mark == "}":
            self._close("{", mark)
        elif mark == "{":
            self._begin(mark)
        self._operators.append(mark)
        self._emit(f"{mark} ")

    def _begin(self, mark: str) -> None:
        if self._words:
            last = self._words[-1].raw
            raise refuse(last + mark, "begins an array" if last[-1:] == "=" else _BEHIND_A_WORD)
        if self._closed:
            raise refuse(mark, "stands behind a group")
        self._open.append(mark)
        if len(self._open) > _DEEPEST:
            raise Refused(f"Groups more than {_DEEPEST} deep are not read")

    def _close(self, opened: str, mark: str) -> None:
        if not self._open or self._open.pop() != opened:
            raise refuse(mark, "closes no group")
        self._closed = True

    def _operator(self, operator: str) -> None:
        self._at += len(operator)
        had_words = bool(self._words) or self._closed
        if operator == "(":
            self._begin(operator)
            if self._text[self._at : self._at + 1] == "(":
                raise refuse("((", "begins arithmetic")
        self._end_run()
        if operator == ")":
            self._close("(", operator)
        elif operator == "\n":
            self._read_documents()
            self._newline(had_words)
            return
        else:
            if operator not in _SEPARATORS | _JOINTS | {"("} or not (had_words or operator == "("):
                raise refuse(operator, "stands where no command ends")
            self._closed = False
        self._operators.append(operator)
        self._emit(f" {operator} ")

    def _newline(self, had_words: bool) -> None:
        """It ends a command; where none is to be ended it means nothing."""
        self._closed = False
        if had_words:
            self._operators.append("\n")
            self._emit("\n")

    # Redirections

    def _redirection(self, descriptor: str, operator: str) -> None:
        if numbers := _NUMBERS.match(self._text, self._at):
            raise refuse(numbers.group(), "is a pattern of numbers for zsh")
        self._redirected = True
        self._at += len(operator)
        if operator in "<>" and self._text.startswith("(", self._at):
            part = self._text[self._at - 1 :].partition("\n")[0]
            raise refuse(part, "is a process substitution, which runs a command")
        while self._at < len(self._text) and self._text[self._at] in BLANKS:
            self._at += 1
        if operator in ("<<", "<<-"):
            self._document(operator == "<<-")
            return
        word = self._word() if self._at < len(self._text) else Word("", "")
        whole = f"{descriptor}{operator}{word.raw}"
        if not word.raw:
            raise refuse(whole, "is a redirection to nowhere")
        if word.closes:
            raise refuse(whole, _CLOSES)
        if not self._reads(descriptor, operator, word):
            why = "might connect to a network" if operator == "<" else "may write"
            raise refuse(whole, f"is a redirection that {why}")

    def _reads(self, descriptor: str, operator: str, word: Word) -> bool:
        if word.returned:  # bash would take it for a part of the name
            return False
        if operator == "<<<":
            return True
        if operator == ">&":
            known = word.value == "-" or _DESCRIPTOR.fullmatch(word.value)
            return word.bare and bool(known)
        if operator == ">":
            return descriptor == "2" and word.fixed and word.value == "/dev/null"
        return operator == "<" and self._is_file(word)

    def _is_file(self, word: Word) -> bool:
        """Whether it cannot become the name of a connection. A variable of the environment is
        trusted not to hold one, one that this command could have set is not; any may be empty."""
        if word.globs or word.braces or _NETWORK.match(word.value):
            return False
        if not (word.expands or word.tilde):
            return True
        if _ENDS_IN_NETWORK.search(word.value):
            return False
        if not word.expands:
            return _TILDE.match(word.value) is not None
        found = _BY_VARIABLE.fullmatch(word.value)
        return (
            found is not None
            and not (self._assigns or word.tilde)
            and not _OF_THE_SHELL.fullmatch(found[1] or found[2])
        )

    def _document(self, tabs: bool) -> None:
        raw_start = self._at
        word = self._word() if self._at < len(self._text) else Word("", "")
        if not word.raw or word.expands or word.closes or "\n" in word.raw or "\r" in self._text:
            raise refuse(
                f"<<{self._text[raw_start : self._at]}", "is a here-document that is not read"
            )
        quoted = any(mark in word.raw for mark in "'\"\\")
        self._documents.append((word.value, quoted, tabs))

    def _read_documents(self) -> None:
        documents, self._documents = self._documents, []
        for delimiter, quoted, tabs in documents:
            self._read_document(delimiter, quoted, tabs)

    def _read_document(self, delimiter: str, quoted: bool, tabs: bool) -> None:
        start = self._at
        while self._at < len(self._text):
            begin, newline = self._at, self._text.find("\n", self._at)
            end = len(self._text) if newline < 0 else newline
            self._at = min(end + 1, len(self._text))
            line = self._text[begin:end]
            if (line.lstrip("\t") if tabs else line) == delimiter:
                if not quoted:
                    require_inert(self._text[start:begin])
                return
        raise refuse(f"<<{delimiter}", "is a here-document without an end")


def require_inert(body: str) -> None:
    """A here-document whose body is expanded. Raises Refused if that may run anything, or if a line
    goes on in the next one (it could make a line that ends the document)."""
    at = 0
    while at < len(body):
        char = body[at]
        if char == "`" or body.startswith("\\\n", at):
            raise refuse(body[at:].partition("\n")[0] or "\\", "in a here-document is not read")
        if char == "\\":
            at += 2
        elif char == "$":
            at = at + 1 if body[at + 1 : at + 2] in ("'", '"') else expansion(body, at)
        else:
            at += 1


_ASSIGNMENT = {
    False: re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?\+?="),
    True: re.compile(r"([A-Za-z_][A-Za-z0-9_]*)()="),
}
"""By whether the shell is a plain one: to that, `a+=b` and `a[0]=b` are names of programs."""


def assignment(word: Word, *, posix: bool) -> re.Match[str] | None:
    """The variable and the subscript that it would set where a command begins."""
    return _ASSIGNMENT[posix].match(word.raw)
