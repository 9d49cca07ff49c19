"""What is to be said of an event before a tool, by the code behind `policy/explain`.

A path is judged as it came and as the host will read it, from every directory that it may count
from; any denial wins.
"""

import os

import attrs

from pinfold.deciding import Ground, decided, judged_command
from pinfold.doors.hook.events import Event, NotUnderstood
from pinfold.doors.hook.flags import BadFlags, Flags
from pinfold.doors.hook.hosts import HOSTS, Host, HostTool
from pinfold.doors.hook.lightly import load
from pinfold.memory.layouts import Surroundings
from pinfold.memory.roots import configured_roots, find_git_root
from pinfold.paths.literal import expand, home_directory
from pinfold.paths.volume import Volumes
from pinfold.policy.decide import decide
from pinfold.policy.facts import Call
from pinfold.policy.names import collapse
from pinfold.policy.rules import Rule
from pinfold.policy.scopes import effective, values_of
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import RpcError, ToolError
from pinfold_protocol.session import PROFILES, MemoryOptions, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MOST_STRINGS = 2000
"""Of the arguments of a tool that is not known; more are too many to look at."""

_STRENGTH = {"deny": 0, "ask": 1, "allow": 2}
_NESTED = 8
"""How often a tool may call a tool."""


class Unnamed(NotUnderstood):
    """A tool that names nothing that could be judged."""


class Bench:
    """Where events of one host are judged: its session, as flags and event say. Raises BadFlags."""

    def __init__(self, flags: Flags, event: Event) -> None:
        self.host = _host(flags)
        self.env = dict(os.environ)
        self.home = home_directory(self.env)
        here = event.cwd if event.cwd.startswith("/") else _working_directory()
        named = flags.project or _first(self.env, self.host)
        self.project = collapse(named or here)
        self.bases = tuple(dict.fromkeys((here, self.project)))
        around = Surroundings(self.project, find_git_root(self.project), self.env, self.home, here)
        options = MemoryOptions(
            flags.layout or self.host.layout,  # type: ignore[arg-type]
            flags.memory.get("project"),
            flags.memory.get("user"),
            flags.memory.get("team"),
        )
        try:
            roots = configured_roots(options, around)
        except RpcError as error:
            raise BadFlags(error.message) from None
        in_force = effective(_profile(flags), _overrides(flags), self._rules(flags))  # type: ignore[arg-type]
        self.ground = Ground(roots, in_force, Volumes())

    def _rules(self, flags: Flags) -> "tuple[Rule, ...]":
        if flags.rules is None:
            return ()
        load("pinfold.doors.hook.rules")
        from pinfold.doors.hook.rules import read_file

        return read_file(flags.rules, self.host, self.project, self.home)

    @property
    def scope(self) -> Scope:
        """The scope in force."""
        return self.ground.effective.scope

    def judge(self, tool: str, arguments: "dict[str, Any]", depth: int = 0) -> Decision | None:
        """The decision that counts; None where there is no opinion.

        Raises NotUnderstood, and ToolError where something cannot be looked at.
        """
        known = self.host.tool(tool)
        if known is None:
            return self._unknown(tool, arguments)
        if known.kind == "none":
            return None
        if known.kind == "call":
            return self._called(known, arguments, depth)
        if known.kind == "shell":
            return self._shell(known, arguments)
        return self._file(known, arguments)

    def _called(self, tool: HostTool, arguments: "dict[str, Any]", depth: int) -> Decision | None:
        name, inner = (arguments.get(member) for member in tool.paths)
        if not isinstance(name, str) or not isinstance(inner, dict) or depth == _NESTED:
            raise Unnamed(f"its {' or '.join(tool.paths)} cannot be understood")
        return self.judge(name, inner, depth + 1)

    # Tools that are known

    def _file(self, tool: HostTool, arguments: "dict[str, Any]") -> Decision:
        managed_only = tool.name == "read_memory"
        call = Call(tool.name, "change" if tool.kind == "change" else "read", managed_only)
        raw = list(_named(tool, arguments))
        if not raw and tool.kind == "list":
            raw = [self.bases[0]]
        raw += _starts(tool, arguments, raw)
        if not raw:
            raise Unnamed(f"it has no {tool.paths[0]}")
        return _strongest(self._decide(call, path) for each in raw for path in self._paths(each))

    def _shell(self, tool: HostTool, arguments: "dict[str, Any]") -> Decision:
        command = arguments.get(tool.paths[0])
        if not isinstance(command, str):
            raise Unnamed(f"it has no {tool.paths[0]}")
        if self.scope.shell != "read-only":
            return decide(Call(tool.name, "shell"), None, self.ground.effective)
        load("pinfold.memory.repositories", "pinfold.policy.shell.gate")
        given = arguments.get("directory")
        places = self._paths(given) if isinstance(given, str) and given else self.bases[:1]
        return _strongest(
            decide(
                Call(tool.name, "shell", command=self._gate(command, place)),
                None,
                self.ground.effective,
            )
            for place in places
        )

    def _gate(self, command: str, place: str) -> "Any":
        return judged_command(self.ground, command, place, home=self.home, env=self.env)

    # Tools that are not

    def _unknown(self, tool: str, arguments: "dict[str, Any]") -> Decision | None:
        """Where writes or reads are confined, what it does cannot be said; else it may do what it
        likes, but for what is named anywhere in its arguments and is reserved."""
        scope, in_force = self.scope, self.ground.effective
        if scope.confine_writes or scope.confine_reads:
            return decide(Call(tool, "unknown"), None, in_force)
        if not (scope.protect_pinned or in_force.rules):
            return None
        call = Call(tool, "change")
        found: Decision | None = None
        for index, raw in enumerate(_strings(arguments)):
            if index == MOST_STRINGS:
                raise Unnamed(f"it has over {MOST_STRINGS} strings, too many to look at")
            for path in self._plausible(raw):
                decision = self._decide(call, path)
                if decision.decision == "deny":
                    return decision
                if decision.decision == "ask":
                    found = decision
        return found

    def _plausible(self, raw: str) -> "Iterable[str]":
        """The paths that a string may be; none for what no path can be."""
        try:
            return self._paths(_from_uri(raw))
        except ToolError:
            return ()

    # Paths

    def _paths(self, raw: str) -> "list[str]":
        """Every absolute path that it may mean. Raises ToolError for what no path can be."""
        written = [
            expand(reading, base, self.home)
            for reading in self.host.readings(raw)
            for base in self.bases
        ]
        # Hosts fold `..` as text, and the kernel does not.
        return list(dict.fromkeys((*written, *map(collapse, written))))

    def _decide(self, call: Call, path: str) -> Decision:
        with decided(self.ground, call, path) as found:
            return found.decision

    def read_path(self, tool: HostTool, arguments: "dict[str, Any]") -> str:
        """The path that the host has read. Raises NotUnderstood, ToolError."""
        for raw in _named(tool, arguments):
            return expand(self.host.readings(raw)[-1], self.bases[0], self.home)
        raise Unnamed(f"it has no {tool.paths[0]}")


