"""The tools, by name; and the tools of hosts that `policy/explain` answers for."""

from collections.abc import Iterable

import msgspec

from pinfold.policy.facts import Action, Call
from pinfold.tools.base import ToolType
from pinfold.tools.edit import EDIT
from pinfold.tools.read_file import READ_FILE, READ_MEMORY
from pinfold.tools.write_file import WRITE_FILE
from pinfold_protocol.errors import short
from pinfold_protocol.tools import Tool

TOOLS: dict[str, ToolType] = {
    tool.name: tool for tool in (READ_FILE, READ_MEMORY, WRITE_FILE, EDIT)
}
_CALLS = {tool.name: Call(tool.name, tool.action, tool.managed_only) for tool in TOOLS.values()}
# A host adds this argument to every schema, and sends it along.
IGNORED_ARGUMENTS = frozenset({"wait_for_previous"})


class HostTool(msgspec.Struct, frozen=True):
    """A tool that a host runs itself: its path argument, None where it has none."""

    action: Action
    path_argument: str | None


HOST_TOOLS: dict[str, HostTool] = {
    "grep_search": HostTool("read", "path"),
    "list_directory": HostTool("read", "path"),
    "run_shell_command": HostTool("shell", None),
}


def no_such_tool(name: str, tools: Iterable[str]) -> str:
    """What is wrong with a tool's name, and which there are."""
    return f"there is no tool called {short(name)!r}; there are {short(', '.join(sorted(tools)))}"


def offered() -> list[Tool]:
    """The tools as `tools/list` shows them."""
    return [
        Tool(tool.name, tool.description, tool.input_schema, tool.annotations)
        for tool in TOOLS.values()
    ]


def as_call(name: str) -> Call:
    """A tool by name, as the policy sees it."""
    if ours := _CALLS.get(name):
        return ours
    if host := HOST_TOOLS.get(name):
        return Call(name, host.action)
    return Call(name, "unknown")
