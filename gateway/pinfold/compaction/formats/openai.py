"""OpenAI: chat messages and Responses items, also mixed; one reader for both.

Chat: `tool_calls` of the assistant, one message of role `tool` for each result. Responses: items of
type `function_call` and `function_call_output` (and their `custom_tool` twins). Neither format can
say that a result is a failure. Reasoning items and outputs of the provider's own tools stay.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pinfold.compaction.formats.blocks import Blocks, data_url_mime
from pinfold.compaction.scan import Found, Scan

_CHAT_MEDIA = ("image_url", "input_audio", "file")
_ITEM_MEDIA = ("input_image", "input_file", "input_audio")
_ITEM_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_ITEM_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_CLOSED_OUTPUTS = (
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "computer_call_output",
)


def _mime(block: dict[str, Any]) -> str | None:
    match block.get("type"):
        case "image_url":
            image = block.get("image_url")
            return data_url_mime(image.get("url") if isinstance(image, dict) else image)
        case "input_audio":
            audio = block.get("input_audio")
            kind = audio.get("format") if isinstance(audio, dict) else None
            return f"audio/{kind}" if isinstance(kind, str) else None
        case "input_image":
            return data_url_mime(block.get("image_url"))
        case "file":
            file = block.get("file")
            return data_url_mime(file.get("file_data")) if isinstance(file, dict) else None
        case _:
            return data_url_mime(block.get("file_data"))


_CHAT = Blocks(text=("text",), media=_CHAT_MEDIA, mime=_mime)
_ITEMS = Blocks(text=("input_text", "output_text"), media=_ITEM_MEDIA, mime=_mime)


def read(messages: Sequence[Any], scan: Scan) -> None:
    """Tell what is in a list of messages or items."""
    for scan.message, message in enumerate(messages):
        if not isinstance(message, dict):
            scan.leave(None, "not an object")
            continue
        kind = message.get("type")
        if not isinstance(kind, str | None):
            scan.leave(None, "an item whose type is no text")
        elif kind in _ITEM_CALLS:
            _read_item_call(message, scan)
        elif kind in _ITEM_OUTPUTS:
            _read_result(message, message.get("call_id"), message.get("output"), _ITEMS, scan)
        elif kind in _CLOSED_OUTPUTS:
            scan.leave(None, f"results of type {kind} are left as they are")
        elif kind in (None, "message"):
            read_by_role = _BY_ROLE.get(str(message.get("role")))
            if read_by_role is not None:
                read_by_role(message, scan)
            elif not isinstance(message.get("role"), str):
                scan.leave(None, "neither a message with a role nor an item with a type")


def _read_item_call(item: dict[str, Any], scan: Scan) -> None:
    name, namespace = item.get("name"), item.get("namespace")
    if isinstance(name, str) and isinstance(namespace, str):
        name = _in_namespace(namespace, name)
    scan.call(item.get("call_id"), name, item.get(_ITEM_CALLS[item["type"]]), _parsed)


def _in_namespace(namespace: str, name: str) -> str:
    """A tool of an MCP server: `mcp__SERVER__` and its name, however the two are divided."""
    if not namespace.startswith("mcp__"):
        return name
    return namespace.rstrip("_") + "__" + name


def _read_assistant(message: dict[str, Any], scan: Scan) -> None:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        scan.leave(None, "tool_calls is not a list")
        return
    for call in calls:
        kind = "custom" if isinstance(call, dict) and call.get("type") == "custom" else "function"
        called = call.get(kind) if isinstance(call, dict) else None
        if isinstance(called, dict):
            scan.call(call.get("id"), called.get("name"), called.get("arguments"), _parsed)


def _read_tool(message: dict[str, Any], scan: Scan) -> None:
    _read_result(message, message.get("tool_call_id"), message.get("content"), _CHAT, scan)


def _read_function(message: dict[str, Any], scan: Scan) -> None:
    """The oldest shape: a result by name, without an id."""
    name, content = message.get("name"), message.get("content")
    if isinstance(name, str) and (content is None or isinstance(content, str)):
        scan.result(None, None, content, name=name)
    else:
        scan.leave(None, "a function's result without a name or a text")


def _read_user(message: dict[str, Any], scan: Scan) -> None:
    content = message.get("content")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in _CHAT_MEDIA or kind in _ITEM_MEDIA:
            scan.media(index, _mime(block))
        elif kind is None:
            scan.leave(index, "a part without a type")


def _leave_alone(message: dict[str, Any], scan: Scan) -> None:
    """Instructions."""


_BY_ROLE: Mapping[str, Callable[[dict[str, Any], Scan], None]] = {
    "assistant": _read_assistant,
    "tool": _read_tool,
    "function": _read_function,
    "user": _read_user,
    "system": _leave_alone,
    "developer": _leave_alone,
}


def _read_result(
    message: dict[str, Any], call_id: Any, content: Any, blocks: Blocks, scan: Scan
) -> None:
    weighed = blocks.weigh(content)
    if weighed is None:
        scan.leave(None, "a tool result that is neither text nor media")
        return
    text, media = weighed
    scan.result(None, call_id, text, media=media)


def _parsed(arguments: Any) -> Any:
    """A model's arguments: JSON text, or what it made of it."""
    if not isinstance(arguments, str):
        return None
    try:
        return msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return _parsed_slowly(arguments)


def _parsed_slowly(arguments: str) -> Any:
    """Lone surrogates are JSON, but not to msgspec."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def clear(message: dict[str, Any], found: Sequence[Found]) -> dict[str, Any]:
    """A copy of a message or an item with these results or parts cleared."""
    if found[0].kind == "media":
        return {**message, "content": _without_media(message["content"], found)}
    is_item = message.get("type") in _ITEM_OUTPUTS
    member, blocks = ("output", _ITEMS) if is_item else ("content", _CHAT)
    content = message[member]
    if found[0].kind == "tool":
        return {**message, member: blocks.cleared(content)}
    return {**message, member: blocks.without_media(content)}


def _without_media(content: list[Any], found: Sequence[Found]) -> list[Any]:
    """Audio is called the same in both formats; what stands beside it is not."""
    items = ("input_text", "input_image", "input_file")
    is_item = any(isinstance(block, dict) and block.get("type") in items for block in content)
    blocks = _ITEMS if is_item else _CHAT
    cleared = list(content)
    for each in found:
        assert each.part is not None
        cleared[each.part] = blocks.placeholder(content[each.part])
    return cleared
