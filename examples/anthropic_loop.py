"""A loop for Anthropic's Messages API that keeps what was read of memory.

`python -m anthropic_loop`, in `examples/`. The API clears old tool results by itself, by the name
of the tool (`context_management`); pinfold's `read_memory` is the name that it is told to keep.
Here a stand-in answers, which clears as the API's documentation says.
"""

import asyncio
import json
from typing import Any, Protocol

from pinfold_protocol.client import Client, Session
from pinfold_protocol.hosts import context_management
from python_host.agent import offered, tool_result
from python_host.place import RULES, Place, place

Json = dict[str, Any]
BETA = "context-management-2025-06-27"
MODEL = "claude-sonnet-5-5"
MOST_STEPS = 20


class Messages(Protocol):
    """What is used of `anthropic.AsyncAnthropic().beta.messages`."""

    async def create(self, **request: Any) -> Any:
        """A message, with `to_dict()`."""


async def converse(messages: Messages, session: Session, question: str) -> str:
    """One question, and the answer after all tool calls. Raises RuntimeError where the model calls
    tools without end."""
    history: list[Json] = [{"role": "user", "content": question}]
    tools = [offered(tool) for tool in await session.tools()]
    for _ in range(MOST_STEPS):
        reply = await messages.create(
            model=MODEL,
            max_tokens=1024,
            betas=[BETA],
            system="\n".join(["You are a careful programmer.", *session.opened.prompt_rules]),
            tools=tools,
            messages=history,
            context_management=context_management(trigger_tokens=1_000, keep=1),
        )
        content = reply.to_dict()["content"]
        history.append({"role": "assistant", "content": content})
        results = [
            tool_result(block["id"], await session.call(block["name"], block["input"], block["id"]))
            for block in content
            if block["type"] == "tool_use"
        ]
        if not results:
            return "".join(block["text"] for block in content if block["type"] == "text")
        history.append({"role": "user", "content": results})
    raise RuntimeError(f"the model still calls tools after {MOST_STEPS} steps")


class StandIn:
    """The API's side of it, as JSON: clears what it is told to, then plays a script.

    `seen` is the conversation as the model would see it, request by request.
    """

    def __init__(self, calls: list[tuple[str, Json]], last: str) -> None:
        self._calls = calls
        self._last = last
        self.seen: list[list[Json]] = []

    def respond(self, request: Json) -> Json:
        """A message of the API, for the body of a request."""
        (edit,) = request["context_management"]["edits"]
        history = json.loads(json.dumps(request["messages"]))
        cleared = clear_tool_uses(history, edit)
        self.seen.append(history)
        step = len(self.seen) - 1
        content: Json = {"type": "text", "text": self._last}
        if step < len(self._calls):
            name, given = self._calls[step]
            content = {"type": "tool_use", "id": f"toolu_{step}", "name": name, "input": given}
        applied = {"type": edit["type"], "cleared_tool_uses": cleared, "cleared_input_tokens": 0}
        return {
            "id": f"msg_{step}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [content],
            "stop_reason": "end_turn" if content["type"] == "text" else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": tokens(history), "output_tokens": 1},
            "context_management": {"applied_edits": [applied] if cleared else []},
        }

    async def create(self, **request: Any) -> "Reply":
        """In the place of `beta.messages.create`."""
        return Reply(self.respond(request))


class Reply:
    """In the place of a `BetaMessage`."""

    def __init__(self, message: Json) -> None:
        self._message = message

    def to_dict(self) -> Json:
        """The message as JSON."""
        return self._message


def tokens(history: list[Json]) -> int:
    """An estimate: four characters each."""
    return len(json.dumps(history)) // 4


def clear_tool_uses(history: list[Json], edit: Json) -> int:
    """`clear_tool_uses_20250919`, on the history: how many results were cleared."""
    if tokens(history) <= edit["trigger"]["value"]:
        return 0
    blocks = [
        b for message in history if isinstance(message["content"], list) for b in message["content"]
    ]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    results = [block for block in blocks if block["type"] == "tool_result"]
    old = results[: len(results) - edit["keep"]["value"]]
    gone = [each for each in old if names[each["tool_use_id"]] not in edit["exclude_tools"]]
    for each in gone:
        each["content"] = "[cleared]"
    return len(gone)


def script(at: Place) -> list[tuple[str, Json]]:
    """One read of memory, then source until it is too much."""
    source = [("read_file", {"file_path": at.file(f"src/part{n}.py")}) for n in range(4)]
    return [("read_memory", {"file_path": at.topic("pinned/releases.md")}), *source]


def check(seen: list[list[Json]]) -> tuple[str, int]:
    """What the model saw last: its memory, and how many results were gone. Raises AssertionError
    if memory is among those."""
    results = [
        block["content"]
        for message in seen[-1]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    gone = [each for each in results if each == "[cleared]"]
    assert results[0] == [{"type": "text", "text": RULES}], "memory was lost"
    assert len(gone) == 3 and len(results) == 5, results
    return results[0][0]["text"], len(gone)


async def run(at: Place) -> None:
    """The conversation, and what must be true of it."""
    stand_in = StandIn(script(at), "On Tuesdays, and the source has four parts.")
    messages: Messages = stand_in  # the real one: anthropic.AsyncAnthropic().beta.messages
    async with await Client.spawn() as client:
        session = await client.open_session("extraction", at.project, memory=at.memory)
        print(await converse(messages, session, "When do we release? Look at the source, too."))
    kept, gone = check(stand_in.seen)
    print(f"{gone} old results were cleared by the API; the memory read is still there:")
    print("  " + kept.splitlines()[-1])


if __name__ == "__main__":
    with place() as fresh:
        asyncio.run(run(fresh))
