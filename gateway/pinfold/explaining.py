"""`policy/explain`: what would be decided about a call, by the same code, with nothing touched."""

from typing import TYPE_CHECKING, Any

import msgspec

from pinfold.deciding import Ground, judged_command
from pinfold.paths.literal import expand
from pinfold.policy.decide import decide
from pinfold.session import Session
from pinfold.tools.registry import HOST_TOOLS, IGNORED_ARGUMENTS, TOOLS, as_call
from pinfold_protocol.decision import Decision, ExplainParams
from pinfold_protocol.errors import ToolError, invalid_params
from pinfold_protocol.session import PROFILES, Profile

if TYPE_CHECKING:
    from pinfold.app import Gateway
    from pinfold.policy.facts import ShellVerdict


def explain(gateway: "Gateway", params: ExplainParams, session: Session | None = None) -> Decision:
    """`session`: the one that the params named when they arrived, where its id may name another
    one by now.

    Raises RpcError for an unknown session, and where no path can be made of the arguments or it
    cannot be looked at: then nothing was decided, as where the call itself would be an error.
    """
    session = session or gateway.sessions.get(params.session_id)
    upstream = session.upstream is not None
    upstream = upstream and gateway.upstreams.answers_for(session, params.name)
    try:
        return (_explain_upstream if upstream else _explain)(gateway, session, params)
    except ToolError as error:
        if upstream:
            raise invalid_params("arguments", error.message) from None
        raise invalid_params(f"arguments.{_path_argument(params.name)}", error.message) from None


def _explain(gateway: "Gateway", session: Session, params: ExplainParams) -> Decision:
    call = as_call(params.name)
    if call.action == "shell":
        call = msgspec.structs.replace(call, command=_gate(gateway, session, params.arguments))
    path = _explained_path(gateway, session, params)
    with gateway.records.recording(session.session_id, params.name) as trace:
        trace.outcome = "explained"
        if path is None:
            trace.decision = decide(call, None, session.effective, session.answers)
            return trace.decision
        with gateway.calls.decided(session, call, path) as decided:
            trace.decision = decided.decision
            return decided.decision


def who_may(gateway: "Gateway", session: Session, tool: str, path: str) -> dict[Profile, Decision]:
    """What each profile would be told of a call, with the roots and the rules of a session."""
    told: dict[Profile, Decision] = {}
    rules = session.effective.rules
    for profile in PROFILES:
        asked = Session(session.session_id, profile, session.project_root, session.roots, {}, rules)
        params = ExplainParams(session.session_id, tool, {"file_path": path})
        told[profile] = explain(gateway, params, asked)
    return told


def _explain_upstream(gateway: "Gateway", session: Session, params: ExplainParams) -> Decision:
    from pinfold.relay import Relay

    errand = gateway.upstreams.errand(session, params.name, params.arguments, partly=True)
    errand = msgspec.structs.replace(errand, answers=session.answers)
    decision = Relay(gateway.calls, lambda: 0).decide(errand)
    gateway.records.add(session.session_id, params.name, errand.traces, "explained")
    return decision


def _explained_path(gateway: "Gateway", session: Session, params: ExplainParams) -> str | None:
    if tool := TOOLS.get(params.name):
        unknown = set(params.arguments) - set(tool.properties) - IGNORED_ARGUMENTS
        if unknown:
            raise invalid_params(f"arguments.{min(unknown)}", "is not a known member")
        member = _path_argument(params.name)
        raw = _text_argument(params.arguments, member, None)
    elif member := _path_argument(params.name):
        raw = _text_argument(params.arguments, member, session.project_root)
    else:
        return None
    return _expanded(gateway, session, member, raw)


def _path_argument(name: str) -> str:
    """Empty for a tool that has none."""
    host = HOST_TOOLS.get(name)
    return "file_path" if name in TOOLS else (host.path_argument if host else None) or ""


def _expanded(gateway: "Gateway", session: Session, member: str, raw: str) -> str:
    try:
        return expand(raw, session.project_root, gateway.home)
    except ToolError as error:
        raise invalid_params(f"arguments.{member}", error.message) from None


def _gate(gateway: "Gateway", session: Session, arguments: dict[str, Any]) -> "ShellVerdict | None":
    """What the shell gate says of a command; None in a session that does not ask it."""
    command = _text_argument(arguments, "command", None)
    raw = _text_argument(arguments, "directory", session.project_root)
    start = _expanded(gateway, session, "directory", raw)
    if session.scope.shell != "read-only":
        return None
    ground = Ground(session.roots, session.effective, gateway.volumes)
    return judged_command(ground, command, start, home=gateway.home, env=gateway.env)


def _text_argument(arguments: dict[str, Any], name: str, default: str | None) -> str:
    value = arguments.get(name)
    if value is None:
        value = default
    if not isinstance(value, str):
        problem = "is missing" if value is None else "must be a string"
        raise invalid_params(f"arguments.{name}", problem)
    return value
