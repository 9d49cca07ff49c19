"""Whose tools: which results may go, and which tools have a path, in the words of a host."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from pinfold.compaction.planner import Role
from pinfold_protocol.compaction import CompactSettings, Names

BRIDGE = "tool_call"
"""A host's tool that calls another one: `{name, arguments}`."""

_LEGACY = {"replace": "edit", "search_file_content": "grep_search"}
_CLEARABLE = frozenset(
    (
        *("read_file", "run_shell_command", "grep_search", "glob", "web_fetch", "web_search"),
        *("read_mcp_resource", "edit", "write_file", "skill", "read_memory"),
    )
)
_OURS = re.compile(r"mcp__.+__(read_file|read_memory|write_file|edit)", re.IGNORECASE | re.DOTALL)
_READS = {"read_file": "file_path", "read_memory": "file_path"}
_CHANGES: dict[str, Role] = {"edit": "edit", "write_file": "write"}
# What hosts call their tools that change a file, in whose own words `reads` is given.
_HOST_CHANGES: dict[str, Role] = {
    **_CHANGES,
    "multiedit": "edit",
    "notebookedit": "edit",
    "write": "write",
}
_HOST_ARGUMENTS = ("file_path", "filePath", "notebook_path")


class Known(msgspec.Struct, frozen=True):
    """One tool. `name` is its canonical name, `kind` what its results are, `arguments` those that
    may hold its path. `looked_at`: whether the arguments of its calls matter at all."""

    name: str
    kind: Literal["tool", "other"]
    role: Role | None = None
    arguments: tuple[str, ...] = ()
    looked_at: bool = False


UNKNOWN = Known("", "other")


class Tools(dict[str, Known]):
    """What names stand for, under the settings of one request: found out once for each name.
    Names are told apart without regard to case, but for the two legacy ones."""

    def __init__(self, settings: CompactSettings) -> None:
        super().__init__()
        self._clearable = settings.clearable
        self._listed = _folded(settings.clearable)
        self._reads = _READS if settings.reads is None else _lowered(settings.reads)
        self._by_default = settings.reads is None

    def __missing__(self, name: str) -> Known:
        self[name] = known = self._find(name)
        return known

    def _find(self, name: str) -> Known:
        plain = _LEGACY.get(name) or name.lower()
        ours = _OURS.fullmatch(name)
        canonical = ours[1].lower() if ours else plain
        kind: Literal["tool", "other"] = "tool" if self._goes(plain, canonical) else "other"
        role, arguments = self._path(canonical if self._by_default else plain)
        known = canonical if ours or canonical in _CLEARABLE or canonical == BRIDGE else name
        return Known(known, kind, role, arguments, bool(arguments) or canonical == BRIDGE)

    def _path(self, name: str) -> tuple[Role | None, tuple[str, ...]]:
        """What the tool does with a file, and the arguments that may say which."""
        if name in self._reads:
            return "read", (self._reads[name],)
        role = (_CHANGES if self._by_default else _HOST_CHANGES).get(name)
        if role is None:
            return None, ()
        return role, ("file_path",) if self._by_default else _HOST_ARGUMENTS

    def _goes(self, plain: str, canonical: str) -> bool:
        if self._clearable is None:
            return canonical in _CLEARABLE
        return self._clearable == "*" or plain in self._listed


def _folded(names: Names | None) -> frozenset[str]:
    listed = names if isinstance(names, list) else []
    return frozenset(_LEGACY.get(name) or name.lower() for name in listed)


def _lowered(reads: Mapping[str, str]) -> dict[str, str]:
    return {_LEGACY.get(name) or name.lower(): argument for name, argument in reads.items()}
