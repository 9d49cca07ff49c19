"""The whole examination: a session as hosts open it, and what there is to say of its roots."""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import msgspec

from pinfold.app import Gateway
from pinfold.config import Settings
from pinfold.doctor.contents import contents, survey
from pinfold.doctor.finding import Finding, Spot, count, finding
from pinfold.doctor.machine import environment, machine, record
from pinfold.doctor.mounts import mounts
from pinfold.doctor.place import Subject, overlaps, place
from pinfold.doctor.tree import LIMITS, Limits
from pinfold.doctor.upstreams import upstreams
from pinfold.memory.roots import Look, RootPath
from pinfold.paths.volume import Volumes
from pinfold.policy.facts import RootFacts
from pinfold.session import Session
from pinfold.tools.registry import HOST_TOOLS
from pinfold_protocol.decision import RuleSpec
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import Scope, SessionResult

Open = Callable[[list[Any] | None], tuple[Gateway, SessionResult]]
_BAD_RULE = re.compile(r"(?:Invalid params: )?(rules\[([0-9]+)\].*)", re.DOTALL)
_MOST_BAD_RULES = 20
_HARMLESS = {"decision": "allow", "tools": ["read_file"]}


class Case(msgspec.Struct, frozen=True):
    """What is to be examined. `open`: opens a gateway with one session that has these rules, and
    raises RpcError; `rules` as plain data. `settings`: what the user has configured, None where
    that is not to be looked at; `refused`: what is wrong with the file, which then does not count.
    """

    open: Open
    env: Mapping[str, str]
    rules: list[Any] | None = None
    limits: Limits = LIMITS
    settings: Settings | None = None
    refused: str | None = None

    @property
    def layout(self) -> str:
        """Whose memory it is."""
        memory = None if self.settings is None else self.settings.connection.memory
        return "qwen" if memory is None or memory.layout is None else memory.layout


def examine(case: Case) -> list[Finding]:
    """Look at everything. Raises RpcError where no session can be opened, whatever the rules."""
    found = machine()
    try:
        session, about_rules = _open(case)
    except OSError as error:
        return [*found, _fails(error)]
    roots = {root.path for root in session.roots}
    found += environment(case.env, case.layout, session.project_root, roots)
    found += about_session(session.scope)
    with ExitStack() as held:
        found += _roots(session, case.limits, held)
    if case.refused is not None:
        about_rules.append(finding("configuration-refused", "the configuration", case.refused))
    elif case.settings is not None:
        about_rules += upstreams(case.settings, case.open(None)[0])
    return [*found, *about_rules, *record(case.settings, case.env)]


def _fails(error: OSError) -> Finding:
    spots = [] if error.filename is None else [Spot(os.fsdecode(error.filename))]
    return finding("session-fails", "the session", f"No session: {error.strerror}", spots)


# Rules


def _open(case: Case) -> tuple[Session, list[Finding]]:
    """A session with those of the rules that the gateway takes, and what is wrong with the rest."""
    rules = None if case.rules is None else list(case.rules)
    refused: dict[int, Finding] = {}
    while True:
        try:
            gateway, opened = case.open(rules)
        except RpcError as error:
            bad = _BAD_RULE.fullmatch(error.message)
            if rules is None or bad is None or len(refused) == _MOST_BAD_RULES:
                raise
            refused[int(bad[2])] = finding("rule-refused", "rules", bad[1])
            rules[int(bad[2])] = _HARMLESS
            continue
        session = gateway.sessions.get(opened.session_id)
        return session, [] if rules is None else _about_rules(rules, refused)


def _about_rules(rules: list[Any], refused: dict[int, Finding]) -> list[Finding]:
    problem = "no tool that the rule names has a path, so it never matches"
    never = {
        index: finding("rule-never-matches", "rules", f"rules[{index}].paths: {problem}")
        for index, rule in enumerate(rules)
        if never_matches(RuleSpec(rule["decision"], rule["tools"], rule.get("paths")))
    }
    bad = refused | never
    if bad:
        return [bad[index] for index in sorted(bad)]
    return [finding("rules", "rules", f"{count(len(rules), 'rule')}, each of which can match")]


def never_matches(rule: RuleSpec) -> bool:
    """Whether a rule that was taken has paths, but no tool that has one: such a call it never
    covers."""
    without = {name for name, tool in HOST_TOOLS.items() if tool.path_argument is None}
    return rule.paths is not None and set(rule.tools) <= without


# The session and its roots


def about_session(scope: Scope) -> list[Finding]:
    """What a session like this one leaves open by its scope."""
    about = "the session"
    found = []
    if not scope.protect_pinned:
        title = "pinned/ may be changed in a session like this one"
        found.append(finding("session-unprotected", about, title))
    elif not scope.confine_writes:
        title = "It may write outside of memory, and so plant a program that does the rest"
        found.append(finding("session-unconfined", about, title))
    if scope.protect_pinned and scope.hard_links == "ignore":
        title = "Other names of a pinned file are not looked for"
        found.append(finding("hard-links-ignored", about, title))
    title = "pinned/ is read-only, writes are confined to memory"
    return found or [finding("session", about, title)]


def _roots(session: Session, limits: Limits, held: ExitStack) -> list[Finding]:
    scope = msgspec.structs.replace(session.scope, protect_pinned=True)
    looked = [_look(root, scope, held) for root in session.roots]
    facts = tuple(each for each in looked if isinstance(each, RootFacts))
    table = mounts()
    found = overlaps(facts, session.project_root)
    subjects = [
        Subject(root, seen, session.scope, facts, table)
        for root, seen in zip(session.roots, looked, strict=True)
    ]
    censuses = [survey(subject, limits) for subject in subjects]
    for subject, census in zip(subjects, censuses, strict=True):
        found += place(subject)
        found += [] if census is None else contents(subject, census, censuses)
    return found


def _look(root: RootPath, scope: Scope, held: ExitStack) -> RootFacts | OSError:
    """By the gateway's own code, one root at a time, so that one that fails spoils no other."""
    try:
        look = held.enter_context(Look((root,), scope, Volumes(), trust=True))
        return look.whole()[0]
    except OSError as error:
        return error
