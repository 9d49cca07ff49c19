"""A LangChain agent with pinfold's tools that keeps what it read of memory.

`python -m langchain_loop`, in `examples/`; needs `pip install langchain`. LangChain's own context
editing clears old tool results by the name of the tool; `read_memory` is the one that it keeps.
"""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from pinfold_protocol.client import Client, Session
from pinfold_protocol.hosts import clear_tool_uses_arguments
from pinfold_protocol.tools import Tool
from python_host.place import RULES, Place, place, read

Json = dict[str, Any]


def as_langchain(session: Session, tool: Tool) -> BaseTool:
    """One of the session's tools. What a model should read of a failure is LangChain's
    `ToolException`, which becomes a tool message with the status "error"."""

    async def call(**given: Any) -> str:
        result = await session.call(tool.name, given)
        if result.is_error:
            raise ToolException(result.text)
        return result.text

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=call,
        handle_tool_error=True,
    )


async def agent_for(session: Session, model: BaseChatModel) -> Any:
    """An agent whose tools go through the session, and whose old results go but for memory."""
    edit = ClearToolUsesEdit(**clear_tool_uses_arguments(trigger_tokens=1_000, keep=1))
    return create_agent(
        model,
        [as_langchain(session, tool) for tool in await session.tools()],
        system_prompt="\n".join(["You are a careful programmer.", *session.opened.prompt_rules]),
        middleware=[ContextEditingMiddleware(edits=[edit])],
    )


class ScriptedChatModel(BaseChatModel):
    """Plays a script of tool calls, and notes what it was sent. The place of `ChatOpenAI` & co."""

    calls: list[tuple[str, Json]]
    last: str
    seen: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> "ScriptedChatModel":
        """The script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        step = len(self.seen)
        self.seen.append(list(messages))
        message = AIMessage(self.last)
        if step < len(self.calls):
            name, given = self.calls[step]
            message = AIMessage("", tool_calls=[{"id": str(step), "name": name, "args": given}])
        return ChatResult(generations=[ChatGeneration(message=message)])


def script(at: Place) -> list[tuple[str, Json]]:
    """One read of memory, an attack on it, then source until it is too much."""
    pinned = at.topic("pinned/releases.md")
    source = [("read_file", {"file_path": at.file(f"src/part{n}.py")}) for n in range(4)]
    return [
        ("read_memory", {"file_path": pinned}),
        ("write_file", {"file_path": pinned, "content": "Any day.\n"}),
        *source,
    ]


async def run(at: Place) -> None:
    """The conversation, and what must be true of it."""
    model = ScriptedChatModel(calls=script(at), last="On Tuesdays; the source has four parts.")
    async with await Client.spawn() as client:
        session = await client.open_session("extraction", at.project, memory=at.memory)
        agent = await agent_for(session, model)
        asked = {"role": "user", "content": "When do we release? Look at the source, too."}
        done = await agent.ainvoke({"messages": [asked]})
    print(done["messages"][-1].content)
    results = [each for each in model.seen[-1] if isinstance(each, ToolMessage)]
    memory, attack, *source = results
    assert memory.content == RULES, "memory was lost"
    assert memory.name == "read_memory" and len(source) == 4
    cleared = [each for each in results if each.response_metadata.get("context_editing")]
    assert cleared == [attack, *source[:-1]], cleared
    print(f"{len(cleared)} old results were cleared by LangChain; the memory read is still there")
    denial = next(each for each in model.seen[2] if getattr(each, "name", "") == "write_file")
    assert isinstance(denial, ToolMessage) and denial.status == "error"
    assert read(at.topic("pinned/releases.md")) == RULES.encode()
    print("the model was told:", str(denial.content).splitlines()[0])


if __name__ == "__main__":
    with place() as fresh:
        asyncio.run(run(fresh))
