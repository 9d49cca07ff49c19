"""Each provider's shapes, by table: what is cleared, what is kept, what is left alone."""

import json
from typing import Any

import msgspec
import pytest

from pinfold.compaction import Evidence, Record, compact, plan
from pinfold.parser import _HOSTS
from pinfold_protocol.compaction import (
    CLEARED_TEXT,
    CompactParams,
    CompactResult,
    CompactSettings,
    ForceTrigger,
    Format,
    ResultsTrigger,
)
from pinfold_protocol.convert import unstructure
from pinfold_protocol.errors import RpcError
from pinfold_protocol.hosts import HOSTS
from pinfold_protocol.retention import RETENTION_KEY, RetentionTag

LONG = "text " * 20
PICTURE = "data:image/png;base64,AAAA"
ONE = CompactSettings(keep_recent=1)


def tag(path: str = "/mem/a.md", sha256: str = "1", **more: Any) -> RetentionTag:
    return msgspec.structs.replace(RetentionTag("project", False, True, path, sha256), **more)


def managed(path: str) -> bool:
    return path.startswith("/mem/")


def use(call_id: str, name: str = "read_file", path: str = "/src/a.py") -> dict[str, Any]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {"file_path": path}}
    return {"role": "assistant", "content": [block]}


def said(call_id: str, content: Any = LONG, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return {"role": "user", "content": [block]}


def chat_call(call_id: str, name: str = "read_file", path: str = "/src/a.py") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"file_path": path})}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def chat_said(call_id: str, content: Any = LONG) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def item_call(call_id: str, **more: Any) -> dict[str, Any]:
    arguments = json.dumps({"file_path": "/src/a.py"})
    call = {"type": "function_call", "call_id": call_id, "name": "read_file"}
    return call | {"arguments": arguments} | more


def item_said(call_id: str, output: Any = LONG) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


LAST: dict[Format, list[Any]] = {
    "anthropic": [use("last"), said("last")],
    "openai": [chat_call("last"), chat_said("last")],
}


def run(
    style: Format,
    history: list[Any],
    settings: CompactSettings = ONE,
    evidence: Evidence | None = None,
) -> CompactResult:
    """Compact a history to which a recent result is added."""
    params = CompactParams(style, history + LAST.get(style, []), ForceTrigger(), settings=settings)
    return compact(params, evidence or Evidence(managed))


