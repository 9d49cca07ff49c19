"""Sessions: one agent's scope each. `Session.effective` is the one place that computes it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from pinfold.memory.roots import RootPath
from pinfold.paths.known import KnownFiles
from pinfold.policy.facts import AskKey, Effective
from pinfold.policy.rules import Rule
from pinfold.policy.scopes import effective
from pinfold_protocol.convert import wire_names
from pinfold_protocol.decision import Asked
from pinfold_protocol.errors import UNKNOWN_SESSION, RpcError, invalid_params, short
from pinfold_protocol.retention import RetentionTag
from pinfold_protocol.session import PROFILES, Profile, Scope, ScopePatch

_K = TypeVar("_K")
_V = TypeVar("_V")

LOCAL, EDITOR = "local", "editor"
MOST_TAGS = 100_000
MOST_ID_CHARS = 1000
_ON_WIRE = {wire: name for name, wire in wire_names(Scope).items()}

_OTHER_ID = "end it, or choose another id"


def merge(overrides: dict[str, object], patch: ScopePatch | None) -> dict[str, object]:
    """Overrides by member, with a patch laid over them: a null takes an override back."""
    merged = dict(overrides)
    for member in () if patch is None else patch.given:
        name = _ON_WIRE[member]
        value = getattr(patch, name)
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return merged


def put(memory: dict[_K, _V], key: _K, value: _V) -> None:
    """Add to a memory that is bounded; dicts keep the order in which they were filled."""
    memory[key] = value
    if len(memory) > MOST_TAGS:
        del memory[next(iter(memory))]


class Digests:
    """What documents of managed memory last were, whichever session read or wrote them: SHA-256 in
    hex digits, by path. Bounded and thread-safe."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._lock = threading.Lock()

    def put(self, path: str, sha256: str | None) -> None:
        """None says nothing."""
        if sha256 is not None:
            with self._lock:
                self._last.pop(path, None)
                put(self._last, path, sha256)

    def drop(self, path: str) -> None:
        """It is something else by now, and nobody knows what."""
        with self._lock:
            self._last.pop(path, None)

    def now(self) -> dict[str, str]:
        """A copy."""
        with self._lock:
            return dict(self._last)


def effective_scope(profile: Profile, patch: ScopePatch | None) -> Scope:
    """A profile's scope with overrides."""
    return msgspec.structs.replace(PROFILES[profile], **merge({}, patch))


