"""The contract for people who look things up: pages made from the schema. `python -m
pinfold_protocol.reference`.

`docs/reference/protocol.md` is its output, and a test keeps it in step. What the members mean
together is told by `protocol/README.md`.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from pinfold_protocol.catalogue import RPC_ERRORS, TOOL_ERRORS, Kind
from pinfold_protocol.schema import schema

Json = dict[str, Any]
_HEAD = """\
# The contract, member by member

For looking up the name and the type of a member. What the members mean together, and what is
answered when, is told by [the contract in words](../../protocol/README.md); for programs the same
is in [schema.json](../../protocol/schema.json). Made from the types by `make generated`: not to be
edited.

Members are `camelCase` on the wire; names and arguments of tools are `snake_case`, because models
see those. A member with a `?` may be absent, or null where its type says so.
"""
_ERRORS = "../errors.md"
_DIRECTIONS = {
    "host-to-gateway": "## What a host sends",
    "gateway-to-host": "## What the gateway sends",
}


def page(contract: Json) -> str:
    """The whole page of Markdown, made from the contract as `schema.schema` gives it."""
    parts = [_HEAD, *_methods(contract), *_beside(contract), *_errors(contract), *_types(contract)]
    return "\n".join(parts)


def _methods(contract: Json) -> Iterator[str]:
    for direction, heading in _DIRECTIONS.items():
        yield f"{heading}\n"
        for name, method in contract["methods"].items():
            if method["direction"] == direction:
                yield _method(name, method, contract)


def _method(name: str, method: Json, contract: Json) -> str:
    wanted = _referred(method["params"])
    params = contract["$defs"][wanted]
    shared = [each["params"] for each in contract["methods"].values()].count(method["params"]) > 1
    told = "" if shared else _told(params, without=name)
    result = method["result"]
    answer = "A notification: no answer." if result is None else f"Result: {_type(result)}."
    return f"### `{name}`\n\n{told}{_members(params)}\n{answer}\n"


def _beside(contract: Json) -> Iterator[str]:
    """What is not a method: options of a connection, tools, and what stands in `_meta`."""
    options = contract["initializationOptions"]["pinfold"]
    yield "## Options of a connection\n"
    yield f"`initializationOptions.pinfold` of `initialize` is {_type(options)}.\n"
    yield "## Tools\n"
    rows = (
        (f"`{name}`", _type(tool["arguments"]), _type(tool["details"]))
        for name, tool in contract["tools"].items()
    )
    yield _table(("tool", "`arguments`", '`_meta["pinfold/details"]` of a success'), rows)
    yield f"A read of an image has {_type(contract['imageDetails'])} instead.\n"
    for key, tag in contract["meta"].items():
        yield f'`_meta["{key}"]`, on a read of managed memory, is {_type(tag)}.\n'


def _errors(contract: Json) -> Iterator[str]:
    yield "## Errors\n"
    yield (
        "`error.code` of an answer that is for the host; "
        "[section 1](../../protocol/README.md#1-transport-and-lifecycle) has the rules:\n"
    )
    yield _table(("code", "what it means"), map(_kind, RPC_ERRORS.items()))
    yield (
        "What a model should read is a result with `isError: true` instead. "
        f'`_meta["pinfold/details"].error` is then {_type(contract["errorDetails"])}, '
        "and its `kind` one of:\n"
    )
    yield _table(("kind", "what it means"), map(_kind, TOOL_ERRORS.items()))


def _kind(row: tuple[object, Kind]) -> tuple[str, str]:
    """A code or a kind, with a link to what to do about it."""
    key, kind = row
    told = kind.means.replace("](#", f"]({_ERRORS}#")  # it is written for that page
    return f"[`{key}`]({_ERRORS}#{kind.name})", told


def _types(contract: Json) -> Iterator[str]:
    shown_above = {_referred(method["params"]) for method in contract["methods"].values()}
    yield "## Types\n"
    for name, definition in contract["$defs"].items():
        if name not in shown_above or name in _used(contract):
            further = "\nFurther members may stand beside these.\n"
            more = further if definition["additionalProperties"] else ""
            yield f"### {name}\n\n{_told(definition)}{_members(definition)}{more}"


def _used(contract: Json) -> set[str]:
    """Definitions that something else than a method's params refers to."""
    others = [contract["$defs"], contract["tools"], contract["meta"]]
    others += [method["result"] for method in contract["methods"].values()]
    return set(_references(others))


def _references(found: Any) -> Iterator[str]:
    if isinstance(found, list):
        for each in found:
            yield from _references(each)
    elif isinstance(found, dict):
        if "$ref" in found:
            yield _referred(found)
        yield from _references(list(found.values()))


def _told(definition: Json, without: str = "") -> str:
    """What the docstring says; `without` the method's name, which is the heading already."""
    told: str = definition["description"]
    lead = f"`{without}`"
    if without and told.startswith(lead):
        told = told.removeprefix(lead).lstrip(".: ")
        told = told[:1].upper() + told[1:]
    return f"{told}\n\n" if told else ""


def _members(definition: Json) -> str:
    required = definition["required"]
    rows = [
        (f"`{name}{'' if name in required else '?'}`", _type(member), _default(member))
        for name, member in definition["properties"].items()
    ]
    if not rows:
        return "No members.\n"
    has_defaults = any(default for _, _, default in rows)
    head = ("member", "type", "default")
    width = 3 if has_defaults else 2
    return _table(head[:width], (row[:width] for row in rows))


def _default(member: Json) -> str:
    return f"`{json.dumps(member['default'])}`" if "default" in member else ""


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _referred(found: Json) -> str:
    return str(found["$ref"].rpartition("/")[2])


_PLAIN = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


def _type(found: Json) -> str:
    """A type in words, with links to those that have a heading of their own."""
    if "$ref" in found:
        name = _referred(found)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in found:
        return " or ".join(_type(each) for each in found["anyOf"])
    if "enum" in found:
        return ", ".join(f"`{json.dumps(each)}`" for each in found["enum"])
    kind = found.get("type")
    if kind == "array":
        items = _type(found["items"])
        return f"list of ({items})" if " or " in items else f"list of {items}"
    if kind == "object":
        values = found.get("additionalProperties")
        return f"object, each value {_type(values)}" if values else "object"
    return "anything" if kind is None else _PLAIN.get(kind, str(kind))


def main() -> None:
    """Print it."""
    sys.stdout.write(page(schema()))


if __name__ == "__main__":
    main()
