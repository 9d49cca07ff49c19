"""What `write_file` and `edit` share: the old content, the check of its digest, the outcome."""

import hashlib
from typing import Any

import attrs

from pinfold.backends.local import require_replaceable
from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import Decoded, decode, printable
from pinfold.text.diff import unified_diff
from pinfold.text.lines import line_ending
from pinfold.tools.base import Workplace
from pinfold_protocol.errors import ToolError


@attrs.frozen
class Old:
    """What is there before a change; `decoded` is None where nothing is."""

    data: bytes | None
    decoded: Decoded | None
    other_links: int = 0

    @property
    def text(self) -> str:
        """Empty where nothing is."""
        return self.decoded.text if self.decoded else ""


def read_old(
    path: CheckedPath, place: Workplace, encoding: str | None, expected_sha256: str | None
) -> Old:
    """The target as it is now. Raises ToolError if it is no text file, or not the expected one."""
    opened = path.opened
    require_replaceable(opened)
    if opened.status is None:
        if expected_sha256 is not None:
            raise ToolError("stale", f"{opened.literal}: there is no such file any more.")
        return Old(None, None)
    data = place.backend.read(path, place.limits.max_file_bytes)
    digest = hashlib.sha256(data).hexdigest()
    if expected_sha256 is not None and expected_sha256.lower() != digest:
        message = f"{opened.literal}: it is not the file that was expected. Read it again."
        raise ToolError("stale", message, sha256=digest)
    return Old(data, decode(data, encoding), opened.status.st_nlink - 1)


def finish(
    path: CheckedPath, place: Workplace, old: Old, data: bytes, dry_run: bool | None
) -> dict[str, Any]:
    """Make `data` the content, unless it is already, or `dry_run`. The members of WriteDetails."""
    changed = data != old.data
    if len(data) > place.limits.max_file_bytes:
        most = place.limits.max_file_bytes
        message = f"{path.opened.literal}: the outcome would be {len(data)} bytes, over {most}"
        raise ToolError("too-large", message, sizeBytes=len(data), limit=most)
    if changed and not dry_run:
        place.backend.replace(path, data)
    new = decode_outcome(data)
    real = path.opened.real or path.opened.literal
    return {
        "path": real,
        "created": old.data is None,
        "changed": changed,
        "encoding": new.encoding,
        "bom": bool(new.mark),
        "line_ending": line_ending(new.text),
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "diff": _diff(old, new, real) if changed else "",
        "other_links": old.other_links,
    }


def decode_outcome(data: bytes) -> Decoded:
    """The outcome as text, for the details; what was just written may be anything."""
    try:
        return decode(data)
    except ToolError:
        return Decoded(data.decode("latin-1"))


def _diff(old: Old, new: Decoded, path: str) -> str:
    diff = unified_diff(old.text, new.text, path)
    before = old.decoded
    if before is not None and bool(before.mark) != bool(new.mark):
        diff += f"\\ Byte-order mark {'added' if new.mark else 'removed'}\n"
    return diff


def summary(details: dict[str, Any], old: Old, dry_run: bool | None) -> str:
    """What the model reads: one line, and for a dry run the diff below it."""
    if not details["changed"]:
        return f"{details['path']}: nothing to change, the file is already like that."
    verb = "Created" if details["created"] else "Changed"
    if dry_run:
        verb = "Would create" if details["created"] else "Would change"
    before, after = line_ending(old.text), details["line_ending"]
    endings = f" Line endings: {before} -> {after}." if old.text and before != after else ""
    diff = f"\n{details['diff']}" if dry_run else ""
    return printable(f"{verb} {details['path']}.{endings}{diff}")
