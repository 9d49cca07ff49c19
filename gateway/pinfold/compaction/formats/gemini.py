"""Gemini contents: `functionCall` parts of the model, `functionResponse` parts of the user.

Members may be spelled in camel case (the wire) or in snake case (dumps of the Python SDK).
"""

from collections.abc import Sequence
from typing import Any

from pinfold.compaction.scan import Found, Scan, media_placeholder, tag_in
from pinfold_protocol.compaction import CLEARED_TEXT

_RESPONSE = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_MIME = ("mimeType", "mime_type")


def read(contents: Sequence[Any], scan: Scan) -> None:
    """Tell what is in a list of contents."""
    for scan.message, content in enumerate(contents):
        parts = content.get("parts") if isinstance(content, dict) else ...
        if isinstance(parts, list):
            role = content.get("role")
            read_parts = _READ_BY_ROLE.get(role) if isinstance(role, str) else None
            (read_parts or _read_others)(parts, scan)
        elif parts is not None:
            scan.leave(None, "not a content with a list of parts")


def _read_model(parts: list[Any], scan: Scan) -> None:
    for part in parts:
        if isinstance(part, dict):
            call = part.get("functionCall") or part.get("function_call")
            if isinstance(call, dict):
                scan.call(call.get("id"), call.get("name"), call.get("args"))


def _read_user(parts: list[Any], scan: Scan) -> None:
    for index, part in enumerate(parts):
        if not isinstance(part, dict):
            scan.leave(index, "a part that is no object")
            continue
        response = part.get("functionResponse") or part.get("function_response")
        if response is not None:
            _read_response(index, part, response, scan)
        elif (media := _one(part, _MEDIA)) is not None:
            scan.media(index, _one(media, _MIME) if isinstance(media, dict) else None)


def _read_others(parts: list[Any], scan: Scan) -> None:
    if any(isinstance(part, dict) and _one(part, _RESPONSE) for part in parts):
        scan.leave(None, "a function response whose role is not user")


_READ_BY_ROLE = {"model": _read_model, "user": _read_user}


def _read_response(index: int, part: dict[str, Any], response: Any, scan: Scan) -> None:
    if not isinstance(response, dict) or not isinstance(response.get("name"), str):
        scan.leave(index, "a function response without a name")
        return
    said = response.get("response")
    output, error = None, False
    if isinstance(said, dict):
        output, error = said.get("output"), "error" in said
    media = _nested(response["parts"]) if "parts" in response else 0
    if not isinstance(output, str):
        output = None
        if not (error or media):
            scan.leave(index, "a function response without an output text")
    tag = tag_in(part, response, said)
    scan.result(index, response.get("id"), output, response["name"], error, media, tag)


def _nested(parts: Any) -> int:
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
    if found.kind == "media":
        return {"text": media_placeholder(found.mime)}
    key = _RESPONSE[not part.get(_RESPONSE[0])]
    response = dict(part[key])
    response.pop("parts", None)
    if found.kind != "tool":
        return {key: response}
    response["response"] = {"output": CLEARED_TEXT}
    return {key: response}
