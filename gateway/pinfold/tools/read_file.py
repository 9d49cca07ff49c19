"""`read_file` and `read_memory`: show a part of a text file exactly as it is."""

import hashlib
import threading
from collections.abc import Callable, Iterator

from pinfold.backends.base import Reading
from pinfold.backends.local import require_regular, too_large
from pinfold.paths.errors import WouldBlock
from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import (
    IMAGE_STARTS,
    Decoded,
    codec_name,
    decode,
    encoding_of,
    first_undecodable,
    image_type,
)
from pinfold.text.lines import Selection, Window, line_ending, normalize, select
from pinfold.text.stream import select_from
from pinfold.tools.base import ENCODING, PATH, Outcome, ToolType, Workplace
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import (
    Annotations,
    ImageContent,
    ImageDetails,
    ReadDetails,
    ReadFileArguments,
    TextContent,
)

_MOST = 2**53 - 1
_MEANWHILE = 512 << 10
"""From how many bytes on a thread pays."""
_GUESSED = 16_384
"""How many bytes a guess of the encoding looks at."""
_ENOUGH_TO_GUESS = 16
_NOTHING = TextContent("")
_COMMON = [
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr"),
]

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
            message = f"{name}: must be at least {least} and at most {_MOST}."
            raise ToolError("invalid-arguments", message, path=name)
    if arguments.encoding is not None:
        codec_name(arguments.encoding)


def _run(arguments: ReadFileArguments, path: CheckedPath, place: Workplace) -> Outcome:
    opened, limit = path.opened, place.limits.max_file_bytes
    status = opened.status
    encoding = place.known.encoding(opened.real, arguments.encoding)
    since = place.known.now()
    if status is not None and status.st_size > limit:
        return _run_large(arguments, path, place, encoding)
    content = place.backend.read(path, limit, cached=place.cached, encoding=encoding)
    digest = _digest(content.data)
    outcome = _show(arguments, path, place, encoding, content, digest)
    if outcome.complete or outcome.content[0] != _NOTHING:  # else it has not been read
        place.known.saw(opened.real or opened.literal, status, digest(), since)
    return outcome


def _show(
    arguments: ReadFileArguments,
    path: CheckedPath,
    place: Workplace,
    encoding: str | None,
    content: Reading,
    digest: Callable[[], str],
) -> Outcome:
    data, real = content.data, path.opened.real or path.opened.literal
    image = arguments.encoding is None and data[:1] in IMAGE_STARTS
    if image and (mime_type := image_type(data)):
        import base64  # not for a text

        item = ImageContent(base64.b64encode(data).decode("ascii"), mime_type)
        told = ImageDetails(real, mime_type, len(data), digest(), **place.origin(content))
        return Outcome((item,), told, complete=True)
    decoded = decode(data, encoding)
    if decoded.undecodable and not decoded.named:
        raise _undecodable(decoded)
    window = _window(arguments, place)
    selection = select(normalize(decoded.shown), window)
    details = ReadDetails(
        path=real,
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
        sha256=digest(),
        **place.origin(content),
    )
    return _outcome(selection, window, details, content.note)


def _digest(data: bytes) -> Callable[[], str]:
    """What says the SHA-256 of a content, in hex digits. That of a large one is found meanwhile, on
    another core: hashing keeps nobody else from running."""
    if len(data) < _MEANWHILE:
        return hashlib.sha256(data).hexdigest
    found = hashlib.sha256()
    thread = threading.Thread(target=found.update, args=(data,), daemon=True)
    thread.start()

    def joined() -> str:
        thread.join()
        return found.hexdigest()

    return joined


def _run_large(
    arguments: ReadFileArguments, path: CheckedPath, place: Workplace, encoding: str | None
) -> Outcome:
    """By streaming: bounded memory, and nothing is known of the file as a whole."""
    real = path.opened.real or path.opened.literal
    size = require_regular(path.opened, path.opened.literal).st_size
    if place.cached:
        raise WouldBlock
    window = _window(arguments, place)
    with place.backend.chunks(path) as chunks:
        if arguments.limit is None:
            encoding_of(next(chunks, b""), encoding)  # else a part could not be read either
            then = "Read a part of it: give offset and limit (lines)."
            raise too_large(real, size, place.limits.max_file_bytes, then)
        streamed = select_from(_wanted(chunks, place), encoding, window)
    selection = streamed.selection
    details = ReadDetails(
        path=real,
        start_line=selection.start_line,
        end_line=selection.end_line,
        total_lines=None,
        truncated=selection.truncated,
        next_offset=selection.next_offset,
        next_column=selection.next_column,
        encoding=streamed.encoding,
        bom=bool(streamed.mark),
        line_ending=None,
        size_bytes=size,
        sha256=None,
        **place.origin(Reading(b"")),
    )
    return _outcome(selection, window, details)


def _wanted(chunks: Iterator[bytes], place: Workplace) -> Iterator[bytes]:
    for chunk in chunks:
        place.require_wanted()
        yield chunk


def _window(arguments: ReadFileArguments, place: Workplace) -> Window:
    return Window(
        offset=arguments.offset or 0,
        limit=arguments.limit,
        column=arguments.column or 0,
        max_lines=place.limits.read_lines,
        max_bytes=place.limits.read_bytes,
    )


def _outcome(selection: Selection, window: Window, details: ReadDetails, note: str = "") -> Outcome:
    notes = [each for each in (_note(selection, window), note) if each]
    items = tuple(map(TextContent, (selection.text, *notes)))
    from_start = selection.start_line == 0 and window.column == 0
    return Outcome(items, details, from_start and selection.next_offset is None)


def _undecodable(decoded: Decoded) -> ToolError:
    line, at = first_undecodable(decoded)
    guessed = guess(decoded.data) if decoded.unknown else None
    hint = f" It may be {guessed}, which is a guess: try encoding={guessed!r}." if guessed else ""
    if decoded.mark:
        hint = f" Its mark says so: encoding={decoded.encoding!r} shows it, with U+FFFD there."
    message = (
        f"It is not valid {decoded.encoding}: byte {at}, in line {line + 1}, cannot be decoded."
        f"{hint} Name its encoding to read it; ASCII text that is apart from such bytes can be "
        "edited as it is."
    )
    return ToolError("undecodable", message, line=line, byteOffset=at, guess=guessed)


def guess(data: bytes) -> str | None:
    """An encoding that the bytes may be in. Only for hints: it may be wrong."""
    from charset_normalizer import from_bytes

    if sum(byte > 127 for byte in data[:_GUESSED]) < _ENOUGH_TO_GUESS:
        return None
    best = from_bytes(data[:_GUESSED], cp_isolation=_COMMON).best()
    return None if best is None else best.encoding


def _note(selection: Selection, window: Window) -> str:
    total = selection.total_lines
    if selection.truncated:
        column = f", column={selection.next_column}" if selection.next_column else ""
        of = "" if total is None else f" the file has {total} lines."
        limit = "" if window.limit is None else f", limit={window.limit}"
        return (
            f"[Cut here by the read limit;{of} Go on with offset={selection.next_offset}{column}"
            f"{limit}.]"
        )
    first = selection.start_line
    if selection.line_length is not None:
        return (
            f"[Column {window.column} is past the end of line {first + 1} (offset {first}): "
            f"{selection.line_length} characters, from 0.]"
        )
    if window.offset and not selection.text:
        return f"[Offset {window.offset} is past the end: {first} lines, from 0.]"
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
