"""`read_file` and `read_memory`: show a part of a text file exactly as it is."""

import hashlib

from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import Decoded, decode, first_undecodable, require_supported
from pinfold.text.lines import Selection, Window, line_ending, normalize, select
from pinfold.tools.base import ENCODING, PATH, Outcome, ToolType, Workplace
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import Annotations, ReadDetails, ReadFileArguments

_MOST = 2**53 - 1

_PROPERTIES = {
    "file_path": PATH,
    "offset": {
        "type": "integer",
        "minimum": 0,
        "description": "Line to begin at; the first line is 0.",
    },
    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read."},
    "column": {
        "type": "integer",
        "minimum": 0,
        "description": "Character to begin at in the first line, to go on inside a very long line.",
    },
    "encoding": ENCODING,
}


def _check(arguments: ReadFileArguments) -> None:
    for name, least in (("offset", 0), ("limit", 1), ("column", 0)):
        value = getattr(arguments, name)
        if value is not None and not least <= value <= _MOST:
            message = f"{name}: must be at least {least} and at most {_MOST}"
            raise ToolError("invalid-arguments", message, path=name)
    require_supported(arguments.encoding)


def _run(arguments: ReadFileArguments, path: CheckedPath, place: Workplace) -> Outcome:
    limits = place.limits
    data = place.backend.read(path, limits.max_file_bytes, cached=place.cached)
    decoded = decode(data, arguments.encoding)
    if decoded.undecodable:
        raise _undecodable(decoded)
    window = Window(
        offset=arguments.offset or 0,
        limit=arguments.limit,
        column=arguments.column or 0,
        max_lines=limits.read_lines,
        max_bytes=limits.read_bytes,
    )
    selection = select(normalize(decoded.text), window)
    details = ReadDetails(
        path=path.opened.real or path.opened.literal,
        start_line=selection.start_line,
        end_line=selection.end_line,
        total_lines=selection.total_lines,
        truncated=selection.truncated,
        next_offset=selection.next_offset,
        next_column=selection.next_column,
        encoding=decoded.encoding,
        bom=bool(decoded.mark),
        line_ending=line_ending(decoded.text),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    note = _note(selection, window)
    texts = (selection.text, note) if note else (selection.text,)
    from_start = selection.start_line == 0 and window.column == 0
    return Outcome(texts, details, from_start and selection.next_offset is None)


def _undecodable(decoded: Decoded) -> ToolError:
    line, at = first_undecodable(decoded)
    message = (
        f"It is not valid UTF-8: byte {at}, in line {line + 1}, cannot be decoded. Text around it "
        "can still be edited."
    )
    return ToolError("undecodable", message, line=line, byteOffset=at)


def _note(selection: Selection, window: Window) -> str:
    if selection.truncated:
        column = f", column={selection.next_column}" if selection.next_column else ""
        return (
            f"[Cut here by the read limit; the file has {selection.total_lines} lines. Go on with "
            f"offset={selection.next_offset}{column}.]"
        )
    if window.offset and window.offset >= selection.total_lines:
        return f"[Offset {window.offset} is past the end: {selection.total_lines} lines, from 0.]"
    return ""


_ANNOTATIONS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)

READ_FILE = ToolType(
    name="read_file",
    description=(
        "Read a text file. The text comes back exactly as it is, without line numbers. A long file "
        "is cut, and a note says with which offset to go on."
    ),
    properties=_PROPERTIES,
    required=("file_path",),
    arguments=ReadFileArguments,
    action="read",
    annotations=_ANNOTATIONS,
    run=_run,
    check=_check,
)

READ_MEMORY = ToolType(
    name="read_memory",
    description=(
        "Read a document of managed memory: notes about the project, its people and the team. "
        "Works like read_file, and only there."
    ),
    properties=_PROPERTIES,
    required=("file_path",),
    arguments=ReadFileArguments,
    action="read",
    annotations=_ANNOTATIONS,
    run=_run,
    check=_check,
    managed_only=True,
)
