"""Questions to the client: what a base rule asks, and what becomes of an answer that fails to come.

One question at a time for each tool and file of a session: whoever asks the same meanwhile gets the
same no, or asks again after a yes that was for once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pinfold_protocol.errors import RpcError

if TYPE_CHECKING:
    from pinfold.calls import Asking
    from pinfold.policy.facts import AskKey
    from pinfold.session import Session
    from pinfold_protocol.decision import Asked
    from pinfold_protocol.tools import ToolsCallParams

Ask = Callable[[str, Any], Awaitable[Any]]
Way = Callable[["Session", "ToolsCallParams", "Asking"], Awaitable["Asked"]]
"""How one client is asked one question. Raises RpcError where no answer comes."""
ACTIONS: "dict[str, Asked]" = {
    "Allow once": "allow-once",
    "Allow in this session": "allow-session",
    "Deny": "deny",
}
_WARNING = 2


class Questions:
    """Puts questions to one client, in the way that it understands; None where it has none."""

    def __init__(self, seconds: Callable[[], int], way: Way | None) -> None:
        self._seconds = seconds
        self._open: dict[tuple[str, str, str], asyncio.Future[Asked | None]] = {}
        self._way = way

    @property
    def possible(self) -> bool:
        """Whether there is anybody to ask."""
        return self._way is not None

    async def answer(
        self, session: "Session", params: "ToolsCallParams", asking: "Asking"
    ) -> "Asked | None":
        """Ask, or wait for the answer to the same question; None where the rules have been replaced
        meanwhile, since the question was theirs. Never raises but when cancelled."""
        key, rules = (session.session_id, *asking.key), session.effective.rules
        while (same := self._open.get(key)) is not None:
            outcome = await asyncio.shield(same)
            if session.effective.rules is not rules:
                return None
            if outcome not in (None, "allow-once"):
                return outcome
        mine: asyncio.Future[Asked | None] = asyncio.get_running_loop().create_future()
        self._open[key] = mine
        outcome = None
        try:
            outcome = await self._within_time(session, params, asking)
        finally:
            del self._open[key]
            mine.set_result(outcome)
        if session.effective.rules is not rules:
            return None
        if outcome == "allow-session":
            session.allow(asking.key, rules)
        return outcome

    async def _within_time(
        self, session: "Session", params: "ToolsCallParams", asking: "Asking"
    ) -> "Asked":
        assert self._way is not None
        try:
            async with asyncio.timeout(self._seconds()):
                return await self._way(session, params, asking)
        except TimeoutError:
            return "timeout"
        except RpcError:  # an error, or an answer that is none
            return "no-approver"


def lsp_way(ask: Ask, capabilities: Any) -> Way | None:
    """A host that answers `permission/request`, or an editor with a dialogue."""
    if member(capabilities, "experimental", "pinfold", "permissionRequests") is True:
        return lambda *question: _request_permission(ask, *question)
    if member(capabilities, "window", "showMessage") is not None:
        return lambda *question: _show_message(ask, *question)
    return None


async def _request_permission(
    ask: Ask, session: "Session", params: "ToolsCallParams", asking: "Asking"
) -> "Asked":
    from pinfold_protocol.convert import structure, unstructure
    from pinfold_protocol.decision import PermissionParams, PermissionResult
    from pinfold_protocol.methods import PERMISSION_REQUEST

    question = PermissionParams(
        session.session_id, params.name, params.arguments, asking.decision, params.call_id
    )
    raw = await ask(PERMISSION_REQUEST, unstructure(question))
    return structure(raw, PermissionResult).outcome


async def _show_message(
    ask: Ask, session: "Session", params: "ToolsCallParams", asking: "Asking"
) -> "Asked":
    """A dialogue that is closed is a no."""
    actions = [{"title": title} for title in ACTIONS]
    message = wording(session, params.name, asking)
    question = {"type": _WARNING, "message": message, "actions": actions}
    raw = await ask("window/showMessageRequest", question)
    return chosen(member(raw, "title"))


def question_id(key: "AskKey") -> str:
    """A name for a question that is the same when it is asked again."""
    import hashlib

    text = "\0".join(key).encode("utf-8", "surrogatepass")
    return f"permission-{hashlib.sha256(text).hexdigest()[:24]}"


def chosen(title: Any) -> "Asked":
    """The answer with this title; no for any other."""
    return ACTIONS.get(title, "deny") if isinstance(title, str) else "deny"


def wording(session: "Session", tool: str, asking: "Asking") -> str:
    """The question in words: the path that was given, and where it really leads."""
    from pinfold.text.visible import visible

    decision = asking.decision
    leads = decision.resolved_path not in (None, decision.path)
    real = f", which leads to {decision.resolved_path}" if leads else ""
    text = f"An agent ({session.profile}) wants to {tool} {decision.path}{real}. {decision.reason}"
    return visible(text)


def member(value: Any, *names: str) -> Any:
    """What stands below these names in a client's own JSON; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
