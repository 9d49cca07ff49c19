"""What the command line of `serve` says of an MCP connection, and where the user's file is.

Apart from `config`, because most starts need no more than this, and it costs nothing to import.
"""

import os

from pinfold.places import user_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PROFILES = ("main", "extraction", "dream", "remember")
_CHOICES = {"--profile": PROFILES, "--layout": ("qwen", "claude")}
_MOST_PREFIX = 32


class Flags:
    """None where it says nothing. `project` is made absolute, `config` is as given; `scope` in the
    names of the wire. `upstream` is a name and the command that starts it: none where the user's
    file says that."""

    def __init__(
        self,
        profile: str | None = None,
        project: str | None = None,
        config: str | None = None,
        layout: str | None = None,
        tool_prefix: str | None = None,
        scope: "dict[str, Any] | None" = None,
        upstream: "Sequence[str]" = (),
    ) -> None:
        self.upstream = upstream[0] if upstream else None
        self._command = upstream[1:]
        self.profile = profile
        self.project = None if project is None else _absolute(os.path.expanduser(project))
        self.config = config
        self.layout = layout
        self.tool_prefix = tool_prefix
        self.scope = scope or {}

    @property
    def upstreams(self) -> "dict[str, Any]":
        """The one that it names with its command, as in `initializationOptions.pinfold`."""
        if self.upstream is None or not self._command:
            return {}
        return {self.upstream: {"command": self._command[0], "args": list(self._command[1:])}}

    @property
    def suffice(self) -> bool:
        """Whether there is nothing else to read, and nothing wrong: no file, no overrides."""
        configured = self.config is not None or os.path.lexists(default_path())
        unsaid = self.upstream is not None and not self._command
        missing = self.project is not None and not os.path.isdir(self.project)
        return not (configured or self.scope or self.layout or unsaid or missing)


def _absolute(path: str) -> str:
    """As it is, where what it counts from has been removed: there is no such directory then."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


_PLAIN = {
    "--profile": "profile",
    "--project": "project",
    "--config": "config",
    "--layout": "layout",
    "--tool-prefix": "tool_prefix",
}


def read_plain(arguments: "Sequence[str]") -> Flags | None:
    """Flags as most hosts write them, `--name value`; None where argparse is to look, which says
    what is wrong, and costs much to import."""
    found: dict[str, str] = {}
    if len(arguments) % 2:
        return None
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        if name not in _PLAIN or not value or value.startswith("-"):
            return None
        if value not in _CHOICES.get(name, (value,)):
            return None
        found[_PLAIN[name]] = value
    return Flags(**found)  # type: ignore[arg-type]


def default_path() -> str:
    """The user's place for it: on Linux `~/.config/pinfold/config.json`."""
    return user_path("config", "config.json")


def checked_prefix(prefix: str, where: str) -> str:
    """What goes before the names of tools. Raises RpcError (-32602) that names `where`."""
    if len(prefix) > _MOST_PREFIX or not all(
        char.isascii() and (char.isalnum() or char in "_-") for char in prefix
    ):
        from pinfold_protocol.errors import invalid_params

        problem = f"must be up to {_MOST_PREFIX} of a-z, A-Z, 0-9, _ and -"
        raise invalid_params(where, problem)
    return prefix