WHOLE: dict[str, tuple[Format, list[Any], Any]] = {
    "anthropic text": (
        "anthropic",
        [use("a"), said("a", cache_control={"type": "ephemeral"})],
        said("a", CLEARED_TEXT, cache_control={"type": "ephemeral"}),
    ),
    "anthropic blocks with a cache marker": (
        "anthropic",
        [
            use("a"),
            said("a", [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]),
        ],
        said("a", [{"type": "text", "text": CLEARED_TEXT, "cache_control": {"type": "ephemeral"}}]),
    ),
    "anthropic text and a picture": (
        "anthropic",
        [use("a"), said("a", [{"type": "text", "text": "x"}, {"type": "image", "source": {}}])],
        said("a", [{"type": "text", "text": CLEARED_TEXT}]),
    ),
    "anthropic nested media of another tool": (
        "anthropic",
        [
            *(
                use("z", "browse"),
                said("z", [{"type": "image", "source": {"media_type": "image/png"}}]),
            ),
            *(use("b", "browse"), said("b", [{"type": "image", "source": {}}])),
        ],
        said("z", [{"type": "text", "text": "[Old inline media cleared: image/png]"}]),
    ),
    "openai chat": ("openai", [chat_call("a"), chat_said("a")], chat_said("a", CLEARED_TEXT)),
    "openai chat parts": (
        "openai",
        [chat_call("a"), chat_said("a", [{"type": "text", "text": LONG}])],
        chat_said("a", [{"type": "text", "text": CLEARED_TEXT}]),
    ),
    "openai legacy function": (
        "openai",
        [{"role": "function", "name": "read_file", "content": LONG}],
        {"role": "function", "name": "read_file", "content": CLEARED_TEXT},
    ),
    "openai item": ("openai", [item_call("a"), item_said("a")], item_said("a", CLEARED_TEXT)),
    "openai item with a list": (
        "openai",
        [item_call("a"), item_said("a", [{"type": "input_text", "text": LONG}])],
        item_said("a", [{"type": "input_text", "text": CLEARED_TEXT}]),
    ),
    "openai item of an MCP server": (
        "openai",
        [item_call("a", namespace="mcp__pinfold", name="read_file"), item_said("a")],
        item_said("a", CLEARED_TEXT),
    ),
    "openai custom tool": (
        "openai",
        [
            {"type": "custom_tool_call", "call_id": "a", "name": "glob", "input": "*.py"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": LONG},
        ],
        {"type": "custom_tool_call_output", "call_id": "a", "output": CLEARED_TEXT},
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_cleared_result_keeps_its_shape(name: str) -> None:
    style, history, expected = WHOLE[name]
    result = run(style, history)
    place = 0 if len(history) == 1 else 1
    assert result.history[place] == expected
    assert [each.message for each in result.cleared] == [place]
    assert result.report.left_alone == []


MEDIA: dict[str, tuple[Format, Any, str]] = {
    "anthropic image": (
        "anthropic",
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}},
        "image/png",
    ),
    "anthropic url": (
        "anthropic",
        {"type": "image", "source": {"type": "url"}},
        "application/octet-stream",
    ),
    "anthropic document": (
        "anthropic",
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf"}},
        "application/pdf",
    ),
    "chat image": ("openai", {"type": "image_url", "image_url": {"url": PICTURE}}, "image/png"),
    "chat audio": (
        "openai",
        {"type": "input_audio", "input_audio": {"format": "wav"}},
        "audio/wav",
    ),
    "chat file": ("openai", {"type": "file", "file": {"file_id": "f"}}, "application/octet-stream"),
    "item image": ("openai", {"type": "input_image", "image_url": PICTURE}, "image/png"),
    "item file": ("openai", {"type": "input_file", "file_data": "data:text/a;x,"}, "text/a"),
    "gemini file": ("gemini", {"file_data": {"mime_type": "a\r\n[b]/c"}}, "a b/c"),
}


@pytest.mark.parametrize("name", MEDIA)
def test_media_in_a_message_gives_way_to_a_line_that_says_so(name: str) -> None:
    style, block, mime = MEDIA[name]
    member = "parts" if style == "gemini" else "content"
    message = {"role": "user", member: [{"type": "text", "text": "look"}, block]}
    params = CompactParams(style, [message, message], ForceTrigger(), settings=ONE)
    result = compact(params)
    new = result.history[0][member][1]
    assert new["text"] == f"[Old inline media cleared: {mime}]"
    assert new.get("type") == (
        None
        if style == "gemini"
        else "input_text"
        if "input_i" in str(block) or "input_f" in str(block)
        else "text"
    )
    assert result.history[1] is message
    assert [unstructure(each) for each in result.cleared] == [
        {"message": 0, "part": 1, "kind": "media"}
    ]


def test_audio_beside_items_is_replaced_by_an_item() -> None:
    audio = {"type": "input_audio", "input_audio": {"format": "mp3"}}
    message = {"role": "user", "content": [{"type": "input_text", "text": "hear"}, audio]}
    result = compact(CompactParams("openai", [message, message], ForceTrigger(), settings=ONE))
    assert result.history[0]["content"][1]["type"] == "input_text"


LEFT_ALONE: dict[str, tuple[Format, list[Any]]] = {
    "a result without its call": ("anthropic", [said("nobody")]),
    "a result before its call": ("anthropic", [said("a"), use("a")]),
    "blocks of a kind that we do not know": (
        "anthropic",
        [use("a"), said("a", [{"type": "search_result", "content": []}])],
    ),
    "a message that is none": ("anthropic", [3]),
    "a chat result without its call": ("openai", [chat_said("nobody")]),
    "a chat result of numbers": ("openai", [chat_call("a"), chat_said("a", 3)]),
    "a screenshot": (
        "openai",
        [
            {
                "type": "computer_call_output",
                "call_id": "a",
                "output": {"type": "computer_screenshot"},
            }
        ],
    ),
    "an item of nothing": ("openai", [{"content": "x"}]),
    "a content that is none": ("gemini", ["x"]),
    "parts that are none": ("gemini", [{"role": "user", "parts": {}}]),
    "a response in the old role": (
        "gemini",
        [
            {
                "role": "function",
                "parts": [{"functionResponse": {"name": "read_file", "response": {}}}],
            }
        ],
    ),
    "a response without a name": (
        "gemini",
        [{"role": "user", "parts": [{"functionResponse": {"id": "a"}}]}],
    ),
    "a result of another shape": (
        "gemini",
        [
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "glob", "response": {"result": "x"}}}],
            }
        ],
    ),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_unknown_shapes_are_left_alone_and_reported(name: str) -> None:
    style, history = LEFT_ALONE[name]
    result = run(style, history, CompactSettings(keep_recent=1, clearable="*"))
    assert result.history[: len(history)] == history
    assert all(each.message >= len(history) for each in result.cleared)
    assert any(each.message < len(history) for each in result.report.left_alone)


