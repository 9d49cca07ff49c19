"""What a host says on stdin, and what it is answered on stdout. Pure.

The shapes are those of Claude Code's hooks, which Qwen Code shares: one JSON object, of which only
what is named here is looked at.
"""

from pinfold.doors.scanning import loads, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEFORE, AFTER, STARTED = "PreToolUse", "PostToolUse", "SessionStart"
LONGEST = 16 << 20
"""Bytes of an event: more might take longer to read than a host waits."""


class NotUnderstood(Exception):
    """An event that is not what it should be; says which member."""


class Event:
    """One event. `name`: its kind. `tool`, `arguments`, `response`: of a call of a tool.
    `source`: why a session starts. `agent`: the sub-agent that it is about, "" for the main one.
    `cwd`: where the host's tools run; "" where it does not say."""

    def __init__(self, members: "dict[str, Any]") -> None:
        self._members = members
        # Whatever has a tool and does not say what it is comes before one.
        self.name = self._text("hook_event_name", BEFORE if "tool_name" in members else None)
        self.session = self._text("session_id", "")
        self.cwd = self._text("cwd", "")
        self.source = self._text("source", "")
        self.agent = self._text("agent_id", "")
        self.tool = self._text("tool_name", None if self.name in (BEFORE, AFTER) else "")
        self.response = members.get("tool_response")

    def _text(self, member: str, default: "str | None") -> str:
        value = self._members.get(member, default)
        if not isinstance(value, str):
            problem = "is missing" if value is None else "is no string"
            raise NotUnderstood(f"{member} {problem}")
        return value

    @property
    def arguments(self) -> "dict[str, Any]":
        """The tool's input. Raises NotUnderstood."""
        value = self._members.get("tool_input")
        if not isinstance(value, dict):
            raise NotUnderstood("tool_input is missing, or no object")
        return value


def parse(data: bytes) -> Event:
    """An event from its JSON (UTF-8). Raises NotUnderstood."""
    try:
        members = loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotUnderstood(f"it is not UTF-8 (byte {error.start})") from None
    except (ValueError, RecursionError):
        raise NotUnderstood(
            "it is not JSON (hosts run this command; people use --install)"
        ) from None
    if not isinstance(members, dict):
        raise NotUnderstood("it is no JSON object")
    return Event(members)


def _specific(event: str, members: "dict[str, str]") -> str:
    pairs = {"hookEventName": event, **members}
    inside = ", ".join(f"{quoted(name)}: {quoted(value)}" for name, value in pairs.items())
    return f'{{"hookSpecificOutput": {{{inside}}}}}\n'


def permission(verdict: str, reason: str) -> str:
    """The answer before a tool: `deny` or `ask`. Never `allow`: that would skip the host's own
    question."""
    members = {"permissionDecision": verdict, "permissionDecisionReason": reason}
    return _specific(BEFORE, members)


def context(text: str) -> str:
    """The answer to the start of a session: text for the agent."""
    return _specific(STARTED, {"additionalContext": text})
