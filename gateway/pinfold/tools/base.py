"""What every tool is: a description for models, the types of its arguments, and what it does."""

from collections.abc import Callable
from typing import Any

import msgspec

from pinfold.backends.base import Backend, Reading, Written
from pinfold.paths.known import KnownFiles
from pinfold.paths.opened import CheckedPath
from pinfold.policy.facts import Action
from pinfold_protocol.errors import ToolError
from pinfold_protocol.session import Limits, Staleness
from pinfold_protocol.tools import Annotations, Content, ImageDetails, ReadDetails, WriteDetails


class Outcome(msgspec.Struct, frozen=True):
    """What a tool did: what the model reads, and the details for the host.

    `complete`: a read showed the whole file. `before`: SHA-256 of the file before a change, for
    the record.
    """

    content: tuple[Content, ...]
    details: ReadDetails | ImageDetails | WriteDetails
    complete: bool = False
    before: str | None = None


class Workplace(msgspec.Struct, frozen=True):
    """What a tool may use: a backend, the limits, what the session knows of files and how strict
    it is about that, whether it must not wait (WouldBlock), whether details
    say where something was read or written, what raises if it was cancelled, and what says
    whether the session may read, now, what a file held that it changes."""

    backend: Backend
    limits: Limits
    known: KnownFiles
    staleness: Staleness = "off"
    cached: bool = False
    sources: bool = False
    require_wanted: Callable[[], None] = lambda: None
    may_show: Callable[[], bool] = lambda: True

    def origin(self, where: Reading | Written) -> dict[str, Any]:
        """The members of the details that say where something was read or written."""
        return {"source": where.source, "version": where.version} if self.sources else {}


class ToolType(msgspec.Struct, frozen=True):
    """One tool. `check` looks at what goes together in the arguments (raises ToolError)."""

    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    arguments: type[Any]
    action: Action
    annotations: Annotations
    run: Callable[[Any, CheckedPath, Workplace], Outcome]
    check: Callable[[Any], None] = lambda arguments: None
    managed_only: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """A flat object, since model APIs refuse `oneOf` at the top."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


PATH = {
    "type": "string",
    "description": "Path of the file: absolute, relative to the project, or beginning with ~/.",
}
ENCODING = {
    "type": "string",
    "description": "Name of the file's encoding, where it is not UTF-8 and has no mark.",
}
UNREADABLE = "since this session may not read the file"
"""Why a change tells nothing of what the file held."""
EXPECTED_SHA256 = {
    "type": "string",
    "description": "SHA-256 (hex) that the file must have now; refused as stale otherwise.",
}
DRY_RUN = {"type": "boolean", "description": "Report what would be done, and change nothing."}


def require_storable(member: str, text: str | None) -> None:
    """Raise ToolError for a lone surrogate, which no encoding can hold, and for a NUL: no tool
    could read or edit the file afterwards."""
    if text and "\0" in text:
        message = f"{member}: a NUL at character {text.index(chr(0))} would make the file binary. "
        message += "Leave it out."
        raise ToolError("invalid-arguments", message, path=member)
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        message = (
            f"{member}: a lone surrogate at character {error.start} cannot be stored. Leave it out."
        )
        raise ToolError("invalid-arguments", message, path=member) from None


def require_sha256(value: str | None) -> None:
    """Raise ToolError unless `value` is absent or 64 hex digits."""
    if value is None:
        return
    if len(value) != 64 or not set(value) <= set("0123456789abcdefABCDEF"):
        message = "expected_sha256: must be 64 hex digits, as a read's details have it, or absent."
        raise ToolError("invalid-arguments", message, path="expected_sha256")
