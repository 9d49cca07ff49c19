"""Tools: how they are listed and called, their arguments and details (section 4).

Names and arguments of tools are `snake_case` on the wire, since models see those; everything else
is `camelCase`. A class says which it is by `snake_case_on_wire`.
"""

from typing import Any, ClassVar, Literal

import attrs

from pinfold_protocol.errors import ToolErrorKind

DETAILS_KEY = "pinfold/details"
DECISION_KEY = "pinfold/decision"

LineEnding = Literal["lf", "crlf", "cr", "mixed"]
Source = Literal["disk", "buffer"]
_TOLD = {"omit_null": True}


@attrs.frozen
class ReadFileArguments:
    """`read_file` and `read_memory`. Lines count from 0 and include their endings."""

    snake_case_on_wire: ClassVar[bool] = True

    file_path: str
    offset: int | None = None
    limit: int | None = None
    column: int | None = None
    encoding: str | None = None


@attrs.frozen
class WriteFileArguments:
    """`write_file`: the whole new content."""

    snake_case_on_wire: ClassVar[bool] = True

    file_path: str
    content: str
    encoding: str | None = None
    expected_sha256: str | None = None
    dry_run: bool | None = None


@attrs.frozen
class Replacement:
    """One replacement: `old_string` must match exactly once, unless `replace_all`."""

    snake_case_on_wire: ClassVar[bool] = True

    old_string: str
    new_string: str
    replace_all: bool | None = None


@attrs.frozen
class EditArguments:
    """`edit`: one replacement, or several in `edits`, applied in order, all or none."""

    snake_case_on_wire: ClassVar[bool] = True

    file_path: str
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool | None = None
    edits: list[Replacement] | None = None
    encoding: str | None = None
    expected_sha256: str | None = None
    dry_run: bool | None = None


@attrs.frozen
class ReadDetails:
    """What a read showed: `start_line` inclusive, `end_line` exclusive, both from 0.

    `truncated` says that a limit of the gateway cut the text; `next_offset` and `next_column` say
    where the rest begins, null where nothing is left. `size_bytes` and `sha256` are the file's.
    With an editor, `source` says where that was read: in its open document, of which it is then
    the `version`, or on the disk.
    """

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
    source: Source | None = attrs.field(default=None, metadata=_TOLD)
    version: int | None = attrs.field(default=None, metadata=_TOLD)


@attrs.frozen
class ImageDetails:
    """What a read of an image gave."""

    path: str
    mime_type: str
    size_bytes: int
    sha256: str
    source: Source | None = attrs.field(default=None, metadata=_TOLD)
    version: int | None = attrs.field(default=None, metadata=_TOLD)


@attrs.frozen
class WriteDetails:
    """What `write_file` did; sizes, digest and line ending are those of the outcome. With an
    editor, `source` says where that is: in its open document, not saved yet, the first of whose
    versions that shows the change is `version`, or on the disk."""

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
    source: Source | None = attrs.field(default=None, metadata=_TOLD)
    version: int | None = attrs.field(default=None, metadata=_TOLD)


@attrs.frozen
class EditDetails(WriteDetails):
    """What `edit` did; `replacements` counts the places that were replaced."""

    replacements: int = 0


@attrs.frozen
class UpstreamDetails:
    """What an upstream did: its own name for the tool, and the real path that it was given."""

    upstream: str
    tool: str
    path: str | None = None


@attrs.frozen
class ErrorDetails:
    """`pinfold/details.error`; further members depend on the kind."""

    kind: ToolErrorKind
    message: str


@attrs.frozen
class Annotations:
    """MCP's hints about a tool."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool = False


@attrs.frozen
class Tool:
    """One tool as a model sees it; `input_schema` is a flat JSON Schema object. An upstream's own
    tool may have a title and an `output_schema`."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: Annotations
    title: str | None = attrs.field(default=None, metadata={"omit_null": True})
    output_schema: dict[str, Any] | None = attrs.field(default=None, metadata={"omit_null": True})


@attrs.frozen
class ToolsListParams:
    """`tools/list`."""

    session_id: str | None = None


@attrs.frozen
class ToolsListResult:
    """The tools offered; with a session, the ones that this session may call."""

    tools: list[Tool]


@attrs.frozen
class ToolsDidChangeParams:
    """`tools/didChange`: an upstream has other tools now; `backend` is its name. A host that wants
    to know which asks `tools/list` again."""

    backend: str


@attrs.frozen
class ToolsCallParams:
    """`tools/call`. `arguments` stay as they came until the tool's own types are known."""

    session_id: str
    name: str
    arguments: dict[str, Any] = attrs.Factory(dict)
    call_id: str | None = None
    work_done_token: int | str | None = None


@attrs.frozen
class TextContent:
    """A text item; MCP's shape."""

    text: str
    type: Literal["text"] = "text"


@attrs.frozen
class ImageContent:
    """An image item; MCP's shape. `data` is base64."""

    data: str
    mime_type: str
    type: Literal["image"] = "image"


Content = TextContent | ImageContent
AnyContent = TextContent | ImageContent | dict[str, Any]
"""An upstream's items may have other types and further members: those stay as they came."""


@attrs.frozen
class ToolResult:
    """The answer to `tools/call`; MCP's shape. What an upstream adds beyond these members
    (`structuredContent` and others) stands beside them as it came."""

    content: list[AnyContent]
    is_error: bool
    meta: dict[str, Any] = attrs.field(metadata={"wire_name": "_meta"})
    # The further members.
    more: dict[str, Any] = attrs.field(factory=dict, metadata={"wire": False, "open": True})

    @property
    def text(self) -> str:
        """The first text item: for a read, exactly the selected text. Empty if there is none."""
        for item in self.content:
            if isinstance(item, TextContent):
                return item.text
            if isinstance(item, dict) and isinstance(item.get("text"), str):
                return str(item["text"])
        return ""
