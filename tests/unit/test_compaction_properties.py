"""What holds of every history, in every format: nothing that must stay goes, and nothing moves."""

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.compaction import Evidence, compact, examine
from pinfold_protocol.compaction import (
    CLEARED_TEXT,
    CompactParams,
    CompactSettings,
    ForceTrigger,
    Format,
    PressureTrigger,
    ResultsTrigger,
    Trigger,
    TurnTrigger,
)

PICTURE = "data:image/png;base64,AAAA"
TOOLS = ("read_file", "grep_search", "edit", "write_file", "mcp__other__thing", "read_memory")


class Event(msgspec.Struct, frozen=True):
    """A call and its result, in no format."""

    tool: str
    path: str | None
    text: str
    error: bool
    media: bool
    call_id: str | None


def gemini(event: Event) -> list[Any]:
    call: dict[str, Any] = {"name": event.tool, "args": {"file_path": event.path}}
    said: dict[str, Any] = {"name": event.tool}
    said["response"] = {"error" if event.error else "output": event.text}
    if event.media:
        said["parts"] = [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    if event.call_id is not None:
        call["id"] = said["id"] = event.call_id
    return [
        {"role": "model", "parts": [{"functionCall": call, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": said}]},
    ]


def anthropic(event: Event) -> list[Any]:
    use = {"type": "tool_use", "id": event.call_id, "name": event.tool}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    content: Any = event.text
    if event.media:
        source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
        content = [{"type": "text", "text": event.text}, {"type": "image", "source": source}]
    said = {"type": "tool_result", "tool_use_id": event.call_id, "content": content}
    return [
        {"role": "assistant", "content": [thought, {**use, "input": {"file_path": event.path}}]},
        {"role": "user", "content": [said | ({"is_error": True} if event.error else {})]},
    ]


def chat(event: Event) -> list[Any]:
    function = {"name": event.tool, "arguments": json.dumps({"file_path": event.path})}
    calls = [{"id": event.call_id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": event.call_id, "content": event.text},
    ]


def items(event: Event) -> list[Any]:
    arguments = json.dumps({"file_path": event.path})
    call = {"type": "function_call", "name": event.tool, "arguments": arguments}
    output: Any = event.text
    if event.media:
        output = [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}]
    return [
        call | {"call_id": event.call_id},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "function_call_output", "call_id": event.call_id, "output": output},
    ]


def records(event: Event) -> list[Any]:
    record = {"tool": event.tool, "path": event.path, "chars": len(event.text)}
    return [record | {"error": event.error, "media": int(event.media), "callId": event.call_id}]


BUILDERS: dict[str, tuple[Format, Callable[[Event], list[Any]]]] = {
    "gemini": ("gemini", gemini),
    "anthropic": ("anthropic", anthropic),
    "openai chat": ("openai", chat),
    "openai items": ("openai", items),
    "records": ("records", records),
}

events = st.builds(
    Event,
    tool=st.sampled_from(TOOLS),
    path=st.sampled_from(["/mem/a.md", "/mem/b.md", "/src/a.py", "/src/b.py", "", None]),
    text=st.sampled_from(["", "x", "y" * 40, "\U0001f600" * 30, "é" * 300, CLEARED_TEXT]),
    error=st.booleans(),
    media=st.booleans(),
    call_id=st.sampled_from(["c1", "c2", "c3", "c4", "c5", "c6", "", None]),
)
triggers: st.SearchStrategy[Trigger] = st.one_of(
    st.just(ForceTrigger()),
    st.just(PressureTrigger()),
    st.builds(ResultsTrigger),
    st.builds(TurnTrigger, st.one_of(st.none(), st.floats(0, 1e5))),
)
settings = st.builds(
    CompactSettings,
    keep_recent=st.one_of(st.none(), st.integers(-1, 4)),
    idle_threshold_minutes=st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.5, 60.0])),
    size_threshold_chars=st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 50.0, 301.0])),
    clear_at_least_chars=st.sampled_from([None, 0, 100]),
    preserved_counts=st.booleans(),
    clearable=st.sampled_from([None, "*", ["read_file", "Grep_Search"]]),
)


def is_managed(path: str) -> bool:
    return path.startswith("/mem/")


