"""The contract: its schema is current, its tables agree, and it needs nothing of the gateway."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pinfold.doors.native import _HANDLERS
from pinfold.doors.told import PROTECTING
from pinfold.tools.registry import TOOLS
from pinfold_protocol import schema, typescript
from pinfold_protocol.convert import structure, unstructure, wire_names
from pinfold_protocol.errors import TOOL_ERROR_KINDS, RpcError
from pinfold_protocol.methods import METHODS
from pinfold_protocol.session import PROFILES, Scope, ScopePatch, SessionOpenParams

PROTOCOL = Path(__file__).parents[2] / "protocol"


def test_schema_json_is_current() -> None:
    assert (PROTOCOL / "schema.json").read_text("utf-8") == schema.text(), (
        "stale: run `make generated`"
    )


def test_what_vs_code_has_of_the_schema_is_current() -> None:
    told = PROTOCOL.parent / "editors/vscode/src/protocol.ts"
    contract = json.loads((PROTOCOL / "schema.json").read_text("utf-8"))
    assert told.read_text("utf-8") == typescript.declarations(contract), (
        "stale: run `make generated`"
    )


def test_every_kind_of_type_has_its_declaration() -> None:
    nullable: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}
    contract = {
        "protocolVersion": 7,
        "methods": {
            "a/b": {"direction": "host-to-gateway", "params": {"$ref": "#/$defs/A"}, "result": None}
        },
        "$defs": {
            "A": {
                "description": "What */ it is.",
                "properties": {
                    "one": {"type": "array", "items": nullable},
                    "my-two": {"enum": ["x", 1]},
                    "three": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "four": {},
                },
                "required": ["one"],
            }
        },
    }
    told = typescript.declarations(contract)
    for line in (
        "export const PROTOCOL_VERSION = 7;",
        "/** What * / it is. */",
        "  one: (A | null)[];",
        '  "my-two"?: "x" | 1;',
        "  three?: Record<string, number>;",
        "  four?: unknown;",
        '  "a/b": { params: A; result: undefined };',
    ):
        assert line in told.splitlines()


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    text = schema.text()
    for name in re.findall(r'"#/\$defs/(\w+)"', text):
        assert schema.schema()["$defs"][name]["properties"] is not None


def test_every_method_has_a_handler_and_no_other_has() -> None:
    assert list(_HANDLERS) == [
        name for name, method in METHODS.items() if method.direction == "host-to-gateway"
    ]


def test_tools_of_the_schema_are_the_registry_s() -> None:
    assert set(schema.schema()["tools"]) == set(TOOLS)
    for tool in TOOLS.values():
        fields = msgspec.structs.fields(tool.arguments)
        assert set(wire_names(tool.arguments).values()) == set(tool.properties)
        needed = {f.name for f in fields if f.default is msgspec.NODEFAULT}
        assert needed == set(tool.required)


def test_a_patch_has_the_members_of_a_scope() -> None:
    assert wire_names(Scope) == wire_names(ScopePatch)


def test_the_contract_in_words_names_every_method_and_error_kind() -> None:
    words = (PROTOCOL / "README.md").read_text("utf-8")
    for name in (*METHODS, *TOOL_ERROR_KINDS, *PROFILES, *TOOLS):
        assert f"`{name}" in words or f'"{name}"' in words, name


def test_the_protocol_package_imports_msgspec_only() -> None:
    program = (
        "import sys, pkgutil, pinfold_protocol\n"
        "for module in pkgutil.iter_modules(pinfold_protocol.__path__):\n"
        "    __import__('pinfold_protocol.' + module.name)\n"
        "print('\\n'.join(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    top = {name.split(".")[0] for name in result.stdout.split()}
    foreign = {name for name in top if name not in sys.stdlib_module_names and name[0] != "_"}
    assert foreign - {"typing_extensions"} == {"pinfold_protocol", "msgspec"}


@pytest.mark.parametrize("method", _HANDLERS)
def test_unknown_members_are_refused_in_the_params_of_every_method(method: str) -> None:
    with pytest.raises(RpcError) as caught:
        structure({"sessionId": "s", "name": "x", "profile": "main", "projectRoot": "/", "zzz": 1}
                  if method != "session/list" else {"zzz": 1}, METHODS[method].params)  # fmt: skip
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"profile": "main"}, "projectRoot"),
        ({"profile": "main", "projectRoot": "/", "scope": {"hardLinks": "no"}}, "scope.hardLinks"),
        ({"profile": "main", "projectRoot": "/", "memory": {"teamRoot": 5}}, "memory.teamRoot"),
        ([], "at"),
    ],
)
def test_what_is_wrong_is_named(value: Any, path: str) -> None:
    with pytest.raises(RpcError) as caught:
        structure(value, SessionOpenParams, "at" if path == "at" else "")
    assert caught.value.data is not None
    assert caught.value.data["path"] == path


@pytest.mark.parametrize("profile", PROFILES)
def test_what_goes_out_comes_in(profile: Any) -> None:
    scope = PROFILES[profile]
    assert structure(json.loads(json.dumps(unstructure(scope))), Scope) == scope


def test_what_mcp_says_at_once_agrees_with_the_profiles() -> None:
    assert tuple(name for name, scope in PROFILES.items() if scope.protect_pinned) == PROTECTING
