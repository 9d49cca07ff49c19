"""Members that were given twice, where one of them would decide in silence what is protected.

The decoder takes the last. So the few messages that open and configure are read once more, by the
standard library's scanner, which tells of all members; calls are not, for speed.
"""

from typing import Any

from pinfold.doors.scanning import loads
from pinfold_protocol.errors import invalid_params

_WHERE: dict[str, tuple[str, ...]] = {
    "initialize": ("params", "initializationOptions", "pinfold"),
    "session/open": ("params",),
    "session/configure": ("params",),
    "turn/begin": ("params",),
}
"""By method: the names that lead to what is ours. Other members are others' business."""
METHODS = frozenset(_WHERE)
_PROBLEM = "is given twice; say it once"


class _Twice(dict[str, Any]):
    """An object in which `name` was given more than once."""

    name = ""


def require_once(body: bytes, method: str) -> None:
    """Raise RpcError (-32602) that names a member which was given twice in a message of this
    method, a JSON text that has been decoded before."""
    try:
        value = loads(body.decode(), pairs=_object)
    except (ValueError, RecursionError):  # what is so odd is refused by its types
        return
    way = list(_WHERE[method])
    at: list[str] = []
    while way and isinstance(value, dict):
        name = way.pop(0)
        at.append(name)
        if isinstance(value, _Twice) and value.name == name:
            raise invalid_params(_path(at), _PROBLEM)
        value = value.get(name)
    if (found := _first(value, at)) is not None:
        raise invalid_params(_path(found), _PROBLEM)


def _path(at: list[str]) -> str:
    """In dotted form, from the params on."""
    return ".".join(at[1:]).replace(".[", "[")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    twice, seen = _Twice(found), set[str]()
    for name, _ in pairs:
        if name in seen:
            twice.name = name
            break
        seen.add(name)
    return twice


def _first(value: Any, at: list[str]) -> list[str] | None:
    """The way to the first such member in a value; what stands below `_meta` is others'."""
    if isinstance(value, _Twice):
        return [*at, value.name]
    inner: Any = ()
    if isinstance(value, dict):
        inner = ((name, each) for name, each in value.items() if name != "_meta")
    elif isinstance(value, list):
        inner = ((f"[{index}]", each) for index, each in enumerate(value))
    for name, each in inner:
        if (found := _first(each, [*at, name])) is not None:
            return found
    return None