class Gate:
    """Many may pass at once; whoever closes it waits until all that passed are through."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._closing = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Between the last decision about a change and its publication."""
        with self._condition:
            self._condition.wait_for(lambda: not self._closing)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While a scope is exchanged: nobody is inside, and nobody gets in."""
        with self._condition:
            self._closing += 1
            self._condition.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._condition:
                self._closing -= 1
                self._condition.notify_all()


class _Turn(msgspec.Struct, frozen=True):
    """What a turn asks for: whole, or some members of the scope."""

    profile: Profile | None
    members: dict[str, object]


class Session:
    """One open session. Thread-safe: calls run on several threads."""

    def __init__(
        self,
        session_id: str,
        profile: Profile,
        project_root: str,
        roots: tuple[RootPath, ...],
        overrides: dict[str, object],
        rules: tuple[Rule, ...] = (),
        backend: str = LOCAL,
    ) -> None:
        self.backend = backend
        self.upstream = None if backend in (LOCAL, EDITOR) else backend
        """The name of the file server that does its work; None where the gateway does."""
        self.session_id = session_id
        self.profile: Profile = profile
        self.project_root = project_root
        self.roots = roots
        self.gate = Gate()
        self.closed = False
        self.calls = 0
        self.denials = 0
        self.tags: dict[str, RetentionTag] = {}
        self.issued: dict[RetentionTag, None] = {}
        self.known = KnownFiles()
        self._overrides = overrides
        self._rules = rules
        self._turns: dict[str, _Turn] = {}
        self._answers: dict[AskKey, Asked] = {}
        self.effective = self._compute()
        """The scope in force now; a new object whenever it changes."""
        self._lock = threading.Lock()

    @property
    def scope(self) -> Scope:
        """The scope in force now."""
        return self.effective.scope

    @property
    def prompt_profile(self) -> Profile:
        """Whose sentences the prompt needs: a dream's, while there is one."""
        dreaming = any(turn.profile == "dream" for turn in self._turns.values())
        return "dream" if dreaming else self.profile

    @property
    def turns(self) -> list[str]:
        """The ids of the active turns, in the order in which they began."""
        return list(self._turns)

    def _compute(self) -> Effective:
        turns = {name: turn.members for name, turn in self._turns.items()}
        return effective(self.profile, self._enforced(), self._rules, turns)

    def _enforced(self) -> dict[str, object]:
        """What an editor saves, or an upstream writes, may be written in place, and with it all
        other names of the file."""
        elsewhere = self.backend != LOCAL
        return {**self._overrides, "hard_links": "deny"} if elsewhere else self._overrides

    def configure(self, patch: ScopePatch | None, rules: tuple[Rule, ...] | None = None) -> None:
        """Exchange the scope, and the rules if they are given: answers to the old ones are gone
        then. Returns when no change decided under the old ones is under way."""
        with self.gate.closed():
            self._overrides = merge(self._overrides, patch)
            if rules is not None:
                with self._lock:
                    self._rules = rules
                    self._answers = {}
            self.effective = self._compute()

    def begin_turn(self, turn_id: str, profile: Profile | None, patch: ScopePatch | None) -> None:
        """Narrow the scope. Returns as `configure` does. Raises RpcError (-32602) if the turn is
        active already."""
        members = {} if profile is None else msgspec.structs.asdict(PROFILES[profile])
        with self.gate.closed():
            if turn_id in self._turns:
                raise invalid_params("turnId", f"a turn with this id is active; {_OTHER_ID}")
            self._turns[turn_id] = _Turn(profile, merge(members, patch))
            self.effective = self._compute()

    def end_turn(self, turn_id: str) -> None:
        """Lift what the turn narrowed. Raises RpcError (-32602) if it is not active."""
        with self.gate.closed():
            if turn_id not in self._turns:
                problem = "there is no active turn with this id; turn/begin answers its id"
                raise invalid_params("turnId", problem)
            del self._turns[turn_id]
            self.effective = self._compute()

    def answers(self, key: AskKey) -> Asked | None:
        """`allow-session` for what was allowed for the rest of the session."""
        return self._answers.get(key)

    def allow(self, key: AskKey, rules: tuple[Rule, ...]) -> None:
        """Remember an `allow-session`, if these are still the rules that asked."""
        with self._lock:
            if self._rules is rules:
                put(self._answers, key, "allow-session")

    def count(self, *, denied: bool) -> None:
        """Count a call that was answered."""
        with self._lock:
            self.calls += 1
            self.denials += denied

    def remember(self, call_id: str | None, tag: RetentionTag | None) -> None:
        """Remember a tag, for compaction: that it was issued, and for which call. The newest
        under an id counts; beyond `MOST_TAGS` the oldest are forgotten, and an id that is longer
        than any is not remembered."""
        if call_id is not None and len(call_id) > MOST_ID_CHARS:
            call_id = None
        with self._lock:
            if call_id is not None:
                self.tags.pop(call_id, None)
            if tag is None:
                return
            self.issued.pop(tag, None)
            put(self.issued, tag, None)
            if call_id is not None:
                put(self.tags, call_id, tag)

    def tags_now(self) -> tuple[dict[str, RetentionTag], frozenset[RetentionTag]]:
        """The tags by call id, and all that were issued since the session began or was reset."""
        with self._lock:
            return dict(self.tags), frozenset(self.issued)

    def reset(self) -> list[RetentionTag]:
        """Forget what was read and tagged. Returns the last tag of each path, oldest first."""
        with self._lock:
            issued, self.issued = self.issued, {}
            self.tags = {}
            self.known.forget()
        last: dict[str, RetentionTag] = {}
        for tag in issued:
            last.pop(tag.path, None)
            last[tag.path] = tag
        return list(last.values())


class Sessions:
    """The open sessions of one connection, in the order in which they were opened."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def add(self, session: Session) -> None:
        """Raises RpcError (-32602) if the id is taken."""
        with self._lock:
            if session.session_id in self._open:
                raise invalid_params("sessionId", f"a session with this id is open; {_OTHER_ID}")
            self._open[session.session_id] = session

    def get(self, session_id: str) -> Session:
        """Raises RpcError (-32010) for an id that is not open."""
        session = self._open.get(session_id)
        if session is None:
            data = {"sessionId": short(session_id)}
            message = "There is no open session with this id: open one with session/open"
            raise RpcError(UNKNOWN_SESSION, message, data)
        return session

    def remove(self, session_id: str) -> Session:
        """Raises RpcError (-32010) for an id that is not open."""
        with self._lock:
            session = self.get(session_id)
            session.closed = True
            del self._open[session_id]
            return session

    def all(self) -> list[Session]:
        """A copy."""
        with self._lock:
            return list(self._open.values())
