"""The one table of our methods: what goes in, what comes out, who may send it.

Types are named here and imported when they are first asked for: making them is what takes longest
when a gateway starts, and few hosts need them all.
"""

from functools import cache
from importlib import import_module
from typing import Any, Literal

import msgspec

from pinfold_protocol.convert import structure

INITIALIZE = "initialize"
INITIALIZED = "initialized"
SHUTDOWN = "shutdown"
EXIT = "exit"
CANCEL_REQUEST = "$/cancelRequest"

SESSION_OPEN = "session/open"
SESSION_CONFIGURE = "session/configure"
SESSION_CLOSE = "session/close"
SESSION_LIST = "session/list"
TURN_BEGIN = "turn/begin"
TURN_END = "turn/end"
MEMORY_ROOTS = "memory/roots"
MEMORY_INDEX = "memory/index"
TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
TOOLS_DID_CHANGE = "tools/didChange"
POLICY_EXPLAIN = "policy/explain"
CONTEXT_COMPACT = "context/compact"
CONTEXT_RESET = "context/reset"
MEMORY_DID_CHANGE = "memory/didChange"
FILE_DID_CHANGE = "file/didChange"
PERMISSION_REQUEST = "permission/request"


class Method(msgspec.Struct, frozen=True):
    """A method of ours: its params and result types (`module.Class`, below this package), and who
    sends it. A notification has no result."""

    params_name: str
    result_name: str | None
    direction: Literal["host-to-gateway", "gateway-to-host"] = "host-to-gateway"

    @property
    def params(self) -> type[Any]:
        """The type of its params."""
        return _type(self.params_name)

    @property
    def result(self) -> type[Any] | None:
        """The type of its result."""
        return None if self.result_name is None else _type(self.result_name)


@cache
def _type(name: str) -> type[Any]:
    module, _, cls = name.partition(".")
    found: type[Any] = getattr(import_module(f"pinfold_protocol.{module}"), cls)
    return found


def read_params(method: str, params: Any) -> Any:
    """The params of one of our methods, as its type. Raises RpcError (-32602), see `structure`."""
    return structure(params, METHODS[method].params)


METHODS: dict[str, Method] = {
    SESSION_OPEN: Method("session.SessionOpenParams", "session.SessionResult"),
    SESSION_CONFIGURE: Method("session.SessionConfigureParams", "session.SessionResult"),
    SESSION_CLOSE: Method("session.SessionParams", "session.SessionCloseResult"),
    SESSION_LIST: Method("session.SessionListParams", "session.SessionListResult"),
    TURN_BEGIN: Method("session.TurnBeginParams", "session.TurnResult"),
    TURN_END: Method("session.TurnEndParams", "session.TurnEndResult"),
    MEMORY_ROOTS: Method("session.SessionParams", "session.RootsResult"),
    MEMORY_INDEX: Method("memory.MemoryIndexParams", "memory.MemoryIndexResult"),
    TOOLS_LIST: Method("tools.ToolsListParams", "tools.ToolsListResult"),
    TOOLS_CALL: Method("tools.ToolsCallParams", "tools.ToolResult"),
    POLICY_EXPLAIN: Method("decision.ExplainParams", "decision.Decision"),
    CONTEXT_COMPACT: Method("compaction.CompactParams", "compaction.CompactResult"),
    CONTEXT_RESET: Method("session.SessionParams", "compaction.ResetResult"),
    TOOLS_DID_CHANGE: Method("tools.ToolsDidChangeParams", None, "gateway-to-host"),
    MEMORY_DID_CHANGE: Method("session.MemoryDidChangeParams", None, "gateway-to-host"),
    FILE_DID_CHANGE: Method("session.FileDidChangeParams", None, "gateway-to-host"),
    PERMISSION_REQUEST: Method(
        "decision.PermissionParams", "decision.PermissionResult", "gateway-to-host"
    ),
}
