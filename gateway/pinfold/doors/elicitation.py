"""MCP's way to ask: a form with one field."""

from typing import TYPE_CHECKING, Any

from pinfold.doors.questions import ACTIONS, Ask, Way, chosen, member, wording

if TYPE_CHECKING:
    from pinfold.calls import Asking
    from pinfold.session import Session
    from pinfold_protocol.decision import Asked
    from pinfold_protocol.tools import ToolsCallParams


def offered(capabilities: Any) -> bool:
    """Whether a client has forms: `{}` means so too."""
    modes = member(capabilities, "elicitation")
    return isinstance(modes, dict) and (not modes or "form" in modes)


def way(ask: Ask, capabilities: Any) -> Way | None:
    """The way to ask such a client."""
    if not offered(capabilities):
        return None

    async def put(session: "Session", params: "ToolsCallParams", asking: "Asking") -> "Asked":
        return outcome(await ask("elicitation/create", form(session, params.name, asking)))

    return put


def form(session: "Session", tool: str, asking: "Asking") -> dict[str, Any]:
    """The params of `elicitation/create`."""
    answer = {"type": "string", "title": "Answer", "enum": list(ACTIONS)}
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return {"message": wording(session, tool, asking), "requestedSchema": schema}


def outcome(result: Any) -> "Asked":
    """What a result says; a form that was not accepted is a no."""
    return (
        chosen(member(result, "content", "answer"))
        if member(result, "action") == "accept"
        else "deny"
    )