def test_results_of_the_provider_itself_are_not_ours() -> None:
    search = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "x"}]}
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    history = [{"role": "assistant", "content": [call, search]}]
    result = run("anthropic", history, CompactSettings(keep_recent=1, clearable="*"))
    assert result.history[0] is history[0]
    assert result.report.left_alone == []


# What preserves


def gemini_read(call_id: str | None, path: str | None = None, **said_more: Any) -> list[Any]:
    response: dict[str, Any] = {"name": "read_file", "response": {"output": LONG, **said_more}}
    call: dict[str, Any] = {"name": "read_file", "args": {"file_path": path}}
    if call_id is not None:
        response["id"] = call["id"] = call_id
    return [
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]


META = {"_meta": {RETENTION_KEY: unstructure(tag())}}
GEMINI_LAST = gemini_read("last", "/src/z")

PRESERVED: dict[str, tuple[list[Any], Evidence, bool]] = {
    "a tag by id": (gemini_read("a", "alias"), Evidence(tags={"a": tag()}), True),
    "a tag by id, and the call is gone": (
        gemini_read("a")[1:],
        Evidence(tags={"a": tag()}),
        True,
    ),
    "no tag": (gemini_read("a", "alias"), Evidence(), False),
    "a tag that says no": (
        gemini_read("a", "alias"),
        Evidence(tags={"a": tag(preserve=False)}),
        False,
    ),
    "a tag under another id": (gemini_read("a", "alias"), Evidence(tags={"b": tag()}), False),
    "a tag in the result": (gemini_read(None, "x", **META), Evidence(), True),
    "a tag in the result that nobody issued": (
        gemini_read(None, "x", **META),
        Evidence(genuine=lambda tag: False),
        False,
    ),
    "a tag in the result that is none": (
        gemini_read(None, "x", _meta={RETENTION_KEY: {"preserve": True}}),
        Evidence(),
        False,
    ),
    "a tag whose id also stands for an ordinary path": (
        gemini_read("a", "alias") + gemini_read("a", "/src/x"),
        Evidence(managed, tags={"a": tag()}),
        False,
    ),
    "a tag whose id stands for its file twice": (
        gemini_read("a", "/mem/a.md") + gemini_read("a", "/mem/b.md"),
        Evidence(managed, tags={"a": tag()}),
        True,
    ),
}


@pytest.mark.parametrize("name", PRESERVED)
def test_what_preserves(name: str) -> None:
    history, evidence, kept = PRESERVED[name]
    params = CompactParams("gemini", history + GEMINI_LAST, ForceTrigger(), settings=ONE)
    result = compact(params, evidence)
    places = [index for index, each in enumerate(history) if each["role"] == "user"]
    cleared = {each.message for each in result.cleared}
    assert all((place not in cleared) == kept for place in places)


