"""`edit`: replace exact text that occurs once, and leave every other byte alone."""

import errno
from collections.abc import Callable

from pinfold.paths.errors import from_errno
from pinfold.paths.opened import CheckedPath
from pinfold.text.boundaries import first_unsure
from pinfold.text.codec import Decoded, Splice, codec_name, new_file, printable
from pinfold.text.edit import ENOUGH, MANY, Span, find, find_all, splices_for
from pinfold.text.lines import number_of
from pinfold.tools.base import (
    DRY_RUN,
    ENCODING,
    EXPECTED_SHA256,
    PATH,
    UNREADABLE,
    Outcome,
    ToolType,
    Workplace,
    require_sha256,
    require_storable,
)
from pinfold.tools.change import Old, finish, naming, read_old, require_fresh
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import Annotations, EditArguments, EditDetails, Replacement

_EMPTY = "is empty, which only creates a file"


def replacements_of(arguments: EditArguments) -> list[Replacement]:
    """The replacements to make. Raises ToolError where members do not go together."""
    single = (arguments.old_string, arguments.new_string, arguments.replace_all)
    if arguments.edits is not None:
        if any(value is not None for value in single):
            raise _invalid("edits", "give either edits or old_string and new_string, not both.")
        if not arguments.edits:
            raise _invalid("edits", "must hold at least one replacement.")
        return arguments.edits
    for name in ("old_string", "new_string"):
        if getattr(arguments, name) is None:
            raise _invalid(name, "is missing. Give old_string and new_string, or edits.")
    return [Replacement(arguments.old_string, arguments.new_string, arguments.replace_all)]  # type: ignore[arg-type]


def _invalid(member: str, problem: str) -> ToolError:
    return ToolError("invalid-arguments", f"{member}: {problem}", path=member)


_Numbered = tuple[int | None, Replacement]


def _numbered(arguments: EditArguments) -> list[_Numbered]:
    """The replacements, each with its index where it is one of `edits`."""
    found = replacements_of(arguments)
    return [(None if arguments.edits is None else at, each) for at, each in enumerate(found)]


def _member(index: int | None, name: str) -> str:
    return name if index is None else f"edits[{index}].{name}"


def _indexed(error: ToolError, index: int | None) -> ToolError:
    more = {} if index is None else {"index": index}
    return ToolError(error.kind, error.message, **error.data, **more)


def _check(arguments: EditArguments) -> None:
    replacements = _numbered(arguments)
    for index, each in replacements:
        try:
            _check_one(index, each, single=len(replacements) == 1)
        except ToolError as error:
            raise _indexed(error, index) from None
    require_sha256(arguments.expected_sha256)
    if arguments.encoding is not None:
        codec_name(arguments.encoding)


def _check_one(index: int | None, replacement: Replacement, *, single: bool) -> None:
    at = _member(index, "")
    require_storable(f"{at}old_string", replacement.old_string)
    require_storable(f"{at}new_string", replacement.new_string)
    if replacement.old_string == "" and not single:
        raise _invalid(f"{at}old_string", f"{_EMPTY}. Say what to replace.")
    if replacement.old_string == replacement.new_string:
        message = f"{at}old_string and {at}new_string are equal: nothing would change. "
        message += "Say what is to be different."
        raise ToolError("no-change", message)


def _run(arguments: EditArguments, path: CheckedPath, place: Workplace) -> Outcome:
    replacements = _numbered(arguments)
    old = read_old(path, place, arguments.encoding, arguments.expected_sha256)
    if replacements[0][1].old_string == "":
        new, count = _created(old, replacements[0], path), 1
    else:
        new, count = _edited(old, replacements, path, place)
    if count != len(replacements):  # what matched once was checked against the fresh bytes
        require_fresh(path, old)
    details, content = finish(path, place, old, new, dry_run=bool(arguments.dry_run), whole=False)
    return Outcome(content, EditDetails(**details, replacements=count), before=old.sha256)


def _created(old: Old, numbered: _Numbered, path: CheckedPath) -> Decoded:
    index, replacement = numbered
    try:
        if old.decoded is not None:
            then = "Say what to replace, or use write_file."
            problem = f"{_EMPTY}, and {path.opened.literal} exists. {then}"
            raise _invalid(_member(index, "old_string"), problem)
        with naming(_member(index, "new_string"), replacement.new_string, path):
            return new_file(replacement.new_string, old.encoding)
    except ToolError as error:
        raise _indexed(error, index) from None


