"""The upstreams of a connection: which there are, which run, and what a call to one means."""

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from pinfold.calls import Ticket, read_arguments
from pinfold.paths.literal import expand
from pinfold.paths.uri import to_uri
from pinfold.policy.decide import guard
from pinfold.policy.facts import no_approver
from pinfold.relay import Errand
from pinfold.session import Session, Sessions
from pinfold.tools.registry import HOST_TOOLS, IGNORED_ARGUMENTS, TOOLS, no_such_tool
from pinfold.upstream.events import Answer, Events, Fail, Params
from pinfold.upstream.mapping import FILESYSTEM, Catalog, Plan, problem_of
from pinfold.upstream.peer import Peer
from pinfold.upstream_tools import listed
from pinfold_protocol.convert import unstructure
from pinfold_protocol.errors import ToolError, invalid_params, short
from pinfold_protocol.session import Limits, UpstreamOptions

NOT_UPSTREAMS = ("local", "editor")
_LONGEST_NAME = 64


class Owner(Protocol):
    """What upstreams need of the gateway."""

    limits: Limits
    sessions: Sessions
    on_trouble: Callable[[str], None]


class Client(msgspec.Struct):
    """What the client behind the gateway can do for an upstream; a door fills it in. Called on
    threads of the upstream's, and may not block."""

    capabilities: Callable[[], Params] = dict
    on_tools: Callable[[str], None] = lambda name: None
    on_log: Callable[[str, Params], None] = lambda name, params: None
    ask: Callable[[str, Params, Answer, Fail], Callable[[], None]] = Events().ask


