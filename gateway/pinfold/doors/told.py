"""What a client is told in the first answer, in both dialects. Imports nothing that costs.

The tables are written down here, so that no types are needed for it; tests compare them.
"""

from pinfold import __version__
from pinfold.flags import PROFILES
from pinfold.memory.prompts import sentences
from pinfold_protocol import PROTOCOL_VERSION, SERVER_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

METHODS = (
    "session/open",
    "session/configure",
    "session/close",
    "session/list",
    "turn/begin",
    "turn/end",
    "memory/roots",
    "memory/index",
    "tools/list",
    "tools/call",
    "policy/explain",
    "context/compact",
    "context/reset",
)
PROTECTING = ("extraction", "dream")
"""The profiles that protect pinned memory."""
HANDSHAKES = ("2024-11-05", "2025-06-18", "2025-11-25")
"""MCP's revisions. Not 2025-03-26, which demands batches."""


def ours() -> "dict[str, Any]":
    """Our capabilities."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "methods": [*METHODS],
        "tools": ["read_file", "read_memory", "write_file", "edit"],
        "profiles": [*PROFILES],
    }


def initialized(editor: "dict[str, Any]") -> "dict[str, Any]":
    """The result of `initialize`. `editor`: capabilities for an editor, empty for other hosts."""
    return {
        "serverInfo": {"name": SERVER_NAME, "version": __version__},
        "capabilities": {**editor, "experimental": {"pinfold": ours()}},
    }


def mcp_initialized(version: str, instructions: str, *, upstream: bool) -> "dict[str, Any]":
    """The same for MCP, in a revision that was agreed on."""
    return {
        "protocolVersion": version,
        "capabilities": mcp_capabilities(upstream=upstream),
        "serverInfo": identity(),
        "instructions": instructions,
    }


def mcp_capabilities(*, stateless: bool = False, upstream: bool = False) -> "dict[str, Any]":
    """What an MCP client may use."""
    resources = {} if stateless else {"subscribe": True, "listChanged": True}
    return {
        **({"tools": {"listChanged": True}, "logging": {}} if upstream else {"tools": {}}),
        "resources": resources,
        "prompts": {},
        "experimental": {"pinfold": ours()},
    }


def identity() -> dict[str, str]:
    """Who answers."""
    return {"name": SERVER_NAME, "title": "pinfold: scoped memory tools", "version": __version__}


def agreed(requested: object) -> str:
    """The revision that was asked for, else the newest before it, else our newest."""
    if isinstance(requested, str) and requested in HANDSHAKES:
        return requested
    before = [each for each in HANDSHAKES if isinstance(requested, str) and each < requested]
    return before[-1] if before else HANDSHAKES[-1]


def instructions(profile: str, prefix: str, *, protected: bool) -> str:
    """For the model: what these tools are, and what holds in this session."""
    about = (
        f"File tools for a {profile} session. Read memory with {prefix}read_memory: what it "
        "returns is kept when a long conversation is compacted. Called with a path outside of "
        "memory, it says where memory is; MEMORY.md there is the index."
    )
    return " ".join([about, *sentences(protected=protected, dreaming=profile == "dream")])
