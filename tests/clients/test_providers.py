"""Histories of each provider, before and after, by the providers' own types."""

import json
from typing import Any

import msgspec
import pytest

from pinfold.compaction import Evidence, compact
from pinfold_protocol.compaction import (
    CLEARED_TEXT,
    CompactParams,
    CompactSettings,
    ForceTrigger,
    Format,
)
from pinfold_protocol.hosts import clear_tool_uses_arguments, context_management

pydantic = pytest.importorskip(
    "pydantic", reason="the providers' packages come with make test-clients"
)
pytestmark = pytest.mark.client

LONG = "line\n" * 50
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

ANTHROPIC: list[Any] = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}}],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "text", "text": "I read."},
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "read_file",
                "input": {"file_path": "/src/a.py"},
            },
            {
                "type": "tool_use",
                "id": "toolu_2",
                "name": "read_file",
                "input": {"file_path": "/mem/a.md"},
            },
            {"type": "tool_use", "id": "toolu_3", "name": "glob", "input": {"pattern": "*"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}],
            },
            {
                "type": "tool_result",
                "tool_use_id": "toolu_3",
                "content": [
                    {"type": "text", "text": LONG},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                ],
                "is_error": False,
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_4", "name": "glob", "input": {"pattern": "*"}}
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_4", "content": "no", "is_error": True},
            {"type": "text", "text": "go on"},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_5", "name": "glob", "input": {"pattern": "*"}}
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_5", "content": LONG},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}},
        ],
    },
]


def function(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


CHAT: list[Any] = [
    {"role": "system", "content": "You are."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            function("call_1", "read_file", file_path="/src/a.py"),
            function("call_2", "read_file", file_path="/mem/a.md"),
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": LONG},
    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": LONG}]},
    {
        "role": "assistant",
        "content": "Hm.",
        "tool_calls": [function("call_3", "glob", pattern="*")],
    },
    {"role": "tool", "tool_call_id": "call_3", "content": [{"type": "text", "text": LONG}]},
    {"role": "assistant", "content": None, "tool_calls": [function("call_4", "glob", pattern="*")]},
    {"role": "tool", "tool_call_id": "call_4", "content": LONG},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}],
    },
]


def item(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": call_id, "name": name, "id": f"fc_{call_id}"}
    return call | {"arguments": json.dumps(arguments), "status": "completed"}


ITEMS: list[Any] = [
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look."},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    item("call_1", "read_file", file_path="/src/a.py"),
    item("call_2", "read_file", file_path="/mem/a.md"),
    {"type": "function_call_output", "call_id": "call_1", "output": LONG},
    {"type": "function_call_output", "call_id": "call_2", "output": LONG},
    {"type": "custom_tool_call", "call_id": "call_3", "name": "glob", "input": "*", "id": "ctc_1"},
    {
        "type": "custom_tool_call_output",
        "call_id": "call_3",
        "output": [
            {"type": "input_text", "text": LONG},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        ],
    },
    item("call_4", "glob", pattern="*"),
    {"type": "function_call_output", "call_id": "call_4", "output": LONG},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_image", "image_url": "https://example.org/x.png", "detail": "low"}
        ],
    },
]