class Upstreams:
    """Those that are configured, by name; each is started when a session first asks for it."""

    def __init__(
        self,
        env: Mapping[str, str],
        home: str,
        options: dict[str, UpstreamOptions],
        client: Client | None = None,
    ) -> None:
        self._env = dict(env)
        self._home = home
        self._options = options
        self._peers: dict[str, Peer] = {}
        self._lock = threading.Lock()
        self._level: str | None = None
        self.client = client or Client()

    def with_more(self, options: Mapping[str, UpstreamOptions]) -> "Upstreams":
        """These and others, which replace those of the same name that do not run yet.

        Raises RpcError (-32602) for one that is wrong.
        """
        for name, each in options.items():
            if problem := _problem(name, each):
                raise invalid_params(f"upstreams.{problem[0]}", problem[1])
            if name in self._peers and each != self._options.get(name):
                raise invalid_params(f"upstreams.{name}", "runs already")
        more = Upstreams(self._env, self._home, {**self._options, **options}, self.client)
        more._peers = self._peers
        more._lock, more._level = self._lock, self._level
        return more

    @property
    def names(self) -> list[str]:
        """In the order in which they were configured."""
        return list(self._options)

    def tools(self) -> set[str]:
        """The names of the tools that are known, for rules: mapped, or listed by one that runs."""
        if not self._options:
            return set()
        configured = {tool for each in self._options.values() for tool in each.tools or ()}
        running = {tool for peer in self._peers.values() for tool in peer.catalog.listed}
        return {*FILESYSTEM, *configured, *running}

    def start(self, name: str, owner: Owner) -> None:
        """See to it that one runs. Raises RpcError (-32602) where there is none of that name, or
        it cannot be started."""
        options = self._options.get(name)
        if options is None:
            there_are = ", ".join(f'"{each}"' for each in ("local", *self._options))
            raise invalid_params("backend", f"must be one of {there_are}, not {short(name)!r}")
        with self._lock:
            peer = self._peers.get(name)
            if peer is None:
                events = self._events(name, owner)
                env = {**self._env, "HOME": self._home}
                peer = Peer(name, options, env, events, lambda: owner.limits.max_message_bytes)
                if self._level is not None:
                    peer.set_level(self._level)
                self._peers[name] = peer
        try:
            peer.start()
        except ToolError as error:
            raise invalid_params("backend", error.message) from None

    def set_level(self, level: str) -> None:
        """From which level on upstreams are to log, those that run and those to come."""
        self._level = level
        for peer in self.running():
            peer.set_level(level)

    def _events(self, name: str, owner: Owner) -> Events:
        def ask(method: str, params: Params, answer: Answer, fail: Fail) -> Callable[[], None]:
            if method != "roots/list":
                return self.client.ask(method, params, answer, fail)
            projects = (s.project_root for s in owner.sessions.all() if s.upstream == name)
            answer({"roots": [{"uri": to_uri(each)} for each in dict.fromkeys(projects)]})
            return lambda: None

        return Events(
            on_tools=lambda: self.client.on_tools(name),
            on_log=lambda params: self.client.on_log(name, params),
            on_trouble=owner.on_trouble,
            capabilities=self.client.capabilities,
            ask=ask,
        )

    def named(self, name: str) -> Peer:
        """One that was started."""
        return self._peers[name]

    def peer(self, session: Session) -> Peer:
        """The one that a session is in front of."""
        assert session.upstream is not None
        return self.named(session.upstream)

    def running(self) -> list[Peer]:
        """Those that were started."""
        return list(self._peers.values())

    def offered(self, session: Session) -> list[dict[str, Any]]:
        """The tools of a session under the scope now in force."""
        return listed(self.peer(session).catalog, scoped=guard(session.scope) is not None)

    def answers_for(self, session: Session, name: str) -> bool:
        """Whether a tool is the upstream's to explain; those that a host runs itself are not."""
        return name not in HOST_TOOLS or self.peer(session).catalog.has(name)

    def errand(
        self, session: Session, name: str, arguments: dict[str, Any], *, partly: bool = False
    ) -> Errand:
        """A call in the upstream's words, with its paths made absolute. `partly`: only the paths
        need be there, and nothing else is looked at.

        Raises RpcError (-32602) for a tool that there is not, in a session without a scope, and
        ToolError for arguments that are wrong.
        """
        peer = self.peer(session)
        plan = self._plan(peer.catalog, session, name, arguments, partly)
        paths = tuple(expand(each.raw, session.project_root, self._home) for each in plan.paths)
        return Errand(session, name, plan, paths, peer, Ticket(), [], no_approver)

    def _plan(
        self,
        catalog: Catalog,
        session: Session,
        name: str,
        arguments: dict[str, Any],
        partly: bool,
    ) -> Plan:
        if catalog.is_ours(name, arguments):
            if partly:
                unknown = set(arguments) - {*TOOLS[name].properties} - IGNORED_ARGUMENTS
                if unknown:
                    raise invalid_params(f"arguments.{min(unknown)}", "is not a known member")
                return catalog.plan_ours(name, {"file_path": arguments.get("file_path")})
            return catalog.plan_ours(name, unstructure(read_arguments(TOOLS[name], arguments)))
        if not catalog.has(name) and guard(session.scope) is None and not partly:
            raise invalid_params("name", no_such_tool(name, [*TOOLS, *catalog.listed]))
        mapping = catalog.mapped.get(name)
        kept = {} if mapping is None else {*mapping.paths, *mapping.arguments}
        given = {k: v for k, v in arguments.items() if k not in IGNORED_ARGUMENTS or k in kept}
        return catalog.plan(name, given)

    def close(self) -> None:
        """End all of them, at once."""
        threads = [threading.Thread(target=each.close) for each in self._peers.values()]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def _problem(name: str, options: UpstreamOptions) -> tuple[str, str] | None:
    """The member that is wrong, below `upstreams`, and why."""
    if name in NOT_UPSTREAMS:
        return name, "this name is taken"
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        return short(name), f"a name must be 1 to {_LONGEST_NAME} printable characters"
    texts = {"command": [options.command], "args": options.args, "cwd": [options.cwd or ""]}
    texts["env"] = [*(options.env or {}), *(options.env or {}).values()]
    for member, values in texts.items():
        if not all(_is_sendable(value) for value in values):
            return f"{name}.{member}", "holds what no command line can: a NUL, a lone surrogate"
    if not options.command:
        return f"{name}.command", "is empty"
    if any("=" in each or not each for each in options.env or {}):
        return f"{name}.env", "holds a name that no variable can have"
    if options.cwd is not None and not options.cwd.startswith(("/", "~/")):
        return f"{name}.cwd", "must be absolute, or begin with ~/"
    found = problem_of(options)
    return None if found is None else (f"{name}.{found[0]}", found[1])


def _is_sendable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
