"""What is known of an upstream's tools, and a call in its words: tables, nothing runs."""

from typing import Any

import pytest

from fronts import TOOLS
from pinfold.upstream.mapping import FILESYSTEM, Catalog, problem_of
from pinfold.upstream.messages import line_of, parse, without_ours
from pinfold.upstream_tools import as_tool, listed
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.errors import RpcError, ToolError
from pinfold_protocol.session import ToolMapping, UpstreamOptions
from pinfold_protocol.tools import ToolResult

SCHEMA = {"type": "object"}


def options(**tools: Any) -> UpstreamOptions:
    return structure({"command": "x", "tools": tools}, UpstreamOptions)


def catalog(*names: str, server: str = "", **tools: Any) -> Catalog:
    found = [{"name": name, "inputSchema": SCHEMA} for name in names]
    return Catalog("up", server, found, options(**tools))


FS = catalog(*FILESYSTEM, "brand_new")


@pytest.mark.parametrize(
    ("names", "server", "mapped"),
    [
        (("read_text_file",), "secure-filesystem-server", ["read_text_file"]),
        (("read_text_file",), "something", []),
        (("read_text_file", "write_file", "edit_file", "move_file", "x"), "my own", 4),
        (("write_file",), "Secure-Filesystem-Server", []),
        ((), "secure-filesystem-server", []),
    ],
)
def test_which_server_is_taken_for_the_one_that_we_know(
    names: tuple[str, ...], server: str, mapped: Any
) -> None:
    found = list(catalog(*names, server=server).mapped)
    assert found == mapped or len(found) == mapped


def test_all_fourteen_tools_are_mapped() -> None:
    assert len(FILESYSTEM) == 14 and FS.unmapped == ["brand_new"]
    assert FS.served == ["read_file", "read_memory", "write_file", "edit"]
    assert "read_file" not in FS.own(scoped=False) and "write_file" not in FS.own(scoped=False)
    assert set(FS.own(scoped=False)) - set(FS.own(scoped=True)) == {"brand_new"}


def test_what_somebody_wrote_goes_before_our_table() -> None:
    mapping = {"paths": {"path": "read"}, "serves": "read_file", "words": {"file_path": "path"}}
    own = catalog(*FILESYSTEM, "slurp", slurp=mapping)
    assert own.plan_ours("read_file", {"file_path": "/a"}).tool == "slurp"
    narrower = catalog(*FILESYSTEM, write_file={"paths": {"path": "delete"}})
    assert narrower.plan("write_file", {"path": "/a"}).paths[0].use == "delete"
    assert "write_file" not in narrower.served and "write_file" in narrower.own(scoped=True)


EDIT = {"old_string": "a", "new_string": "b", "replace_all": None}
TRANSLATED: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("read_file", {"file_path": "/a", "limit": None}, "read_text_file", {"path": "/a"}),
    ("read_memory", {"file_path": "/a", "limit": 3}, "read_text_file", {"path": "/a", "head": 3}),
    (
        "write_file",
        {"file_path": "/a", "content": "", "dry_run": False},
        "write_file",
        {"path": "/a", "content": ""},
    ),
    (
        "edit",
        {"file_path": "/a", **EDIT},
        "edit_file",
        {"path": "/a", "edits": [{"oldText": "a", "newText": "b"}]},
    ),
    (
        "edit",
        {"file_path": "/a", "edits": [EDIT, EDIT], "dry_run": True},
        "edit_file",
        {"path": "/a", "edits": [{"oldText": "a", "newText": "b"}] * 2, "dryRun": True},
    ),
]


@pytest.mark.parametrize(("name", "ours", "tool", "theirs"), TRANSLATED)
def test_our_arguments_in_its_words(
    name: str, ours: dict[str, Any], tool: str, theirs: dict[str, Any]
) -> None:
    plan = FS.plan_ours(name, ours)
    assert (plan.tool, plan.arguments, plan.ours) == (tool, theirs, name)
    assert plan.changes is (name in ("write_file", "edit"))
    assert [path.raw for path in plan.paths] == ["/a"] and plan.unmapped is None


