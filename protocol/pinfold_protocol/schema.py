"""The contract for programs: JSON Schema made from the types. `python -m pinfold_protocol.schema`.

`protocol/schema.json` is its output, and a test keeps it in step.
"""

import json
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from pinfold_protocol import PROTOCOL_VERSION, tools
from pinfold_protocol.catalogue import DENIALS, RPC_ERRORS, TOOL_ERRORS, Kind
from pinfold_protocol.convert import wire_names
from pinfold_protocol.errors import TOOL_ERROR_KINDS
from pinfold_protocol.methods import METHODS
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag
from pinfold_protocol.session import ConnectionOptions

Json = dict[str, Any]
_PLAIN: dict[Any, Json] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}
_TOOL_ARGUMENTS = {
    "read_file": tools.ReadFileArguments,
    "read_memory": tools.ReadFileArguments,
    "write_file": tools.WriteFileArguments,
    "edit": tools.EditArguments,
}
_TOOL_DETAILS = {
    "read_file": tools.ReadDetails,
    "read_memory": tools.ReadDetails,
    "write_file": tools.WriteDetails,
    "edit": tools.EditDetails,
}


def _told(cls: type[Any]) -> str:
    """A class's docstring in one line, its members by the names that they have on the wire."""
    told = " ".join((cls.__doc__ or "").split())
    for name, wire in wire_names(cls).items():
        told = told.replace(f"`{name}`", f"`{wire}`")
    return told


class _Definitions:
    """Schemas of classes, collected by name while they are referred to."""

    def __init__(self) -> None:
        self.found: dict[str, Json] = {}

    def of(self, wanted: Any) -> Json:
        """The schema of any type that the contract uses."""
        if wanted in _PLAIN:
            return dict(_PLAIN[wanted])
        if wanted is Any:
            return {}
        origin, arguments = get_origin(wanted), get_args(wanted)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is list:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is dict:
            values = self.of(arguments[1])
            return {"type": "object"} | ({"additionalProperties": values} if values else {})
        if origin in (types.UnionType, typing.Union):
            return {"anyOf": [self.of(each) for each in arguments]}
        return self._reference(wanted)

    def _reference(self, cls: type[Any]) -> Json:
        if cls.__name__ not in self.found:
            self.found[cls.__name__] = {}  # types may refer to one another
            self.found[cls.__name__] = self._class(cls)
        return {"$ref": f"#/$defs/{cls.__name__}"}

    def _class(self, cls: type[Any]) -> Json:
        hints = typing.get_type_hints(cls)
        properties: Json = {}
        required: list[str] = []
        fields = {field.name: field for field in msgspec.structs.fields(cls)}
        for name, wire in wire_names(cls).items():
            default = default_of(fields[name])
            given = {} if default in (None, msgspec.NODEFAULT) else {"default": default}
            properties[wire] = self.of(hints[name]) | given
            if default is msgspec.NODEFAULT:
                required.append(wire)
        return {
            "description": _told(cls),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": getattr(cls, "further_in", None) is not None,
        }


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """What an absent member counts as; msgspec.NODEFAULT where it may not be absent."""
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def schema() -> Json:
    """The whole contract. `methods` maps each name to the schemas of its params and its result."""
    definitions = _Definitions()
    methods = {
        name: {
            "direction": method.direction,
            "params": definitions.of(method.params),
            "result": None if method.result is None else definitions.of(method.result),
        }
        for name, method in METHODS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The pinfold wire contract",
        "protocolVersion": PROTOCOL_VERSION,
        "methods": methods,
        "initializationOptions": {"pinfold": definitions.of(ConnectionOptions)},
        "tools": {
            name: {
                "arguments": definitions.of(_TOOL_ARGUMENTS[name]),
                "details": definitions.of(_TOOL_DETAILS[name]),
            }
            for name in _TOOL_ARGUMENTS
        },
        "errorDetails": definitions.of(tools.ErrorDetails) | {"kinds": list(TOOL_ERROR_KINDS)},
        "errors": {
            "codes": _described(RPC_ERRORS),
            "kinds": _described(TOOL_ERRORS),
            "denials": _described(DENIALS),
        },
        "imageDetails": definitions.of(tools.ImageDetails),
        "meta": {RETENTION_KEY: definitions.of(RetentionTag)},
        "$defs": dict(sorted(definitions.found.items())),
    }


def _described(kinds: Mapping[Any, Kind]) -> Json:
    """What each means, for programs; the anchor is one of docs/errors.md."""
    return {
        str(key): {"anchor": kind.name, "means": kind.means, "then": kind.then}
        for key, kind in kinds.items()
    }


def text() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
