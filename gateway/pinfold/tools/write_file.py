"""`write_file`: a whole new content, in the file's own ending and mark."""

from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import Decoded, codec_name, new_file
from pinfold.text.edit import fit_endings
from pinfold.tools.base import (
    DRY_RUN,
    ENCODING,
    EXPECTED_SHA256,
    PATH,
    Outcome,
    ToolType,
    Workplace,
    require_sha256,
    require_storable,
)
from pinfold.tools.change import finish, naming, read_old, require_fresh
from pinfold_protocol.tools import Annotations, WriteDetails, WriteFileArguments


def _check(arguments: WriteFileArguments) -> None:
    require_storable("content", arguments.content)
    require_sha256(arguments.expected_sha256)
    if arguments.encoding is not None:
        codec_name(arguments.encoding)


def new_content(content: str, old: Decoded | None, encoding: str | None) -> Decoded:
    """The file after a whole write: as given for a new one, else like the old one."""
    if old is None:
        return new_file(content, encoding)
    return old.whole(fit_endings(content, old.text))


def _run(arguments: WriteFileArguments, path: CheckedPath, place: Workplace) -> Outcome:
    old = read_old(path, place, arguments.encoding, arguments.expected_sha256)
    with naming("content", arguments.content, path):
        new = new_content(arguments.content, old.decoded, old.encoding)
    if old.decoded is not None and new.data != old.decoded.data:
        require_fresh(path, old)
    details, content = finish(path, place, old, new, dry_run=bool(arguments.dry_run), whole=True)
    return Outcome(content, WriteDetails(**details), before=old.sha256)


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