def test_a_tag_by_id_does_not_speak_for_another_tool_under_the_id() -> None:
    grep = {"name": "grep_search", "id": "a", "response": {"output": LONG}}
    history = [*gemini_read("a", "alias"), {"role": "user", "parts": [{"functionResponse": grep}]}]
    params = CompactParams("gemini", history + GEMINI_LAST, ForceTrigger(), settings=ONE)
    result = compact(params, Evidence(tags={"a": tag()}))
    assert [each.message for each in result.cleared] == [2]


def test_a_path_by_id_needs_the_id() -> None:
    record = {"tool": "read_file", "path": "/mem/a.md", "chars": 99}
    history = [record, record | {"callId": ""}, record | {"callId": "a"}, record | {"path": "/x"}]
    result = compact(
        CompactParams("records", history, ForceTrigger(), settings=ONE), Evidence(managed)
    )
    assert [each.message for each in result.cleared] == [0, 1]


# Records


def test_records_speak_for_themselves() -> None:
    plain = {"tool": "grep_search", "chars": 500}
    history = [
        plain | {"preserved": True},
        plain | {"tag": unstructure(tag())},
        plain | {"error": True},
        plain | {"cleared": True},
        plain,
        {"media": 1},
        {"tool": "browse", "media": 2, "chars": 9},
        *(plain, {"media": 1}, {"tool": "browse", "media": 2}),
    ]
    result = compact(CompactParams("records", history, ForceTrigger(), settings=ONE))
    assert [unstructure(each) for each in result.cleared] == [
        {"message": 4, "part": None, "kind": "tool"},
        {"message": 5, "part": None, "kind": "media"},
        {"message": 6, "part": None, "kind": "nested-media"},
    ]
    assert result.history[4] == plain | {"cleared": True, "media": 0}
    assert result.history[6] == {"tool": "browse", "media": 0, "chars": 9}


@pytest.mark.parametrize(
    ("record", "member"),
    [
        ({"tool": 3}, "history[0].tool"),
        ({"tol": "x"}, "history[0].tol"),
        ({"chars": "9"}, "history[0].chars"),
        ({"chars": -1}, "history[0].chars"),
        ({"media": -1}, "history[0].media"),
        (3, "history[0]"),
        ({"tool": "x", "tag": {}}, "history[0].tag.scope"),
    ],
)
def test_a_record_that_is_none_is_named(record: Any, member: str) -> None:
    with pytest.raises(RpcError) as caught:
        compact(CompactParams("records", [record], ForceTrigger()))
    assert caught.value.data is not None
    assert caught.value.data["path"] == member


# Whose tools


def test_clearable_and_reads_in_the_words_of_a_host() -> None:
    history = [
        *(use("a", "Read", "/mem/a.md"), said("a"), use("b", "Read"), said("b")),
        *(use("c", "Bash"), said("c"), use("d", "Task"), said("d"), use("e", "Read"), said("e")),
    ]
    settings = msgspec.structs.replace(HOSTS["claude-code"], keep_recent=1)
    params = CompactParams("anthropic", history, ForceTrigger(), settings=settings)
    result = compact(params, Evidence(managed))
    assert [each.call_id for each in result.cleared] == ["b", "c"]
    assert compact(msgspec.structs.replace(params, settings=ONE), Evidence(managed)).cleared == []


@pytest.mark.parametrize(
    "name", ["mcp__pinfold__read_memory", "mcp__my_files__read_file", "READ_MEMORY"]
)
def test_ours_are_known_by_default_under_any_server(name: str) -> None:
    ordinary = run("anthropic", [use("a", name), said("a")])
    memory = run("anthropic", [use("a", name, "/mem/a.md"), said("a")])
    assert [each.call_id for each in ordinary.cleared] == ["a"]
    assert memory.cleared == []


def test_all_tools_may_be_clearable() -> None:
    history = [use("a", "whatever"), said("a")]
    assert run("anthropic", history).cleared == []
    assert run("anthropic", history, CompactSettings(keep_recent=1, clearable="*")).cleared != []


