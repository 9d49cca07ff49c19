"""What is to be said of an event before a tool, by the code behind `policy/explain`.

A path is judged as it came and as the host will read it, from every directory that it may count
from; any denial wins.
"""

import os
import unicodedata

import msgspec

from pinfold.deciding import Ground, decided, judged_command
from pinfold.doors.hook.events import Event, NotUnderstood
from pinfold.doors.hook.flags import BadFlags, Flags
from pinfold.doors.hook.hosts import HOSTS, Host, HostTool
from pinfold.doors.hook.lightly import load
from pinfold.memory.layouts import Surroundings
from pinfold.memory.roots import RootPath, configured_roots, find_git_root
from pinfold.paths.kernel import platform
from pinfold.paths.literal import expand, home_directory
from pinfold.paths.volume import Volumes
from pinfold.policy.decide import decide
from pinfold.policy.facts import Call, ShellVerdict
from pinfold.policy.names import below, collapse
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

_PINNED_ONLY = effective("main", {"protect_pinned": True})
_STRENGTH = {"deny": 0, "ask": 1, "allow": 2}
_NESTED = 8
"""How often a tool may call a tool."""


class Unnamed(NotUnderstood):
    """A tool that names nothing that could be judged."""


def bench(flags: Flags, event: Event) -> "Bench":
    """For the event of this process, which looks at a few paths and ends. Raises BadFlags."""
    platform.only_walk()
    return Bench(flags, event)


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

    def judge(self, event: Event) -> Decision | None:
        """The decision that counts; None where there is no opinion.

        Raises NotUnderstood, and ToolError where something cannot be looked at.
        """
        known = self.host.tools.get(event.tool)
        if known is not None and known.kind == "none":
            return self._harmless(event.tool)
        return self._judge(event.tool, event.arguments, 0)

    def _judge(self, tool: str, arguments: "dict[str, Any]", depth: int) -> Decision | None:
        known = self.host.tools.get(tool)
        if known is None:
            return self._unknown(tool, arguments)
        if known.kind == "none":
            return self._harmless(tool)
        if known.kind == "call":
            return self._called(known, arguments, depth)
        if known.kind in ("shell", "foreign"):
            return self._shell(known, arguments)
        return self._file(known, arguments)

    def _called(self, tool: HostTool, arguments: "dict[str, Any]", depth: int) -> Decision | None:
        name, inner = (arguments.get(member) for member in tool.paths)
        if not isinstance(name, str) or not isinstance(inner, dict) or depth == _NESTED:
            raise Unnamed(f"its {' or '.join(tool.paths)} cannot be understood")
        return self._judge(name, inner, depth + 1)

    def _harmless(self, tool: str) -> Decision | None:
        """Only a base rule has something to say of a tool that touches no files."""
        in_force = self.ground.effective
        return decide(Call(tool, "read"), None, in_force) if in_force.rules else None

    # Tools that are known

    def _file(self, tool: HostTool, arguments: "dict[str, Any]") -> Decision:
        managed_only = tool.name == "read_memory"
        call = Call(tool.name, "change" if tool.kind == "change" else "read", managed_only)
        raw = list(_named(tool, arguments))
        if tool.kind == "list":  # without a path, or with an empty one, a host looks where it is
            raw = [each for each in raw if self.host.readings(each)[-1]] or [self.bases[0]]
        raw += _starts(tool, arguments, raw)
        if not raw:
            raise Unnamed(f"it has no {tool.paths[0]}")
        return _strongest(self._decide(call, path) for each in raw for path in self._paths(each))

    def _shell(self, tool: HostTool, arguments: "dict[str, Any]") -> Decision:
        in_force = self.ground.effective
        if self.scope.shell != "read-only":
            return decide(Call(tool.name, "shell"), None, in_force)
        command = arguments.get(tool.paths[0])
        if not isinstance(command, str):
            raise Unnamed(f"it has no {tool.paths[0]}")
        if tool.kind == "foreign":
            verdict = ShellVerdict(False, "only commands for bash can be read")
            return decide(Call(tool.name, "shell", command=verdict), None, in_force)
        load("pinfold.memory.repositories", "pinfold.policy.shell.gate")
        given = arguments.get("directory")
        places = self._paths(given) if isinstance(given, str) and given else self.bases[:1]
        return _strongest(
            decide(Call(tool.name, "shell", command=self._gate(command, place)), None, in_force)
            for place in places
        )

    def _gate(self, command: str, place: str) -> ShellVerdict:
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
        found: Decision | None = None
        for index, raw in enumerate(_strings(arguments)):
            if index == MOST_STRINGS:
                raise Unnamed(f"it has over {MOST_STRINGS} strings, too many to look at")
            for path in self._plausible(raw):
                call = Call(tool, "change", tree=not self._is_told_to_all(path))
                decision = self._decide(call, path)
                if decision.decision == "deny":
                    return decision
                if decision.decision == "ask":
                    found = decision
        return found

    def _plausible(self, raw: str) -> "Iterator[str]":
        """The paths that a string may be to a server that nobody here knows: it may fold what is
        too long for us, and put a sign in the place of half a character."""
        for text in _as_uri(raw):
            for path in self._spelt(_repaired(text)):
                try:
                    yield expand(path, "/", self.home)
                except ToolError:
                    continue

    # Paths

    def _paths(self, raw: str) -> "list[str]":
        """Every absolute path that it may mean. Raises ToolError for what no path can be."""
        for reading in self.host.readings(raw):
            expand(reading, self.bases[0], self.home)
        return [expand(path, "/", self.home) for path in self._spelt(raw)]

    def _spelt(self, raw: str) -> "list[str]":
        """As it came and as the host reads it, from each directory; hosts fold `..` as text, and
        the kernel does not."""
        spelt = []
        for reading in self.host.readings(raw):
            if reading.startswith(("/", "~/")) or reading == "~":
                spelt.append(self.home + reading[1:] if reading[0] == "~" else reading)
            elif reading:
                spelt += [f"{base}/{reading}" for base in self.bases]
        spelt += map(collapse, list(spelt))
        if self.host.composes:
            spelt += [unicodedata.normalize("NFC", path) for path in spelt if not path.isascii()]
        return list(dict.fromkeys(spelt))

    def _decide(self, call: Call, path: str) -> Decision:
        """What the session says; and what is pinned for any other project is so here."""
        with decided(self.ground, call, path) as found:
            decision, facts = found.decision, found.facts
        if call.action != "change" or decision.decision == "deny":
            return decision
        if not self.scope.protect_pinned:
            return decision
        target = (facts.target.literal, facts.target.real or facts.target.literal)
        for root in self._other_roots(target):
            ground = msgspec.structs.replace(self.ground, roots=(root,), effective=_PINNED_ONLY)
            with decided(ground, call, path) as other:
                if other.decision.decision == "deny":
                    return other.decision
        return decision

    def _other_roots(self, target: "tuple[str, str]") -> "Iterator[RootPath]":
        """The memory of other projects that a path is in: which project this is can be moved by a
        `.git` that an agent has made, or by a worktree."""
        own = {root.path for root in self.ground.roots}
        anchor = next((root.anchor for root in self.ground.roots if root.anchor), None)
        if anchor is None:
            return
        for base in dict.fromkeys((anchor, _real(anchor))):
            for path in target:
                inside = below(path, f"{base}/projects")
                if inside and (place := f"{base}/projects/{inside[0]}/memory") not in own:
                    own.add(place)
                    yield RootPath("project", place, base)

    def _is_told_to_all(self, path: str) -> bool:
        """Whether it is the project, home or something above: every tool is told of those, so they
        are not taken for what it is to move or to delete."""
        places = (self.home, self.project)
        spared = {*places, *map(_real, places)}
        return any(
            below(each, spelt) is not None for each in spared for spelt in (path, _real(path))
        )

    def read_path(self, tool: HostTool, arguments: "dict[str, Any]") -> str:
        """The path that the host has read. Raises NotUnderstood, ToolError."""
        for raw in _named(tool, arguments):
            path = expand(self.host.readings(raw)[-1], self.bases[0], self.home)
            return unicodedata.normalize("NFC", path) if self.host.composes else path
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
    names = {_on_wire(name): name for name in Scope.__struct_fields__}
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
    """The project that the host names in the environment of its hooks."""
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
        rest = pattern[len(fixed) :]
        start = fixed[: fixed.rfind("/") + 1]
        if ".." in rest or ("{" in rest and "/" in rest):  # it may lead anywhere
            starts.append("/")
        else:
            starts += (
                [start] if start.startswith(("/", "~/")) else [f"{at}/{start}" for at in named]
            )
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


def _as_uri(raw: str) -> "Iterator[str]":
    """A string, and what it is as a `file:` URI to those who are lenient."""
    yield raw
    uri = "".join(char for char in raw if char > " ").replace("\\", "/")
    if uri[:5].lower() == "file:":
        from urllib.parse import unquote

        path = uri[5:].split("#")[0].split("?")[0]
        path = "/" + path[2:].partition("/")[2] if path.startswith("//") else path
        yield unquote(path, errors="replace")


def _repaired(text: str) -> str:
    """With U+FFFD for what is half a character, as some write it."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _real(path: str) -> str:
    return os.path.realpath(path)


def _strongest(decisions: "Iterable[Decision]") -> Decision:
    """The strictest; the first of them."""
    return min(decisions, key=lambda decision: _STRENGTH[decision.decision])