def _host(flags: Flags) -> Host:
    if flags.host not in HOSTS:
        raise BadFlags(f"--host: must be {' or '.join(HOSTS)}, not {flags.host!r}")
    return HOSTS[flags.host]


def _profile(flags: Flags) -> str:
    profile = flags.profile or "main"
    if profile not in PROFILES:
        raise BadFlags(f"--profile: must be one of {', '.join(PROFILES)}, not {profile!r}")
    return profile


def _overrides(flags: Flags) -> "dict[str, object]":
    names = {_on_wire(field.name): field.name for field in attrs.fields(Scope)}
    overrides: dict[str, object] = {}
    for member, value in flags.scope.items():
        if member not in names:
            raise BadFlags(f"--scope: there is no member {member!r}; it has {', '.join(names)}")
        values = values_of(names[member])
        if value not in values:
            shown = " or ".join(str(each).lower() for each in values)
            raise BadFlags(f"--scope: {member} must be {shown}, not {value!r}")
        overrides[names[member]] = value
    return overrides


def _on_wire(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)


def _first(env: "dict[str, str]", host: Host) -> str | None:
    """The project that the host names in the environment, where an agent cannot change it."""
    named = (env.get(name, "") for name in host.own)
    return next((path for path in named if path.startswith("/")), None)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _named(tool: HostTool, arguments: "dict[str, Any]") -> "Iterator[str]":
    """What the arguments name: what the tool takes, and whatever else looks like a path's name,
    since a host may take it for one. Raises NotUnderstood for a path that is no text."""
    for name, value in arguments.items():
        if name not in tool.paths and not _looks_like_path(name):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each
            elif each is not None:
                raise Unnamed(f"its {name} is no text")


def _starts(tool: HostTool, arguments: "dict[str, Any]", named: "list[str]") -> "list[str]":
    """Where the patterns of a listing begin to look."""
    starts = []
    for pattern in filter(None, map(arguments.get, tool.patterns)):
        if not isinstance(pattern, str):
            raise Unnamed("its pattern is no text")
        fixed = pattern
        for wild in "*?[{(!":
            fixed = fixed.partition(wild)[0]
        start = fixed[: fixed.rfind("/") + 1]
        starts += [start] if start.startswith(("/", "~/")) else [f"{at}/{start}" for at in named]
    return starts


def _looks_like_path(name: str) -> bool:
    folded = name.lower().replace("_", "").replace("-", "")
    return folded.endswith(("path", "paths", "file", "filename", "dir", "directory", "uri"))


def _strings(arguments: "Any") -> "Iterator[str]":
    """Every string at any depth, names of members too, each once."""
    seen, waiting = set(), [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if value and value not in seen:
                seen.add(value)
                yield value
        elif isinstance(value, dict):
            waiting.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _from_uri(raw: str) -> str:
    if raw.lstrip()[:5].lower() != "file:":
        return raw
    from pinfold.paths.uri import from_uri

    try:
        return from_uri(raw.strip(), "uri")
    except RpcError:
        return raw


def _strongest(decisions: "Iterable[Decision]") -> Decision:
    """The strictest; the first of them."""
    return min(decisions, key=lambda decision: _STRENGTH[decision.decision])