def part(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {
        "functionCall": {"id": call_id, "name": name, "args": arguments},
        "thoughtSignature": "c2ln",
    }


def answer(call_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": name, "response": {"output": LONG}, **more}}


BLOB = {"inlineData": {"mimeType": "image/png", "data": PNG}}
GEMINI: list[Any] = [
    {"role": "user", "parts": [{"text": "Look."}, BLOB]},
    {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            part("c1", "read_file", file_path="/src/a.py"),
            part("c2", "read_file", file_path="/mem/a.md"),
            part("c3", "browse"),
        ],
    },
    {
        "role": "user",
        "parts": [
            answer("c1", "read_file"),
            answer("c2", "read_file"),
            answer("c3", "browse", parts=[BLOB]),
        ],
    },
    {"role": "model", "parts": [part("c4", "glob", pattern="*"), part("c5", "browse")]},
    {"role": "user", "parts": [answer("c4", "glob"), answer("c5", "browse", parts=[BLOB]), BLOB]},
]


def check_anthropic(history: list[Any]) -> None:
    from anthropic.types import MessageParam
    from anthropic.types.beta import BetaMessageParam

    for kind in (MessageParam, BetaMessageParam):
        pydantic.TypeAdapter(list[kind]).validate_python(history)  # type: ignore[valid-type]


def check_chat(history: list[Any]) -> None:
    from openai.types.chat import ChatCompletionMessageParam

    pydantic.TypeAdapter(list[ChatCompletionMessageParam]).validate_python(history)


def check_items(history: list[Any]) -> None:
    from openai.types.responses import ResponseInputItemParam

    adapter = pydantic.TypeAdapter(ResponseInputItemParam)
    for each in history:
        adapter.validate_python(each)


def check_gemini(history: list[Any]) -> None:
    from google.genai.types import Content

    for each in history:
        Content.model_validate(each, strict=False)


HISTORIES: dict[str, tuple[Format, list[Any], Any]] = {
    "anthropic": ("anthropic", ANTHROPIC, check_anthropic),
    "openai chat": ("openai", CHAT, check_chat),
    "openai items": ("openai", ITEMS, check_items),
    "gemini": ("gemini", GEMINI, check_gemini),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_comes_out_is_what_the_provider_takes(name: str) -> None:
    style, history, check = HISTORIES[name]
    check(history)
    params = CompactParams(style, history, ForceTrigger(), settings=CompactSettings(keep_recent=1))
    evidence = Evidence(lambda path: path.startswith("/mem/"))
    result = compact(params, evidence)
    check(result.history)
    kinds = {each.kind for each in result.cleared}
    assert kinds >= {"tool", "media"}
    assert CLEARED_TEXT in json.dumps(result.history)
    assert result.report.preserved == 1
    assert result.report.left_alone == []
    assert compact(msgspec.structs.replace(params, history=result.history), evidence).cleared == []


def test_a_dump_of_google_s_own_types_is_understood() -> None:
    """The Python SDK's dumps are in snake case, with every member that is not there as null."""
    from google.genai.types import Content

    history = [Content.model_validate(each).model_dump(mode="json") for each in GEMINI]
    params = CompactParams(
        "gemini", history, ForceTrigger(), settings=CompactSettings(keep_recent=1)
    )
    result = compact(params, Evidence(lambda path: path.startswith("/mem/")))
    check_gemini(result.history)
    plain = compact(
        msgspec.structs.replace(params, history=GEMINI),
        Evidence(lambda path: path.startswith("/mem/")),
    )
    assert result.cleared == plain.cleared


def test_the_block_for_anthropic_s_own_clearing() -> None:
    from anthropic.types.beta import BetaContextManagementConfigParam

    adapter = pydantic.TypeAdapter(BetaContextManagementConfigParam)
    for block in (context_management(), context_management(clear_at_least_tokens=5_000, keep=7)):
        adapter.validate_python(block, strict=True)
        assert "read_memory" in block["edits"][0]["exclude_tools"]


def test_the_arguments_for_langchain_keep_memory_reads() -> None:
    pytest.importorskip("langchain", reason="langchain comes with make test-clients")
    from langchain.agents.middleware import ClearToolUsesEdit
    from langchain_core.messages import AIMessage, ToolMessage

    edit = ClearToolUsesEdit(**clear_tool_uses_arguments(trigger_tokens=1, keep=1))
    messages: list[Any] = []
    for index, name in enumerate(["read_memory", "read_file", "read_file"]):
        call = {"id": str(index), "name": name, "args": {}}
        messages += [
            AIMessage("", tool_calls=[call]),
            ToolMessage(LONG, tool_call_id=str(index), name=name),
        ]
    edit.apply(messages, count_tokens=lambda given: 1_000)
    texts = [each.content for each in messages if isinstance(each, ToolMessage)]
    assert [text == LONG for text in texts] == [True, False, True]
