"""Gemini contents: `functionCall` parts of the model, `functionResponse` parts of the user.

Members may be spelled in camel case (the wire) or in snake case (dumps of the Python SDK).
"""

from collections.abc import Sequence
from typing import Any

from pinfold.compaction.scan import Found, Scan, media_placeholder, tag_in
from pinfold_protocol.compaction import CLEARED_TEXT

_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_MIME = ("mimeType", "mime_type")


def read(contents: Sequence[Any], scan: Scan) -> None:
    """Tell what is in a list of contents."""
    for index, content in enumerate(contents):
        scan.message = index
        parts = content.get("parts") if isinstance(content, dict) else ...
        if parts is None:
            continue
        if not isinstance(parts, list):
            scan.leave(None, "not a content with a list of parts")
            continue
        role = content.get("role")
        if role == "model":
            _read_model(parts, scan)
        elif role == "user":
            _read_user(parts, scan)
        elif any(isinstance(part, dict) and _one(part, _RESPONSE) for part in parts):
            scan.leave(None, "a function response whose role is not user")


def _read_model(parts: list[Any], scan: Scan) -> None:
    for part in parts:
        call = _one(part, _CALL) if isinstance(part, dict) else None
        if isinstance(call, dict):
            scan.call(call.get("id"), call.get("name"), call.get("args"))


def _read_user(parts: list[Any], scan: Scan) -> None:
    for index, part in enumerate(parts):
        if not isinstance(part, dict):
            scan.leave(index, "a part that is no object")
        elif (response := _one(part, _RESPONSE)) is not None:
            _read_response(index, part, response, scan)
        elif (media := _one(part, _MEDIA)) is not None:
            scan.media(index, _one(media, _MIME) if isinstance(media, dict) else None)


def _read_response(index: int, part: dict[str, Any], response: Any, scan: Scan) -> None:
    name = response.get("name") if isinstance(response, dict) else None
    if not isinstance(name, str):
        scan.leave(index, "a function response without a name")
        return
    said = response.get("response")
    output = said.get("output") if isinstance(said, dict) else None
    error = isinstance(said, dict) and "error" in said
    media = _nested(response)
    if not isinstance(output, str):
        if not (error or media):
            scan.leave(index, "a function response without an output text")
        output = None
    scan.result(
        index,
        response.get("id"),
        output,
        name=name,
        error=error,
        media=media,
        tag=tag_in(part, response, said, said.get("result") if isinstance(said, dict) else None),
    )


def _nested(response: dict[str, Any]) -> int:
    parts = response.get("parts")
    if not isinstance(parts, list):
        return 0
    return sum(isinstance(each, dict) and _one(each, _MEDIA) is not None for each in parts)


def _one(holder: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first member that is there and not null."""
    for name in names:
        if (value := holder.get(name)) is not None:
            return value
    return None


def clear(content: dict[str, Any], found: Sequence[Found]) -> dict[str, Any]:
    """A copy of a content with these parts cleared."""
    parts = list(content["parts"])
    for each in found:
        assert each.part is not None
        parts[each.part] = _cleared(parts[each.part], each)
    return {**content, "parts": parts}


def _cleared(part: dict[str, Any], found: Found) -> dict[str, Any]:
    kind = found.record.kind
    if kind == "media":
        return {"text": media_placeholder(found.mime)}
    key = next(name for name in _RESPONSE if part.get(name) is not None)
    response = {name: value for name, value in part[key].items() if name != "parts"}
    if kind == "tool":
        return {key: response | {"response": {"output": CLEARED_TEXT}}}
    return {**part, key: response}
