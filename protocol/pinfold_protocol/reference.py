"""The contract for people, member by member: Markdown made from the schema. `python -m
pinfold_protocol.reference`.

`docs/reference/protocol.md` is its output, and a test keeps it in step. What the members mean
together stands in `protocol/README.md`, which is written by hand.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from pinfold_protocol import errors
from pinfold_protocol.schema import schema

Json = dict[str, Any]
_HEAD = """\
<!-- Made by `make generated`: do not edit. -->

# The contract, member by member

Every method and type of version {version}, as the code has it; a member that is not listed is refused. What it all means is in
[the contract](../../protocol/README.md), and the same for programs in [schema.json](../../protocol/schema.json).
"""
_DIRECTIONS = {"host-to-gateway": "What a host sends", "gateway-to-host": "What the gateway sends"}
# Code → when it is answered, in few words. Section 1 of the contract has the exact ones.
CODES = {
    errors.PARSE_ERROR: "what came is not JSON, is nested too deeply, or has no valid header",
    errors.INVALID_REQUEST: "not a request object, a batch, or not now",
    errors.METHOD_NOT_FOUND: "there is no such method",
    errors.INVALID_PARAMS: "wrong params; `data` is `{path, problem}`",
    errors.INTERNAL_ERROR: "a bug; `data` is `{errorId}`, and stderr has the rest",
    errors.SERVER_NOT_INITIALIZED: "a request before `initialize`",
    errors.REQUEST_CANCELLED: "cancelled before it took effect",
    errors.REQUEST_FAILED: "a language feature that was understood and cannot be done",
    errors.UNKNOWN_SESSION: "there is no such session; `data` is `{sessionId}`",
    errors.MESSAGE_TOO_LARGE: "a message above `maxMessageBytes`",
}


def page(contract: Json) -> str:
    """The whole page."""
    parts = [_HEAD.format(version=contract["protocolVersion"])]
    parts += [_methods(contract["methods"], *each) for each in _DIRECTIONS.items()]
    parts += [_options(contract), _tools(contract["tools"]), _meta(contract), _errors(contract)]
    parts += ["## Types\n", *(_definition(*each) for each in contract["$defs"].items())]
    return "\n".join(parts)


def _methods(methods: Json, direction: str, title: str) -> str:
    rows = (
        (f"`{name}`", _type(each["params"]), _type(each["result"]) if each["result"] else "none")
        for name, each in methods.items()
        if each["direction"] == direction
    )
    told = "A method without a result is a notification."
    return f"## {title}\n\n{told}\n\n{_table(('method', 'params', 'result'), rows)}"


def _options(contract: Json) -> str:
    wanted = _type(contract["initializationOptions"]["pinfold"])
    return f"## What `initialize` may carry\n\n`initializationOptions.pinfold`: {wanted}.\n"


def _tools(tools: Json) -> str:
    rows = (
        (f"`{name}`", _type(each["arguments"]), _type(each["details"]))
        for name, each in tools.items()
    )
    head = ("tool", "arguments", "`pinfold/details` on success")
    return f"## Tools\n\n{_table(head, rows)}"


def _meta(contract: Json) -> str:
    rows = [(f"`{name}`", _type(each)) for name, each in contract["meta"].items()]
    rows.append(("`pinfold/details`, of an image", _type(contract["imageDetails"])))
    rows.append(("`pinfold/details.error`, of a failure", _type(contract["errorDetails"])))
    return f"## Members of `_meta`\n\n{_table(('key', 'type'), rows)}"


def _errors(contract: Json) -> str:
    codes = _table(("code", "when"), ((f"`{code}`", when) for code, when in CODES.items()))
    kinds = ", ".join(f"`{kind}`" for kind in contract["errorDetails"]["kinds"])
    return (
        f"## Errors\n\nProtocol errors, for the host:\n\n{codes}\n"
        f"Kinds of a tool's error, which a model should read: {kinds}.\n"
    )


def _definition(name: str, definition: Json) -> str:
    told = f"{definition['description']}\n\n" if definition["description"] else ""
    members = definition["properties"]
    if not members:
        return f"### {name}\n\n{told}No members.\n"
    rows = (
        (f"`{member}`", _type(each), "" if member in definition["required"] else "optional")
        for member, each in members.items()
    )
    further = "\nFurther members may stand beside them.\n" if _is_open(definition) else ""
    return f"### {name}\n\n{told}{_table(('member', 'type', ''), rows)}{further}"


def _is_open(definition: Json) -> bool:
    return bool(definition["additionalProperties"])


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines: Iterator[tuple[str, ...]] = iter([head, ("---",) * len(head), *rows])
    return "".join(f"| {' | '.join(cells)} |\n".replace("  |", " |") for cells in lines)


def _type(found: Json) -> str:
    """A type in words, with a link where it has a section of its own."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in found:
        return " or ".join(_type(each) for each in found["anyOf"])
    if "enum" in found:
        return " or ".join(f"`{json.dumps(each)}`" for each in found["enum"])
    kind = found.get("type")
    if kind == "array":
        return f"list of {_grouped(found['items'])}"
    if kind == "object":
        values = found.get("additionalProperties")
        return f"object of {_grouped(values)}" if values else "object"
    return "anything" if kind is None else str(kind)


def _grouped(found: Json) -> str:
    told = _type(found)
    return f"({told})" if " or " in told else told


def main() -> None:
    """Print it."""
    sys.stdout.write(page(schema()))


if __name__ == "__main__":
    main()
