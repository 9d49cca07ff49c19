"""What common agent hosts call their tools, and the blocks that keep `read_memory` elsewhere.

The names of the hosts' own tools follow their documentation; ours are as each host shows the tools
of an MCP server called `pinfold`.
"""

from collections.abc import Sequence
from typing import Any

from pinfold_protocol.compaction import CompactSettings

OURS = ("read_file", "read_memory", "write_file", "edit")
READ_MEMORY = ("read_memory", "mcp__pinfold__read_memory")
"""What the tool is called where it is called directly, and under an MCP server's prefix."""


def _settings(clearable: str, reads: dict[str, str], prefix: str) -> CompactSettings:
    ours = [prefix + name for name in OURS]
    read = {prefix + name: "file_path" for name in ("read_file", "read_memory")}
    return CompactSettings(clearable=[*clearable.split(), *ours], reads=reads | read)


HOSTS: dict[str, CompactSettings] = {
    "qwen-code": CompactSettings(),
    "claude-code": _settings(
        "Read Write Edit MultiEdit NotebookEdit Bash BashOutput Glob Grep WebFetch WebSearch",
        {"Read": "file_path"},
        "mcp__pinfold__",
    ),
    "gemini-cli": _settings(
        "read_file read_many_files write_file replace run_shell_command list_directory glob "
        "search_file_content grep_search web_fetch google_web_search",
        {"read_file": "file_path"},
        "mcp_pinfold_",
    ),
    "codex": _settings(
        "shell shell_command exec_command apply_patch web_search", {}, "mcp__pinfold__"
    ),
    "opencode": _settings(
        "read write edit bash glob grep list webfetch", {"read": "filePath"}, "pinfold_"
    ),
}
"""`clearable` and `reads` by host; `msgspec.structs.replace` adds the rest."""


def context_management(
    *,
    trigger_tokens: int = 100_000,
    keep: int = 3,
    clear_at_least_tokens: int | None = None,
    keep_tools: Sequence[str] = READ_MEMORY,
) -> dict[str, Any]:
    """The `context_management` block of a request to Anthropic's API (beta
    `context-management-2025-06-27`) that clears old tool results and keeps every memory read."""
    edit: dict[str, Any] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger_tokens},
        "keep": {"type": "tool_uses", "value": keep},
        "exclude_tools": list(keep_tools),
    }
    if clear_at_least_tokens is not None:
        edit["clear_at_least"] = {"type": "input_tokens", "value": clear_at_least_tokens}
    return {"edits": [edit]}


def clear_tool_uses_arguments(
    *,
    trigger_tokens: int = 100_000,
    keep: int = 3,
    clear_at_least_tokens: int = 0,
    keep_tools: Sequence[str] = READ_MEMORY,
) -> dict[str, Any]:
    """The arguments for LangChain's `ClearToolUsesEdit` that do the same."""
    return {
        "trigger": trigger_tokens,
        "keep": keep,
        "clear_at_least": clear_at_least_tokens,
        "exclude_tools": list(keep_tools),
    }