def test_the_hosts_of_the_command_line_are_those_of_the_table() -> None:
    assert tuple(HOSTS) == _HOSTS
    assert HOSTS["opencode"].reads == {
        "read": "filePath",
        "pinfold_read_file": "file_path",
        "pinfold_read_memory": "file_path",
    }


# Thresholds and gains


def test_a_gain_may_be_demanded() -> None:
    history = [use("a"), said("a", "x" * 100), use("b"), said("b", "y" * 100)]
    for at_least, cleared in ((200, 2), (201, 0)):
        settings = CompactSettings(keep_recent=1, clear_at_least_chars=at_least)
        assert len(run("anthropic", history, settings).cleared) == cleared


def test_a_gain_in_media_counts() -> None:
    message = {"role": "user", "content": [{"type": "image", "source": {}}]}
    for at_least, cleared in ((6400, 1), (6401, 0)):
        settings = CompactSettings(keep_recent=1, clear_at_least_chars=at_least)
        params = CompactParams("anthropic", [message] * 2, ForceTrigger(), settings=settings)
        assert len(compact(params).cleared) == cleared


def test_preserved_text_counts_neither_toward_the_trigger_nor_toward_the_mark() -> None:
    records = [Record("tool", 1_000, preserved=True), *(Record("tool", 30) for _ in range(4))]
    settings = CompactSettings(keep_recent=1, size_threshold_chars=100)
    made = plan(records, ResultsTrigger(), settings)
    assert made.cleared == (1, 2, 3)
    assert made.meta is not None
    assert (made.meta.chars_before, made.meta.chars_after) == (120, 30)
    assert plan(records[:4], ResultsTrigger(), settings).meta is None
    counting = msgspec.structs.replace(settings, preserved_counts=True)
    assert plan(records[:4], ResultsTrigger(), counting).cleared == (1, 2)


def test_pending_counts_and_is_never_cleared() -> None:
    history = [use("a"), said("a", "x" * 60), use("b"), said("b", "y" * 60), use("p")]
    settings = CompactSettings(keep_recent=1, size_threshold_chars=150)
    for pending, cleared in (
        (None, []),
        (said("p", "z" * 60), ["a"]),
        ([said("p", "z" * 60)], ["a"]),
    ):
        params = CompactParams("anthropic", history, ResultsTrigger(pending), settings=settings)
        result = compact(params)
        assert [each.call_id for each in result.cleared] == cleared
        assert len(result.history) == len(history)


# Cases from the field, group 16


def test_c217_calls_and_results_stay_pairs() -> None:
    """Parallel calls, an interrupted call, and two earlier compactions."""
    calls = [{"type": "tool_use", "id": f"p{i}", "name": "glob", "input": {}} for i in range(3)]
    results = [{"type": "tool_result", "tool_use_id": f"p{i}", "content": LONG} for i in range(3)]
    history = [
        *({"role": "assistant", "content": calls}, {"role": "user", "content": results}),
        *(use("old"), said("old", CLEARED_TEXT), use("older"), said("older", CLEARED_TEXT)),
        *(use("interrupted"), {"role": "user", "content": "stop"}),
    ]
    result = run("anthropic", history)
    ids = [each["tool_use_id"] for each in result.history[1]["content"]]
    assert ids == ["p0", "p1", "p2"]
    assert result.history[0] is history[0]
    assert len(result.cleared) == 3
    assert result.history[6:8] == history[6:8]


def test_c224_an_old_copy_is_marked_by_its_digest() -> None:
    history = gemini_read("a", "/mem/a.md") + gemini_read("b", "/mem/b.md")
    evidence = Evidence(
        managed,
        tags={"a": tag(sha256="1"), "b": tag("/mem/b.md", "2")},
        current={"/mem/a.md": "9", "/mem/b.md": "2"},
    )
    report = compact(CompactParams("gemini", history, ForceTrigger()), evidence).report
    assert [unstructure(each) for each in report.superseded] == [
        {"message": 1, "part": 0, "path": "/mem/a.md", "sha256": "1", "current": "9"}
    ]
    assert report.preserved == 2


