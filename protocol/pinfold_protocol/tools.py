"""Tools: how they are listed and called, their arguments and details (section 4).

Names and arguments of tools are `snake_case` on the wire, since models see those; everything else
is `camelCase`.
"""

from typing import Any, ClassVar, Literal

import msgspec

from pinfold_protocol.errors import ToolErrorKind
from pinfold_protocol.wire import Arguments, Wire

DETAILS_KEY = "pinfold/details"
DECISION_KEY = "pinfold/decision"

LineEnding = Literal["lf", "crlf", "cr", "mixed"]
Source = Literal["disk", "buffer"]
_TOLD = ("source", "version")
"""Members that are there with an editor only."""


class ReadFileArguments(Arguments, frozen=True):
    """`read_file` and `read_memory`. Lines count from 0 and include their endings."""

    file_path: str
    offset: int | None = None
    limit: int | None = None
    column: int | None = None
    encoding: str | None = None


class WriteFileArguments(Arguments, frozen=True):
    """`write_file`: the whole new content."""

    file_path: str
    content: str
    encoding: str | None = None
    expected_sha256: str | None = None
    dry_run: bool | None = None


class Replacement(Arguments, frozen=True):
    """One replacement: `old_string` must match exactly once, unless `replace_all`."""

    old_string: str
    new_string: str
    replace_all: bool | None = None


class EditArguments(Arguments, frozen=True):
    """`edit`: one replacement, or several in `edits`, applied in order, all or none."""

    file_path: str
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool | None = None
    edits: list[Replacement] | None = None
    encoding: str | None = None
    expected_sha256: str | None = None
    dry_run: bool | None = None


class ReadDetails(Wire, frozen=True):
    """What a read showed: `start_line` inclusive, `end_line` exclusive, both from 0.

    `truncated` says that a limit of the gateway cut the text; `next_offset` and `next_column` say
    where the rest begins, null where nothing is left. `size_bytes` and `sha256` are the file's.
    With an editor, `source` says where that was read: in its open document, of which it is then
    the `version`, or on the disk.
    """

    omitted: ClassVar[tuple[str, ...]] = _TOLD

    path: str
    start_line: int
    end_line: int
    total_lines: int | None
    truncated: bool
    next_offset: int | None
    next_column: int | None
    encoding: str
    bom: bool
    line_ending: LineEnding | None
    size_bytes: int
    sha256: str | None
    source: Source | None = None
    version: int | None = None


class ImageDetails(Wire, frozen=True):
    """What a read of an image gave."""

    omitted: ClassVar[tuple[str, ...]] = _TOLD

    path: str
    mime_type: str
    size_bytes: int
    sha256: str
    source: Source | None = None
    version: int | None = None


class WriteDetails(Wire, frozen=True):
    """What `write_file` did; sizes, digest and line ending are those of the outcome. With an
    editor, `source` says where that is: in its open document, not saved yet, the first of whose
    versions that shows the change is `version`, or on the disk."""

    omitted: ClassVar[tuple[str, ...]] = _TOLD

    path: str
    created: bool
    changed: bool
    encoding: str
    bom: bool
    line_ending: LineEnding | None
    size_bytes: int
    sha256: str
    diff: str
    other_links: int = 0
    source: Source | None = None
    version: int | None = None


class EditDetails(WriteDetails, frozen=True):
    """What `edit` did; `replacements` counts the places that were replaced."""

    replacements: int = 0


class UpstreamDetails(Wire, frozen=True):
    """What an upstream did: its own name for the tool, and the real path that it was given."""

    upstream: str
    tool: str
    path: str | None = None


class ErrorDetails(Wire, frozen=True):
    """`pinfold/details.error`; further members depend on the kind."""

    kind: ToolErrorKind
    message: str


class Annotations(Wire, frozen=True):
    """MCP's hints about a tool."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool = False


class Tool(Wire, frozen=True):
    """One tool as a model sees it; `input_schema` is a flat JSON Schema object. An upstream's own
    tool may have a title and an `output_schema`."""

    omitted: ClassVar[tuple[str, ...]] = ("title", "output_schema")

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: Annotations
    title: str | None = None
    output_schema: dict[str, Any] | None = None


class ToolsListParams(Wire, frozen=True):
    """`tools/list`."""

    session_id: str | None = None


class ToolsListResult(Wire, frozen=True):
    """The tools offered; with a session, the ones that this session may call."""

    tools: list[Tool]


class ToolsDidChangeParams(Wire, frozen=True):
    """`tools/didChange`: an upstream has other tools now; `backend` is its name. A host that wants
    to know which asks `tools/list` again."""

    backend: str


class ToolsCallParams(Wire, frozen=True):
    """`tools/call`. `arguments` stay as they came until the tool's own types are known."""

    session_id: str
    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    call_id: str | None = None
    work_done_token: int | str | None = None


class TextContent(Wire, frozen=True):
    """A text item; MCP's shape."""

    text: str
    type: Literal["text"] = "text"


class ImageContent(Wire, frozen=True):
    """An image item; MCP's shape. `data` is base64."""

    data: str
    mime_type: str
    type: Literal["image"] = "image"


Content = TextContent | ImageContent
AnyContent = TextContent | ImageContent | dict[str, Any]
"""An upstream's items may have other types and further members: those stay as they came."""


class ToolResult(Wire, frozen=True, rename={"is_error": "isError", "meta": "_meta"}):
    """The answer to `tools/call`; MCP's shape. What an upstream adds beyond these members
    (`structuredContent` and others) stands beside them as it came."""

    further_in: ClassVar[str | None] = "more"

    content: list[AnyContent]
    is_error: bool
    meta: dict[str, Any]
    more: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def text(self) -> str:
        """The first text item: for a read, exactly the selected text. Empty if there is none."""
        for item in self.content:
            if isinstance(item, TextContent):
                return item.text
            if isinstance(item, dict) and isinstance(item.get("text"), str):
                return str(item["text"])
        return ""