@pytest.mark.parametrize(
    ("name", "more", "member"),
    [
        ("read_file", {"offset": 0}, "offset"),
        ("read_file", {"column": 1}, "column"),
        ("read_file", {"encoding": "gbk"}, "encoding"),
        ("write_file", {"content": "", "expected_sha256": "0" * 64}, "expected_sha256"),
        ("write_file", {"content": "", "dry_run": True}, "dry_run"),
        ("edit", {**EDIT, "replace_all": True}, "replace_all"),
        ("edit", {"edits": [{**EDIT, "replace_all": True}]}, "replace_all"),
        ("edit", {**EDIT, "old_string": ""}, "old_string"),
        ("edit", {"edits": [{**EDIT, "old_string": ""}]}, "old_string"),
    ],
)
def test_what_it_has_no_word_for_is_said(name: str, more: dict[str, Any], member: str) -> None:
    with pytest.raises(ToolError) as caught:
        FS.plan_ours(name, {"file_path": "/a", **more})
    assert caught.value.kind == "invalid-arguments" and caught.value.data["path"] == member


def test_single_words_for_one_replacement() -> None:
    words = {"file_path": "f", "old_string": "find", "new_string": "put"}
    mapping = {"paths": {"f": "write"}, "arguments": ["find", "put"], "serves": "edit"}
    own = catalog("sub", sub={**mapping, "words": words})
    plan = own.plan_ours("edit", {"file_path": "/a", **EDIT})
    assert plan.arguments == {"f": "/a", "find": "a", "put": "b"}
    assert own.words("edit") == ["file_path", "old_string", "new_string"]
    for refused in ({"edits": [EDIT]}, {**EDIT, "replace_all": True}, {**EDIT, "old_string": ""}):
        with pytest.raises(ToolError):
            own.plan_ours("edit", {"file_path": "/a", **refused})


PLANS: list[tuple[str, dict[str, Any], list[tuple[str, int | None, str, str]], dict[str, Any]]] = [
    ("read_text_file", {"path": "a"}, [("path", None, "a", "read")], {}),
    (
        "read_multiple_files",
        {"paths": ["a", "b"]},
        [("paths", 0, "a", "read"), ("paths", 1, "b", "read")],
        {},
    ),
    (
        "move_file",
        {"source": "a", "destination": "b"},
        [("source", None, "a", "move-from"), ("destination", None, "b", "move-to")],
        {},
    ),
    ("move_file", {"source": "a"}, [("source", None, "a", "move-from")], {"absent": "destination"}),
    ("create_directory", {"path": "a"}, [("path", None, "a", "create")], {}),
    ("edit_file", {"path": "a", "mode": 1}, [("path", None, "a", "write")], {"unmapped": "mode"}),
    ("list_allowed_directories", {}, [], {}),
    ("brand_new", {"path": "a"}, [], {"known": False}),
    ("never", {}, [], {"known": False}),
]


@pytest.mark.parametrize(("name", "arguments", "paths", "more"), PLANS)
def test_which_arguments_are_paths(
    name: str, arguments: dict[str, Any], paths: list[Any], more: dict[str, Any]
) -> None:
    plan = FS.plan(name, arguments)
    assert [(p.name, p.index, p.raw, p.use) for p in plan.paths] == paths
    expected = {"known": True, "unmapped": None, "absent": None, **more}
    assert {name: getattr(plan, name) for name in expected} == expected
    real = plan.with_paths(f"/real/{path.raw}" for path in plan.paths)
    assert set(real) == set(arguments)
    assert all(f"/real/{path.raw}" in str(real[path.name]) for path in plan.paths)
    assert plan.arguments == arguments  # with_paths made another


@pytest.mark.parametrize("value", [5, True, {}, [], ["a", 5], [["a"]], [None]])
def test_a_path_that_is_none(value: Any) -> None:
    with pytest.raises(ToolError) as caught:
        FS.plan("read_text_file", {"path": value})
    assert caught.value.kind == "invalid-arguments"


def test_the_number_of_paths_is_bounded() -> None:
    with pytest.raises(ToolError):
        FS.plan("read_multiple_files", {"paths": ["a"] * 129})


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"a": {"words": {"file_path": "p"}}}, "tools.a.words"),
    ({"a": {"paths": {"p": "read"}, "serves": "read_file"}}, "tools.a.words"),
    ({"a": {"serves": "read_file", "words": {"file_path": "p"}}}, "tools.a.paths.p"),
    (
        {
            "a": {
                "paths": {"p": "read"},
                "arguments": ["c"],
                "serves": "write_file",
                "words": {"file_path": "p", "content": "c"},
            }
        },
        "tools.a.paths.p",
    ),
    (
        {
            "a": {
                "paths": {"p": "write"},
                "serves": "write_file",
                "words": {"file_path": "p", "content": "p"},
            }
        },
        "tools.a.words",
    ),
    (
        {"a": {"paths": {"p": "write"}, "serves": "write_file", "words": {"file_path": "p"}}},
        "tools.a.words",
    ),
    (
        {
            "a": {
                "paths": {"p": "write"},
                "serves": "write_file",
                "words": {"file_path": "p", "content": "c"},
            }
        },
        "tools.a.words",
    ),
    (
        {
            name: {"paths": {"p": "read"}, "serves": "read_file", "words": {"file_path": "p"}}
            for name in ("a", "b")
        },
        "tools.b.serves",
    ),
]


