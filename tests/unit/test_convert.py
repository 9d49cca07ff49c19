"""JSON and the types of the contract: what msgspec converts is what our own rules say."""

import math
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pinfold_protocol.compaction
import pinfold_protocol.memory
import pinfold_protocol.session
from pinfold_protocol import convert, decision, retention, tools
from pinfold_protocol.convert import structure, unstructure, wire_names
from pinfold_protocol.errors import RpcError
from pinfold_protocol.tools import ImageContent, TextContent, ToolResult
from pinfold_protocol.wire import Arguments, Wire

MODULES = (
    decision,
    retention,
    tools,
    pinfold_protocol.compaction,
    pinfold_protocol.memory,
    pinfold_protocol.session,
)
TYPES = sorted(
    {
        found
        for module in MODULES
        for found in vars(module).values()
        if convert.is_struct(found) and found not in (Wire, Arguments)
    },
    key=lambda cls: cls.__name__,
)
PLAIN = [cls for cls in TYPES if convert._is_plain(cls)]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "a", "deny", "project", "*", "text", "force", "\ud800"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "kind", "type", "text", "path"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def told(value: Any, cls: Any) -> tuple[str, Any]:
    """What our own rules make of a value."""
    try:
        return "built", convert._reader(cls)(value)
    except convert._Problem as problem:
        return "refused", (problem.path, problem.words)


def fitting(hint: Any) -> st.SearchStrategy[Any]:
    """JSON for a type, mostly."""
    if convert.is_struct(hint):
        return objects(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (str, int, float, bool, type(None)):
        of = {str: st.text(max_size=3), int: st.integers(), float: st.floats(-9, 9)}
        return st.one_of(of.get(hint, st.booleans() if hint is bool else st.none()), SCALARS)
    if origin is list:
        return st.lists(fitting(arguments[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(st.text(max_size=2), fitting(arguments[1]), max_size=2)
    if hint is Any:
        return JSON
    if arguments and all(type(each) is str for each in arguments):
        return st.sampled_from(arguments) | SCALARS
    return st.one_of([fitting(each) for each in arguments] or [JSON])


def objects(cls: Any) -> st.SearchStrategy[Any]:
    """Objects with the members of a type, some of them missing, and some that are none."""
    hints = get_type_hints(cls)
    known = {wire: fitting(hints[name]) for name, wire in wire_names(cls).items()}
    more = st.dictionaries(st.sampled_from(["zzz", "path", "_meta"]), JSON, max_size=1)
    return st.one_of(
        JSON,
        st.fixed_dictionaries({}, optional=known),
        st.tuples(st.fixed_dictionaries(known), more).map(lambda both: {**both[1], **both[0]}),
    )


def alike(one: Any, other: Any) -> bool:
    """Equal, and of the same types all through: 1 is neither 1.0 nor true."""
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and repr(one) == repr(other)


def test_there_are_types_that_msgspec_converts_and_others() -> None:
    assert tools.ToolsCallParams in PLAIN
    assert tools.ReadFileArguments in PLAIN
    assert ToolResult not in PLAIN
    assert pinfold_protocol.session.ScopePatch not in PLAIN
    assert not convert._is_plain(tools.Content) and not convert._is_plain(tools.AnyContent)
    assert len(TYPES) > len(PLAIN) > 20


@settings(max_examples=200)
@given(st.data(), st.sampled_from(PLAIN))
def test_both_ways_say_the_same(data: st.DataObject, cls: Any) -> None:
    value = data.draw(objects(cls))
    kind, ours = told(value, cls)
    try:
        built = structure(value, cls)
    except RpcError as error:
        assert kind == "refused"
        assert error.data is not None
        assert (error.data["path"], error.data["problem"]) == ours
    else:
        assert kind == "built"
        assert alike(built, ours)


@settings(max_examples=200)
@given(st.data(), st.sampled_from(TYPES))
def test_what_is_written_reads_as_it_was(data: st.DataObject, cls: Any) -> None:
    kind, built = told(data.draw(objects(cls)), cls)
    if kind == "built":
        plain = unstructure(built)
        assert set(plain) <= set(wire_names(cls).values()) | set(getattr(built, "more", ()))
        again = told(plain, cls)[1]
        assert "given=" in repr(again) or alike(again, built)  # every member is given now


@pytest.mark.parametrize(
    ("value", "cls", "path", "problem"),
    [
        ([], tools.ToolsCallParams, "", "must be an object"),
        ({}, tools.ToolsCallParams, "sessionId", "is missing"),
        ({"sessionId": 1}, tools.ToolsCallParams, "sessionId", "must be a string"),
        ({"zzz": 1, "aaa": 1}, tools.ToolsCallParams, "aaa", "is not a known member"),
        ({"file_path": "a", "filePath": "a"}, tools.ReadFileArguments, "filePath",
         "is not a known member; 'file_path'?"),
        ({"file_path": "a", "limit": 1.5}, tools.ReadFileArguments, "limit",
         "must be a whole number"),
        ({"file_path": "a", "limit": True}, tools.ReadFileArguments, "limit",
         "must be a whole number"),
        ({"file_path": "a", "limit": "\ud800"}, tools.ReadFileArguments, "limit",
         "must be a whole number"),
        ({"file_path": "a", "edits": [{"old_string": "a"}]}, tools.EditArguments,
         "edits[0].new_string", "is missing"),
        ({"sessionId": "s", "name": "n", "workDoneToken": []}, tools.ToolsCallParams,
         "workDoneToken", "must be a whole number or a string"),
        ({"decision": "no", "tools": []}, decision.RuleSpec, "decision",
         'must be one of "allow", "ask", "deny"'),
        ({"content": [{"type": "text", "text": 1}], "isError": False, "_meta": {}}, ToolResult,
         "content[0].text", "must be a string"),
        ({"content": [1], "isError": False, "_meta": {}}, ToolResult, "content[0]",
         "must be an object"),
        ({"content": [{}], "isError": False, "_meta": {}}, ToolResult, "content[0]",
         "must be an object with a type"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(value: Any, cls: Any, path: str, problem: str) -> None:
    with pytest.raises(RpcError) as caught:
        structure(value, cls)
    assert caught.value.data == {"path": path, "problem": problem}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    found = structure({"file_path": "a", "limit": 5.0}, tools.ReadFileArguments)
    assert found.limit == 5
    assert type(found.limit) is int


def test_what_an_upstream_adds_stays_as_it_came() -> None:
    raw = {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b", "annotations": {}},
            {"type": "resource", "x": [1]},
            {"type": "image", "data": "", "mimeType": "image/png"},
        ],
        "isError": True,
        "_meta": {"x": 1},
        "structuredContent": {"y": 2},
    }
    result = structure(raw, ToolResult)
    assert result.content[0] == TextContent("a")
    assert result.content[1:3] == raw["content"][1:3]  # type: ignore[index]
    assert result.content[3] == ImageContent("", "image/png")
    assert result.more == {"structuredContent": {"y": 2}}
    assert unstructure(result) == raw
