"""What `write_file` and `edit` share: the old content, the check of its digest, the outcome."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from pinfold.backends.base import Reading, Written
from pinfold.backends.local import require_replaceable
from pinfold.paths.opened import CheckedPath
from pinfold.text.codec import MARK, Decoded, decode, encode, image_type, printable
from pinfold.text.lines import line_ending
from pinfold.tools.base import UNREADABLE, Workplace
from pinfold_protocol.errors import ToolError
from pinfold_protocol.tools import TextContent


class Old(msgspec.Struct, frozen=True):
    """What is there before a change; `decoded` is None where nothing is.

    `encoding`: named in this call, or earlier for this file. `stale`: it has changed since the
    session saw it last. `content`: where that was read.
    """

    decoded: Decoded | None
    encoding: str | None
    stale: bool = False
    other_links: int = 0
    sha256: str | None = None
    content: Reading | None = None

    @property
    def text(self) -> str:
        """Empty where nothing is."""
        return self.decoded.text if self.decoded else ""


def read_old(
    path: CheckedPath, place: Workplace, encoding: str | None, expected_sha256: str | None
) -> Old:
    """The target as it is now. Raises ToolError if it is no text file, not the expected one, or
    has not been read where that is required."""
    opened = path.opened
    require_replaceable(opened)
    encoding = place.known.encoding(opened.real, encoding)
    content = _content(path, place, encoding)
    if content is None:
        if expected_sha256 is not None:
            message = f"{opened.literal}: there is no such file any more. "
            message += "Leave expected_sha256 out to create it."
            raise ToolError("stale", message)
        return Old(None, encoding)
    if content.refusal is not None:
        raise content.refusal
    data = content.data
    if image_type(data[:16]):
        message = f"{opened.literal}: it is an image, which cannot be edited. Only text can."
        raise ToolError("binary", message)
    digest = hashlib.sha256(data).hexdigest()
    if expected_sha256 is not None and expected_sha256.lower() != digest:
        message = f"{opened.literal}: it is not the file that was expected. Read it again."
        raise ToolError("stale", message, sha256=digest)
    seen = place.known.last_seen(opened.real or "", opened.status, digest)
    if place.staleness == "require-read" and seen is None:
        message = f"{opened.literal}: this session has not read it. Read it, then change it."
        raise ToolError("not-read", message)
    changed = seen is not None and seen != digest and expected_sha256 is None
    stale = changed and place.staleness != "off"
    links = 0 if opened.status is None else opened.status.st_nlink - 1
    return Old(decode(data, encoding), encoding, stale, links, digest, content)


def _content(path: CheckedPath, place: Workplace, encoding: str | None) -> Reading | None:
    """None where nothing is: not on disk, nor anywhere else that the backend knows of."""
    try:
        return place.backend.read(path, place.limits.max_file_bytes, encoding=encoding)
    except ToolError as error:
        if error.kind == "not-found" and path.opened.status is None:
            return None
        raise


def require_fresh(path: CheckedPath, old: Old) -> None:
    """Raise ToolError if the file has changed since the session saw it last."""
    if old.stale:
        message = f"{path.opened.literal}: it has changed since you read it. Read it again."
        raise ToolError("stale", message)


@contextmanager
def naming(member: str, given: str, path: CheckedPath) -> Iterator[None]:
    """Around what puts a text into a file's encoding: an error names the argument that it was
    `given` in, with the place there, and the file."""
    try:
        yield
    except ToolError as error:
        if error.kind != "invalid-arguments":
            raise
        raise _unstorable(error, member, given, path) from None


def _unstorable(error: ToolError, member: str, given: str, path: CheckedPath) -> ToolError:
    try:  # as it was given: without what else went in, and with its own line endings
        encode(given, error.data["encoding"])
    except ToolError as found:
        error = found
    message = (
        f"{member}: {error.message} That is the encoding for {path.opened.literal}: write other "
        "characters, or the whole file with another encoding. Nothing was changed."
    )
    return ToolError("invalid-arguments", message, **error.data, path=member)


def finish(
    path: CheckedPath, place: Workplace, old: Old, new: Decoded, *, dry_run: bool, whole: bool
) -> tuple[dict[str, Any], tuple[TextContent, ...]]:
    """Make `new` the content, unless it is already, or `dry_run`. The members of WriteDetails, and
    what the model reads. To a session that may not read the file the diff is not shown.

    `whole`: the session said what the whole file is, so that it knows it afterwards; an edit of a
    file that changed since it was read leaves it as unknown as it was.
    """
    data = new.data
    changed = old.decoded is None or data != old.decoded.data
    real = path.opened.real or path.opened.literal
    if len(data) > place.limits.max_file_bytes:
        most = place.limits.max_file_bytes
        message = f"{real}: the outcome would be {len(data)} bytes, over the limit of {most}. "
        message += "Write less, or several files."
        raise ToolError("too-large", message, sizeBytes=len(data), limit=most)
    details = _outcome(old, new, real)
    place.require_wanted()
    where: Reading | Written = old.content or Written(None)
    if changed and not dry_run:
        where = place.backend.replace(path, data, old.content, encoding=old.encoding)
        if where.data is not None:
            details = _outcome(old, decode(where.data, old.encoding), real)
        if whole or not old.stale:
            place.known.wrote(real, where.identity, details["sha256"])
    elif whole and not dry_run and old.content is not None:
        place.known.saw(real, path.opened.status, details["sha256"], place.known.now())
    shown = old.decoded is None or not details["changed"] or place.may_show()
    details |= {**place.origin(where), "diff": details["diff"] if shown else ""}
    return details, _summary(details, old, new, dry_run=dry_run, shown=shown)


def _outcome(old: Old, new: Decoded, path: str) -> dict[str, Any]:
    changed = old.decoded is None or new.data != old.decoded.data
    return {
        "path": path,
        "created": old.decoded is None,
        "changed": changed,
        "encoding": new.encoding,
        "bom": bool(new.mark) or (new.encoding == "utf-8" and new.text.startswith(MARK)),
        "line_ending": line_ending(new.text),
        "size_bytes": len(new.data),
        "sha256": hashlib.sha256(new.data).hexdigest(),
        "diff": _diff(old, new, path) if changed else "",
        "other_links": old.other_links,
    }


def _diff(old: Old, new: Decoded, path: str) -> str:
    from pinfold.text.diff import unified_diff  # not for a first read

    diff = unified_diff(old.text, new.text, path)
    before = old.decoded
    if before is not None and bool(before.mark) != bool(new.mark):
        diff += f"\\ Byte-order mark {'added' if new.mark else 'removed'}\n"
    return diff


def _summary(
    details: dict[str, Any], old: Old, new: Decoded, *, dry_run: bool, shown: bool
) -> tuple[TextContent, ...]:
    """What the model reads: one line, and for a dry run the diff below it."""
    left_out = new.mark_left_out and not new.mark
    mark = " U+FEFF at its beginning was left out: no byte-order mark is added." if left_out else ""
    if not details["changed"]:
        message = f"{details['path']}: nothing to change, it is like that already.{mark}"
        return (TextContent(printable(message)),)
    verb = "Created" if details["created"] else "Changed"
    if dry_run:
        verb = "Would create" if details["created"] else "Would change"
    diff = f"\n{details['diff']}" if dry_run and shown else ""
    if not shown:
        diff = f" The diff is not shown, {UNREADABLE}."
    where = " in the editor, which has not saved it yet" if _in_editor(details) else ""
    told = f"{verb} {details['path']}{where}.{_also(details, old, new)}{mark}{diff}"
    return (TextContent(printable(told)),)


def _also(details: dict[str, Any], old: Old, new: Decoded) -> str:
    """What else a change did, which was not asked for in so many words."""
    told: list[str] = []
    before, after = line_ending(old.text), details["line_ending"]
    if before is not None and after not in (before, None):
        told.append(f" Line endings: {before} -> {after}.")
    was = old.decoded
    if was is not None and was.undecodable and not was.named and not new.undecodable:
        told.append(f" Encoding: it was no valid {new.encoding}, and is {new.encoding} now.")
    if old.other_links:
        fate = "may change too when it is saved" if _in_editor(details) else "keep the old bytes"
        told.append(f" {old.other_links} other hard links {fate}.")
    return "".join(told)


def _in_editor(details: dict[str, Any]) -> bool:
    return details.get("source") == "buffer"