@pytest.mark.parametrize(("tools", "member"), BROKEN)
def test_a_mapping_that_cannot_be_is_named(tools: dict[str, Any], member: str) -> None:
    found = problem_of(options(**tools))
    assert found is not None and found[0] == member


def test_mappings_that_can() -> None:
    assert problem_of(options(**TOOLS)) is None
    assert problem_of(UpstreamOptions("x", tools=FILESYSTEM)) is None
    assert problem_of(UpstreamOptions("x", tools={"a": ToolMapping()})) is None


def test_what_is_offered() -> None:
    tools = {tool["name"]: tool for tool in listed(FS, scoped=True)}
    assert set(tools) == {*FILESYSTEM, "read_memory", "edit"}
    properties = tools["read_file"]["inputSchema"]["properties"]
    assert set(properties) == {"file_path", "limit"}
    properties = tools["edit"]["inputSchema"]["properties"]
    assert set(properties) == {"file_path", "old_string", "new_string", "edits", "dry_run"}
    assert "brand_new" in {tool["name"] for tool in listed(FS, scoped=False)}


def test_a_tool_in_our_shape() -> None:
    raw = {
        "name": "x",
        "title": "X",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "destructiveHint": "no", "title": 5},
        "icons": [],
    }
    tool = as_tool(raw)
    assert (tool.title, tool.output_schema, tool.description) == ("X", {"type": "object"}, "")
    hints = tool.annotations
    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
        True,
        True,
        True,
    )
    assert as_tool({"name": "x", "inputSchema": SCHEMA, "title": 5}).title is None


def test_a_result_goes_through_our_types_as_it_is() -> None:
    result = {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b", "annotations": {"priority": 1}},
            {"type": "image", "data": "", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "unheard-of"},
        ],
        "isError": False,
        "_meta": {"a": 1},
        "structuredContent": {"x": [1, {"y": None}]},
        "later": 5,
    }
    found = structure(result, ToolResult)
    assert unstructure(found) == result and found.text == "a"
    assert found.more == {"structuredContent": {"x": [1, {"y": None}]}, "later": 5}
    broken: dict[str, Any]
    for broken in ({"content": [5]}, {"content": [{}]}, {"content": [{"type": 5}]}, {"isError": 5}):
        with pytest.raises(RpcError):
            structure({**result, **broken}, ToolResult)


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ({"_meta": {"pinfold/x": 1, "other": 2}}, {"_meta": {"other": 2}}),
        ([{"a": [{"_meta": {"pinfold/": 1}}]}], [{"a": [{"_meta": {}}]}]),
        ({"_meta": {"a": {"_meta": {"pinfold/x": 1}}}}, {"_meta": {"a": {"_meta": {}}}}),
        ({"_meta": ["pinfold/x"]}, {"_meta": ["pinfold/x"]}),
        ({"pinfold/x": 1, "y": {"pinfold/x": 1}}, {"y": {"pinfold/x": 1}}),  # deeper it is data
        ("pinfold/x", "pinfold/x"),
    ],
)
def test_our_keys_are_dropped_wherever_they_stand(value: Any, right: Any) -> None:
    assert without_ours(value) == right


def test_what_is_sent_is_written_anew() -> None:
    value = parse(b'{"a": 1, "a": 2, "n": 12345678901234567890123, "f": 1.0}')
    line = line_of({"params": value})
    assert line.count(b'"a"') == 1 and b"12345678901234567890123" in line and b"1.0" in line
    assert b"\n" not in line_of({"params": {"x": "a\nb\u2028\ud800"}})[:-1]
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="deeply"):
        line_of({"params": {"deep": deep}})
    with pytest.raises(ValueError, match="deeply"):
        parse(b"[" * 100_000)