def test_c224_a_later_read_supersedes_an_earlier_one() -> None:
    history = gemini_read("a", "/mem/a.md") + gemini_read("b", "/mem/a.md")
    evidence = Evidence(managed, tags={"a": tag(sha256="1"), "b": tag(sha256="2")})
    report = compact(CompactParams("gemini", history, ForceTrigger()), evidence).report
    assert [(each.message, each.current) for each in report.superseded] == [(1, "2")]


ODD: dict[str, tuple[Format, list[Any]]] = {
    "a role that is a list": ("gemini", [{"role": [], "parts": []}]),
    "a type that is an object": ("openai", [{"type": {}}]),
    "a part's type that is a list": (
        "openai",
        [{"role": "user", "content": [{"type": "image_url"}, {"type": "image_url"}, {"type": []}]}],
    ),
    "an item with a role": (
        "openai",
        [item_call("a"), item_said("a") | {"role": "tool"}],
    ),
    "an id that is a number": ("anthropic", [use(3), said(3)]),  # type: ignore[arg-type]
    "a name that is a list": (
        "gemini",
        [{"role": "model", "parts": [{"functionCall": {"id": "a", "name": []}}]}],
    ),
    "nulls": ("anthropic", [None, {"role": None, "content": None}, {}]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_histories_are_no_bugs(name: str) -> None:
    style, history = ODD[name]
    result = run(style, history, CompactSettings(keep_recent=1, clearable="*"))
    assert len(result.history) >= len(history)


MANY = 20_000


@pytest.mark.parametrize(
    ("style", "history"),
    [
        ("openai", [{"role": "user", "content": [{"type": "image_url"}] * MANY}]),
        (
            "anthropic",
            [m for i in range(MANY) for m in (use("same", path=f"/src/{i}"), said("same"))],
        ),
        (
            "anthropic",
            [m for i in range(MANY) for m in (use("same", path=f"/mem/{i}"), said("same"))],
        ),
        (
            "records",
            [
                {"tool": "read_file", "callId": "a", "path": f"/{i}", "chars": 9}
                for i in range(MANY)
            ],
        ),
    ],
    ids=["media in one message", "ordinary paths under one id", "managed paths", "records"],
)
@pytest.mark.timeout(30)
def test_what_is_many_in_one_place_takes_no_longer(style: Format, history: list[Any]) -> None:
    """Squared, each of these would take minutes."""
    tags = {"same": tag(), "a": tag()}
    for evidence in (Evidence(managed), Evidence(managed, tags=tags)):
        params = CompactParams(style, history, ForceTrigger(), settings=ONE)
        compact(params, evidence)


def test_b7_another_tool_under_the_id_has_no_effect() -> None:
    other = {"name": "Write", "id": "a", "args": {"file_path": "/src/x"}}
    history = [
        {"role": "model", "parts": [{"functionCall": other}]},
        *gemini_read("a", "/mem/a.md"),
    ]
    params = CompactParams("gemini", history + GEMINI_LAST, ForceTrigger(), settings=ONE)
    result = compact(params, Evidence(managed))
    assert result.cleared == []


def test_another_tool_s_result_under_the_id_counts_though_it_is_never_cleared() -> None:
    history = [use("a", "read_memory", "x"), said("a"), use("a", "Bash"), said("a")]
    settings = CompactSettings(keep_recent=1, clearable=["Bash", "read_file"])
    result = run("anthropic", history, settings, Evidence(tags={"a": tag()}))
    assert [each.message for each in result.cleared] == [3]


def test_a_host_s_own_words_for_the_path_of_a_change() -> None:
    def call(call_id: str, name: str) -> list[Any]:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {"filePath": f"/{name}"}}
        return [{"role": "assistant", "content": [block]}, said(call_id)]

    history = call("a", "write") + call("b", "edit") + call("c", "read") + call("d", "read")
    settings = msgspec.structs.replace(HOSTS["opencode"], keep_recent=1)
    meta = run("anthropic", history, settings).meta
    assert meta is not None
    assert meta.evicted_paths == ["/write", "/edit", "/read"]
    assert meta.unresolved_evictions == 0


def gemini_write(call_id: str, path: str, output: str) -> list[Any]:
    call = {"name": "write_file", "id": call_id, "args": {"file_path": path}}
    said = {"name": "write_file", "id": call_id, "response": {"output": output}}
    return [
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": said}]},
    ]


@pytest.mark.parametrize(
    ("writes", "evicted"),
    [
        ([], ["/src/x"]),
        (gemini_write("w", "/src/x", "ok"), ["/src/y"]),
        (gemini_write("w", "/src/x", ""), ["/src/x"]),  # no text, so none that is kept
        (
            gemini_write("w", "/src/x", "ok") + gemini_write("v", "/src/v", "ok"),
            ["/src/x", "/src/y"],
        ),
    ],
)
def test_a_write_that_is_kept_still_shows_its_file(writes: list[Any], evicted: list[str]) -> None:
    history = [*gemini_read("a", "/src/x"), *gemini_read("b", "/src/y"), *writes, *GEMINI_LAST]
    settings = CompactSettings(keep_recent=2)
    meta = compact(CompactParams("gemini", history, ForceTrigger(), settings=settings)).meta
    assert meta is not None and meta.evicted_paths == evicted


def test_a_write_that_no_rule_reached_does_not_show_its_file() -> None:
    """By size, clearing stops where enough has gone."""
    history = [
        *gemini_read("a", "/src/x", output="x" * 800),
        *gemini_write("w", "/src/x", "ok"),
        *gemini_read("b", "/src/y"),
    ]
    settings = CompactSettings(keep_recent=1, size_threshold_chars=300)
    params = CompactParams("gemini", history, ResultsTrigger(), settings=settings)
    result = compact(params)
    assert [each.message for each in result.cleared] == [1]
    assert result.meta is not None and result.meta.evicted_paths == ["/src/x"]


@pytest.mark.parametrize("name", ["mytool", "read_file"])
def test_what_stood_beside_cleared_media_of_a_result_goes_with_it(name: str) -> None:
    def answer(call_id: str) -> list[Any]:
        media = [{"inlineData": {"mimeType": "image/png", "data": "A"}}]
        said = {"id": call_id, "name": name, "response": {"output": "x"}, "parts": media}
        call = {"id": call_id, "name": name, "args": {}}
        return [
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": said, "thoughtSignature": "s"}]},
        ]

    params = CompactParams("gemini", answer("a") + answer("b"), ForceTrigger(), settings=ONE)
    history = compact(params).history
    assert set(history[1]["parts"][0]) == {"functionResponse"}
    assert set(history[3]["parts"][0]) == {"functionResponse", "thoughtSignature"}


def test_a_media_type_that_is_empty_is_no_missing_one() -> None:
    def message(**more: str) -> Any:
        return {"role": "user", "parts": [{"inlineData": {"data": "A", **more}}]}

    history = [message(mimeType=""), message(), message()]
    result = compact(CompactParams("gemini", history, ForceTrigger(), settings=ONE))
    texts = [each["parts"][0].get("text") for each in result.history]
    octets = "[Old inline media cleared: application/octet-stream]"
    assert texts == ["[Old inline media cleared: ]", octets, None]


def test_a_record_without_an_id_still_says_which_path_is_gone() -> None:
    record = {"tool": "read_file", "path": "/mem/a.md", "chars": 9}
    params = CompactParams("records", [record, record], ForceTrigger(), settings=ONE)
    meta = compact(params, Evidence(managed)).meta
    assert meta is not None
    assert (meta.evicted_paths, meta.unresolved_evictions) == (["/mem/a.md"], 0)


def test_a_long_mime_is_cut_in_utf16_units() -> None:
    part = {"inlineData": {"mimeType": "\U0001f600" * 100}}
    message = {"role": "user", "parts": [part]}
    result = compact(CompactParams("gemini", [message] * 2, ForceTrigger(), settings=ONE))
    assert result.history[0]["parts"][0]["text"].count("\U0001f600") == 64
