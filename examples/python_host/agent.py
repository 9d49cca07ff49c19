"""One agent: a session of the gateway, a model, a conversation. This is the part to copy.

Messages, tools and results have the shape of Anthropic's API; another provider's differ in
`offered`, `tool_result` and the format that `compact` names, and in nothing else.
"""

import asyncio
import time
from typing import Any, Protocol

from pinfold_protocol.client import Session
from pinfold_protocol.compaction import (
    CompactMeta,
    CompactSettings,
    ResultsTrigger,
    Trigger,
    TurnTrigger,
)
from pinfold_protocol.session import Profile
from pinfold_protocol.tools import ImageContent, TextContent, Tool, ToolResult

Json = dict[str, Any]
MOST_STEPS = 20
"""How often a model may call tools before it has to say something."""


class Model(Protocol):
    """What answers: the blocks of the assistant's next message."""

    async def answer(self, system: str, messages: list[Json], tools: list[Json]) -> list[Json]:
        """`text` and `tool_use` blocks."""


class Agent:
    """A conversation whose file tools all go through one session."""

    def __init__(
        self,
        session: Session,
        model: Model,
        prompt: str,
        settings: CompactSettings | None = None,
    ) -> None:
        self.session = session
        self.messages: list[Json] = []
        self.compactions: list[CompactMeta] = []
        self._model = model
        self._prompt = prompt
        self._settings = settings
        self._answered: float | None = None

    async def say(self, text: str, turn: Profile | None = None) -> str:
        """One user message, and what the model says in the end. `turn` narrows the session to a
        profile until then, as a visible `/dream` does. Raises RuntimeError where a model calls
        tools without end."""
        idle = None if self._answered is None else time.monotonic() - self._answered
        await self._compact(TurnTrigger(idle))
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
        if turn is None:
            return await self._answer(self.session.opened.prompt_rules)
        async with self.session.turn(turn) as begun:
            return await self._answer(begun.prompt_rules)

    async def _answer(self, rules: list[str]) -> str:
        system = "\n".join([self._prompt, *rules])
        tools = [offered(tool) for tool in await self.session.tools()]
        for _ in range(MOST_STEPS):
            blocks = await self._model.answer(system, self.messages, tools)
            self._answered = time.monotonic()
            self.messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return "".join(block["text"] for block in blocks)
            # They overlap; the gateway keeps changes to one file in this order.
            results = await asyncio.gather(*(self._run(call) for call in calls))
            message = {"role": "user", "content": results}
            await self._compact(ResultsTrigger(message))
            self.messages.append(message)
        raise RuntimeError(f"the model still calls tools after {MOST_STEPS} steps")

    async def _run(self, call: Json) -> Json:
        # The id is how the session knows later which results are memory.
        result = await self.session.call(call["name"], call["input"], call["id"])
        return tool_result(call["id"], result)

    async def _compact(self, trigger: Trigger) -> None:
        """Let the gateway clear what is old, but for memory, where its rules say it is time."""
        made = await self.session.compact(self.messages, "anthropic", trigger, self._settings)
        self.messages = made.history
        if made.meta is not None:
            self.compactions.append(made.meta)


def offered(tool: Tool) -> Json:
    """A tool as the model's API wants to be told of it."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def tool_result(call_id: str, result: ToolResult) -> Json:
    """What the model reads: the content. `meta` is for the host, and stays here."""
    content: list[Json] = []
    for item in result.content:
        if isinstance(item, TextContent):
            content.append({"type": "text", "text": item.text})
        elif isinstance(item, ImageContent):
            source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
            content.append({"type": "image", "source": source})
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": content,
        "is_error": result.is_error,
    }
