"""What stands in for a model: it plays a script, and notes what it was told."""

from collections.abc import Iterable
from itertools import count
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]
Step = str | list[Call]
"""Something to say, which ends the turn, or tools to call at once."""


class ScriptedModel:
    """A `Model` that does one step of its script for each request."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)
        self._ids = count(1)
        self.systems: list[str] = []
        self.offered: list[str] = []
        self.messages: list[Json] = []

    async def answer(self, system: str, messages: list[Json], tools: list[Json]) -> list[Json]:
        """The blocks of the next step. Raises StopAsyncIteration at the end of the script."""
        self.systems.append(system)
        self.messages = list(messages)
        self.offered = [tool["name"] for tool in tools]
        step = next(self._steps, None)
        if step is None:
            raise StopAsyncIteration("the script is at its end")
        if isinstance(step, str):
            return [{"type": "text", "text": step}]
        return [
            {"type": "tool_use", "id": f"toolu_{next(self._ids)}", "name": name, "input": given}
            for name, given in step
        ]


def results(messages: list[Json]) -> list[tuple[str, bool]]:
    """Every tool result in a conversation, oldest first: its text, and whether it failed."""
    found = []
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                content = block["content"]  # a string where it was cleared
                text = content if isinstance(content, str) else content[0]["text"]
                found.append((text, block["is_error"]))
    return found