def _edited(
    old: Old, replacements: list[_Numbered], path: CheckedPath, place: Workplace
) -> tuple[Decoded, int]:
    if old.decoded is None:
        raise from_errno(errno.ENOENT, path.opened.literal)
    decoded, total = old.decoded, 0
    for index, each in replacements:
        place.require_wanted()
        try:
            splices = splices_of(decoded, each, place.may_show)
            with naming(_member(index, "new_string"), each.new_string, path):
                decoded = decoded.spliced(splices)
        except ToolError as error:
            raise _located(error, index, old.decoded) from None
        total += len(splices)
    return decoded, total


def splices_of(
    decoded: Decoded, replacement: Replacement, may_show: Callable[[], bool] = lambda: True
) -> list[Splice]:
    """What one replacement changes, in order.

    Raises ToolError `no-match` or `ambiguous-match`, with a hint where `may_show`, which is asked
    only then, or `undecodable` where it might tear a character of another encoding.
    """
    spans = _matches(decoded.text, replacement, may_show)
    splices = splices_for(decoded.text, spans, replacement.new_string)
    if decoded.unknown:
        _require_whole(decoded, [*spans, *((each.start, each.end) for each in splices)])
    return splices


def _require_whole(decoded: Decoded, places: list[Span]) -> None:
    """What is matched, and what is changed of it, is whole characters in whatever encoding the
    file is. An earlier edit of the same call put ASCII between whole ones: they still are."""
    at = first_unsure(decoded.text, places)
    if at is None:
        return
    line = number_of(decoded.text, at)
    message = (
        f"The file has bytes that are no valid {decoded.encoding}, and in line {line + 1} (offset "
        f"{line}) old_string matches right beside a byte that is not ASCII: in other encodings "
        "both may be one character, which would be torn. Name the encoding to edit it there."
    )
    raise ToolError("undecodable", message, line=line)


def _matches(text: str, replacement: Replacement, may_show: Callable[[], bool]) -> list[Span]:
    wanted = replacement.old_string
    spans = find_all(text, wanted) if replacement.replace_all else find(text, wanted)
    if not spans and not may_show():
        message = f"old_string is not in the file. What is there instead is not told, {UNREADABLE}."
        raise ToolError("no-match", f"{message} Ask the user for the exact text.")
    if not spans:
        from pinfold.text.hints import no_match_hint  # not for a first read

        hint, where = no_match_hint(text, wanted)
        hint = hint or " Read the file again, and copy old_string from it exactly."
        raise ToolError("no-match", f"old_string is not in the file.{hint}", **where)
    if len(spans) > 1 and not replacement.replace_all:
        from pinfold.text.hints import ambiguous_hint

        shown = may_show()
        lines = [number_of(text, start) for start, _ in spans[:20]] if shown else []
        hint = ambiguous_hint(lines, len(spans), len(spans) >= ENOUGH)
        if not shown:
            hint += f" In which lines is not told, {UNREADABLE}."
        message = f"old_string must match once. {hint} Give more of the text around it."
        raise ToolError("ambiguous-match", message, lines=lines, matches=len(spans))
    if len(spans) > MANY:
        message = f"old_string occurs more than {MANY} times. Write the file whole instead."
        raise ToolError("too-large", message, limit=MANY)
    return spans


def _located(error: ToolError, index: int | None, decoded: Decoded) -> ToolError:
    kind = error.kind
    message = printable(error.message)
    if kind == "no-match" and decoded.undecodable:
        kind = "undecodable"
        message = f"The file has bytes that are no valid {decoded.encoding}, and {message}"
    if index is not None and "path" not in error.data:  # else it names its member
        message = f"edits[{index}]: {message} Nothing was changed."
    return _indexed(ToolError(kind, message, **error.data), index)


_REPLACEMENT = {
    "old_string": {
        "type": "string",
        "description": (
            "Exact text to replace, white space included; must occur once. Empty: create the file."
        ),
    },
    "new_string": {"type": "string", "description": "Text to put in its place."},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence instead of one."},
}

EDIT = ToolType(
    name="edit",
    description=(
        "Replace exact text in a file: once with old_string and new_string, or several times with "
        "edits, which are applied in order, all or none."
    ),
    properties={
        "file_path": PATH,
        **_REPLACEMENT,
        "edits": {
            "type": "array",
            "description": "Several replacements, instead of old_string and new_string.",
            "items": {
                "type": "object",
                "properties": _REPLACEMENT,
                "required": ["old_string", "new_string"],
                "additionalProperties": False,
            },
        },
        "encoding": ENCODING,
        "expected_sha256": EXPECTED_SHA256,
        "dry_run": DRY_RUN,
    },
    required=("file_path",),
    arguments=EditArguments,
    action="change",
    annotations=Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False),
    run=_run,
    check=_check,
)
