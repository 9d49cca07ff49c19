"""The contract for TypeScript: declarations made from the schema. `python -m
pinfold_protocol.typescript`.

`editors/vscode/src/protocol.ts` is its output, and a test keeps it in step.
"""

import json
import sys
from typing import Any

from pinfold_protocol.schema import schema

Json = dict[str, Any]
_HEAD = """\
// The pinfold wire contract. Made from protocol/schema.json by `make generated`: do not edit.
"""
_DIRECTIONS = {"host-to-gateway": "Requests", "gateway-to-host": "Sent"}


def declarations(contract: Json) -> str:
    """The whole module: an interface for each definition, a table of methods for each direction."""
    parts = [_HEAD, f"export const PROTOCOL_VERSION = {contract['protocolVersion']};\n"]
    parts += [_interface(name, each) for name, each in contract["$defs"].items()]
    parts += [_table(contract["methods"], *each) for each in _DIRECTIONS.items()]
    return "\n".join(parts)


def _interface(name: str, definition: Json) -> str:
    required = definition["required"]
    members = [
        f"  {_key(member)}{'' if member in required else '?'}: {_type(each)};\n"
        for member, each in definition["properties"].items()
    ]
    told = definition["description"].replace("*/", "* /")
    head = f"/** {told} */\n" if told else ""
    if not members:
        return f"{head}export type {name} = Record<string, never>;\n"
    return f"{head}export interface {name} {{\n{''.join(members)}}}\n"


def _table(methods: Json, direction: str, name: str) -> str:
    """Method names to their params and results; a notification's result is undefined."""
    rows = [
        f"  {json.dumps(method)}: {{ params: {_type(each['params'])}; "
        f"result: {_type(each['result']) if each['result'] else 'undefined'} }};\n"
        for method, each in methods.items()
        if each["direction"] == direction
    ]
    return f"export interface {name} {{\n{''.join(rows)}}}\n"


_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def _type(found: Json) -> str:
    if "$ref" in found:
        return str(found["$ref"].rpartition("/")[2])
    if "anyOf" in found:
        return " | ".join(_type(each) for each in found["anyOf"])
    if "enum" in found:
        return " | ".join(json.dumps(each) for each in found["enum"])
    kind = found.get("type")
    if kind == "array":
        return f"({_type(found['items'])})[]"
    if kind == "object":
        return f"Record<string, {_type(found.get('additionalProperties', {}))}>"
    return "unknown" if kind is None else _PLAIN[kind]


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def main() -> None:
    """Print it."""
    sys.stdout.write(declarations(schema()))


if __name__ == "__main__":
    main()
