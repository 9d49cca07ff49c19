"""`write_file`: a whole new content, in the file's own ending and mark."""

from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import MARK, Decoded, require_encoding, require_supported
from pinfold.text.edit import fit_endings
from pinfold.tools.base import (
    DRY_RUN,
    ENCODING,
    EXPECTED_SHA256,
    PATH,
    Outcome,
    ToolType,
    Workplace,
    require_encodable,
    require_sha256,
)
from pinfold.tools.change import finish, read_old, summary
from pinfold_protocol.tools import Annotations, WriteDetails, WriteFileArguments


def _check(arguments: WriteFileArguments) -> None:
    require_encodable("content", arguments.content)
    require_sha256(arguments.expected_sha256)
    require_supported(arguments.encoding)


def new_content(content: str, old: Decoded | None) -> bytes:
    """The bytes for a whole-file write: as given for a new file, else like the old one."""
    if old is None:
        return Decoded("").encode(content)
    body = content.removeprefix(MARK) if old.mark else content
    return old.encode(fit_endings(body, old.text))


def _run(arguments: WriteFileArguments, path: CheckedPath, place: Workplace) -> Outcome:
    old = read_old(path, place, arguments.encoding, arguments.expected_sha256)
    if old.decoded is None:
        require_encoding(arguments.encoding, "utf-8")
    data = new_content(arguments.content, old.decoded)
    details = finish(path, place, old, data, arguments.dry_run)
    return Outcome((summary(details, old, arguments.dry_run),), WriteDetails(**details))


WRITE_FILE = ToolType(
    name="write_file",
    description=(
        "Write a whole file, creating it and missing directories. An existing file keeps its line "
        "endings, byte-order mark and permissions."
    ),
    properties={
        "file_path": PATH,
        "content": {"type": "string", "description": "The whole new content."},
        "encoding": ENCODING,
        "expected_sha256": EXPECTED_SHA256,
        "dry_run": DRY_RUN,
    },
    required=("file_path", "content"),
    arguments=WriteFileArguments,
    action="change",
    annotations=Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True),
    run=_run,
    check=_check,
)