@pytest.mark.parametrize("name", BUILDERS)
@given(history=st.lists(events, max_size=12), trigger=triggers, given_settings=settings)
def test_what_holds_of_every_plan(
    name: str, history: list[Event], trigger: Trigger, given_settings: CompactSettings
) -> None:
    style, build = BUILDERS[name]
    messages = [message for event in history for message in build(event)]
    original = copy.deepcopy(messages)
    params = CompactParams(style, messages, trigger, settings=given_settings)
    result, verdicts = examine(params, Evidence(is_managed))
    assert result == compact(params, Evidence(is_managed))

    # Nothing moves, and the input stays as it is.
    assert messages == original
    assert len(result.history) == len(messages)
    touched = {each.message for each in result.cleared}
    for index, (old, new) in enumerate(zip(messages, result.history, strict=True)):
        assert (new is old) if index not in touched else new != old
        assert _identity(new) == _identity(old)

    # Nothing goes that must stay.
    cleared = {(each.message, each.part) for each in result.cleared}
    for verdict in verdicts:
        found = verdict.found
        assert ((found.message, found.part) in cleared) == (verdict.why == "cleared")
        if found.preserved or found.error or found.cleared:
            assert verdict.why != "cleared"
    keep = max(1, 5 if given_settings.keep_recent is None else given_settings.keep_recent)
    ordinary = [
        each.found
        for each in verdicts
        if each.found.kind == "tool" and each.found.chars and not each.found.preserved
    ]
    if result.meta is not None and result.meta.reason == "size":
        for found in ordinary[-keep:]:
            assert (found.message, found.part) not in cleared

    # Once is enough.
    again = compact(msgspec.structs.replace(params, history=result.history), Evidence(is_managed))
    assert again.cleared == []
    assert again.history == result.history
    assert again.report.preserved == result.report.preserved


def _identity(message: Any) -> Any:
    """Who says what, in which order and under which ids; not what a result says."""
    if not isinstance(message, dict):
        return message
    names = ("role", "type", "id", "name", "tool_use_id", "tool_call_id", "call_id", "callId")
    own = {name: message[name] for name in names if name in message}
    response, call = message.get("functionResponse"), message.get("functionCall")
    inside = None if "tool_use_id" in message else message.get("parts") or message.get("content")
    parts = [_identity(each) for each in inside] if isinstance(inside, list) else None
    return (
        own,
        call,
        message.get("tool_calls"),
        _identity({**response, "parts": None} if response else None),
        parts,
    )


@given(history=st.lists(events, max_size=12))
def test_a_managed_read_with_an_unambiguous_id_always_stays(history: list[Event]) -> None:
    for style, build in BUILDERS.values():
        numbered = [msgspec.structs.replace(e, call_id=f"n{i}") for i, e in enumerate(history)]
        messages = [message for event in numbered for message in build(event)]
        params = CompactParams(
            style, messages, ForceTrigger(), settings=CompactSettings(keep_recent=1)
        )
        gone = {each.call_id for each in compact(params, Evidence(is_managed)).cleared}
        for event in numbered:
            if event.tool in ("read_file", "read_memory") and (event.path or "").startswith(
                "/mem/"
            ):
                assert event.call_id not in gone


def steps_with_a_change(
    steps: int, chars: int, threshold: int, memory: int, *, preserved_counts: bool
) -> int:
    """How often the history changes while an agent reads ordinary files beside its memory."""
    settings = CompactSettings(size_threshold_chars=threshold, preserved_counts=preserved_counts)
    loaded = Event("read_file", "/mem/a.md", "m" * memory, False, False, "memory")
    history = gemini(loaded)
    changes = 0
    for step in range(steps):
        history += gemini(Event("read_file", f"/src/{step}", "x" * chars, False, False, f"c{step}"))
        params = CompactParams("gemini", history, ResultsTrigger(), settings=settings)
        result = compact(params, Evidence(is_managed))
        changes += bool(result.cleared)
        history = result.history
        assert history[1]["parts"][0]["functionResponse"]["response"]["output"] == "m" * memory
    return changes


@pytest.mark.parametrize("memory", [0, 20_000, 49_000, 500_000])
@pytest.mark.parametrize("chars", [500, 1_000, 4_000])
def test_the_cache_is_thrown_away_seldom_whatever_is_preserved(memory: int, chars: int) -> None:
    """C214, C215: at most one change in threshold / (2 × size) steps."""
    threshold, steps = 50_000, 200
    changes = steps_with_a_change(steps, chars, threshold, memory, preserved_counts=False)
    assert 1 <= changes <= steps * 2 * chars / threshold


def test_what_was_observed_threw_it_away_at_every_step() -> None:
    changes = steps_with_a_change(60, 1_000, 50_000, 60_000, preserved_counts=True)
    assert changes > 50
