"""Memory in MCP's words: documents are resources, what each profile asks of a model is a prompt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pinfold_protocol.errors import RpcError, invalid_params, short

if TYPE_CHECKING:
    from pinfold.memory.roots import RootPath
    from pinfold_protocol.memory import MemoryDocument

_MARKDOWN = "text/markdown"
_NOT_FOUND = -32002
_MOST_SUBSCRIPTIONS = 1000
_ALL_LINES = 2**31 - 1


def as_resource(document: "MemoryDocument") -> dict[str, Any]:
    """One document. Hosts show a title and a description, so what is pinned says so there."""
    from pinfold.paths.uri import to_uri

    pinned = document.pinned
    return {
        "uri": to_uri(document.path),
        "name": document.relative_path,
        "title": f"{document.title} (pinned)" if pinned else document.title,
        "description": document.description,
        "mimeType": _MARKDOWN,
        "size": document.size_bytes,
        "annotations": {
            "audience": ["assistant"],
            "priority": 1 if pinned else 0.5,
            "lastModified": document.modified,
        },
        "_meta": {
            "pinfold/document": {
                "kind": document.kind,
                "type": document.type,
                "pinned": pinned,
            }
        },
    }


def uri_param(params: dict[str, Any]) -> tuple[str, str]:
    """The `uri` of params, and its path. Raises RpcError (-32602)."""
    from pinfold.paths.uri import from_uri

    uri = params.get("uri")
    if not isinstance(uri, str):
        raise invalid_params("uri", "must be a string")
    return uri, from_uri(uri, "uri")


def reading(path: str) -> dict[str, Any]:
    """The arguments of `read_memory` for a whole document."""
    return {"file_path": path, "limit": _ALL_LINES}


def as_contents(uri: str, result: dict[str, Any], *, stateless: bool) -> dict[str, Any]:
    """The result of `read_memory` as that of `resources/read`.

    Raises RpcError: a resource has no way to say that it is a failure.
    """
    if result["isError"]:
        error = result["_meta"]["pinfold/details"]["error"]
        raise failure(uri, error["kind"], error["message"], stateless=stateless)
    item = result["content"][0]
    if item["type"] == "image":
        content = {"uri": uri, "mimeType": item["mimeType"], "blob": item["data"]}
    else:
        content = {"uri": uri, "mimeType": _MARKDOWN, "text": item["text"]}
    return {"contents": [content], "_meta": result["_meta"]}


def failure(uri: str, kind: str, message: str, *, stateless: bool) -> RpcError:
    """Why a resource is not to be had, by the kind of a tool's error."""
    code = -32602 if stateless or kind != "not-found" else _NOT_FOUND
    return RpcError(code, message, {"uri": short(uri), "kind": kind})


class Subscriptions:
    """Which documents a client wants to hear of: changes are told by the real path that a document
    had when it was asked for, and to the client by the URI that it gave."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}

    def add(self, uri: str, real: str) -> dict[str, Any]:
        """Tell of changes of this document. Raises RpcError (-32602) beyond a bound."""
        if len(self._paths) >= _MOST_SUBSCRIPTIONS:
            raise invalid_params("uri", f"there are {_MOST_SUBSCRIPTIONS} subscriptions already")
        self._paths[uri] = real
        return {}

    def remove(self, uri: str) -> dict[str, Any]:
        """Not any more."""
        self._paths.pop(uri, None)
        return {}

    def uri(self, real: str) -> str | None:
        """The URI under which a document was asked for."""
        return next((uri for uri, path in list(self._paths.items()) if path == real), None)


# Prompts

_ABOUT = {
    "main": "for the agent that a person talks to",
    "extraction": "for taking notes after a conversation",
    "dream": "for consolidating notes",
    "remember": "for a note that somebody asked for",
}


def prompts() -> list[dict[str, Any]]:
    """One for each profile."""
    return [
        {"name": _name(profile), "description": f"What holds for memory {about}.", "arguments": []}
        for profile, about in _ABOUT.items()
    ]


def prompt(name: Any, roots: "Sequence[RootPath]") -> dict[str, Any]:
    """One prompt, for a session with these roots. Raises RpcError (-32602) for a name that there is
    not."""
    from pinfold.memory.prompts import prompt_rules
    from pinfold_protocol.session import PROFILES

    for profile, scope in PROFILES.items():
        if name == _name(profile):
            rules = prompt_rules(profile, scope)
            rules = rules or ["Memory has no pinned documents that are protected here."]
            where = ", ".join(f"{root.path} ({root.kind})" for root in roots)
            text = "\n".join([*rules, f"Memory is in {where}; MEMORY.md in it is its index."])
            message = {"role": "user", "content": {"type": "text", "text": text}}
            about = f"What holds for memory {_ABOUT[profile]}."
            return {"description": about, "messages": [message]}
    names = ", ".join(map(_name, _ABOUT))
    raise invalid_params("name", f"must be one of {names}")


def _name(profile: str) -> str:
    return f"memory-{profile}"
