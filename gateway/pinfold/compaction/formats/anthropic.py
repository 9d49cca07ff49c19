"""Anthropic messages: `tool_use` blocks of the assistant, `tool_result` blocks of the user.

Ids, order, the blocks beside a result, thinking blocks and cache markers stay as they are. Blocks
of tools that run at the provider are in the assistant's messages, and are not ours to change.
"""

from collections.abc import Sequence
from typing import Any

from pinfold.compaction.formats.blocks import Blocks
from pinfold.compaction.scan import Found, Scan

_MEDIA = ("image", "document")


def _mime(block: dict[str, Any]) -> Any:
    source = block.get("source")
    return source.get("media_type") if isinstance(source, dict) else None


_BLOCKS = Blocks(text=("text",), media=_MEDIA, mime=_mime, kept="cache_control")


def read(messages: Sequence[Any], scan: Scan) -> None:
    """Tell what is in a list of messages."""
    for scan.message, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(content, str) and role is not None:
            continue
        if not isinstance(content, list):
            scan.leave(None, "not a message with content")
        elif role == "assistant":
            _read_assistant(content, scan)
        elif role == "user":
            _read_user(content, scan)


def _read_assistant(content: list[Any], scan: Scan) -> None:
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            scan.call(block.get("id"), block.get("name"), block.get("input"))


def _read_user(content: list[Any], scan: Scan) -> None:
    for index, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            _read_result(index, block, scan)
        elif kind in _MEDIA:
            scan.media(index, _mime(block))
        elif kind is None:
            scan.leave(index, "a block without a type")


def _read_result(index: int, block: dict[str, Any], scan: Scan) -> None:
    weighed = _BLOCKS.weigh(block.get("content"))
    if weighed is None:
        scan.leave(index, "a tool result with content that is neither text nor media")
        return
    text, media = weighed
    scan.result(
        index,
        block.get("tool_use_id"),
        text,
        error=block.get("is_error") is True,
        media=media,
    )


def clear(message: dict[str, Any], found: Sequence[Found]) -> dict[str, Any]:
    """A copy of a message with these blocks cleared."""
    content = list(message["content"])
    for each in found:
        assert each.part is not None
        block = content[each.part]
        match each.kind:
            case "media":
                content[each.part] = _BLOCKS.placeholder(block)
            case "tool":
                content[each.part] = {**block, "content": _BLOCKS.cleared(block["content"])}
            case _:
                content[each.part] = {**block, "content": _BLOCKS.without_media(block["content"])}
    return {**message, "content": content}
