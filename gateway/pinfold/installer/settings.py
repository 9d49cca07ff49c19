"""The entry in a host's settings: put in, brought up to date, taken out; all else stays as it is.

The file is JSON, comments allowed. It is read by the grammar and changed by splices, so that
nothing that somebody wrote is written anew. What is in it is checked against what it should be
before anybody sees it.
"""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pinfold.doors.hook.hosts import HOSTS, Host

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SECONDS = 10
"""How long the host may wait: longer than our own deadline."""

_DEFAULT_INDENT = "  "


class Unusable(Exception):
    """Settings that cannot be changed: says the line, and why."""


def place(host: Host, project: str | None, env: Mapping[str, str], home: str) -> str:
    """The settings file of a project, else the user's own."""
    if project is not None:
        return os.path.join(project, host.directory, "settings.json")
    own = env.get(host.home) or os.path.join(home, host.directory)
    return os.path.join(own, "settings.json")


def entries(host: Host, command: str) -> dict[str, dict[str, Any]]:
    """What is to stand in the settings, by event: one group with one command."""
    reading = [name for name, tool in host.tools.items() if tool.kind == "read"]
    matchers = {
        "PreToolUse": "*",
        "PostToolUse": "|".join(reading),
        "SessionStart": "compact|clear",
    }
    hook = {"type": "command", "command": command, "timeout": SECONDS}
    return {event: {"matcher": matcher, "hooks": [hook]} for event, matcher in matchers.items()}


def is_ours(command: object, host: str) -> bool:
    """Whether a command is `pinfold hook` for this host, wherever the program is."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    named = [os.path.basename(word) for word in words]
    if "hook" not in named or not any(name in ("pinfold", "pinfold.exe") for name in named):
        return False
    pairs = pairwise(words)
    return f"--host={host}" in words or ("--host", host) in pairs


def installed(text: str, host: str, command: str) -> str:
    """The settings with the entry for a host, and no older one. Raises Unusable."""
    wanted = entries(HOSTS[host], command)
    there = _groups_of(text, host)
    if len(there) == len(wanted) and all({event: wanted[event]} in there for event in wanted):
        return text
    text = uninstalled(text, host) if text.strip() else "{}\n"
    expected = _data(text)
    for event, group in wanted.items():
        document = _Document(text)
        top = document.object(document.top, "the settings")
        hooks = document.member(top, "hooks")
        if hooks is None:
            text = document.with_member(top, "hooks", {event: [group]})
        elif (groups := document.member(document.object(hooks, "hooks"), event)) is None:
            text = document.with_member(hooks, event, [group])
        else:
            text = document.with_element(document.array(groups, f"hooks.{event}"), group)
        expected.setdefault("hooks", {}).setdefault(event, []).append(group)
    return _checked(text, expected)


def uninstalled(text: str, host: str) -> str:
    """The settings without our entry for a host. Raises Unusable."""
    if not text.strip():
        return text
    expected = _without(_data(text), host)
    document = _Document(text)
    while (node := _next_of_ours(document, host)) is not None:
        text = document.without(node)
        document = _Document(text)
    return _checked(text, expected)


def _checked(text: str, expected: Any) -> str:
    if _data(text) != expected:
        raise Unusable("the settings would say something else then; nothing was changed")
    return text


def _groups_of(text: str, host: str) -> list[dict[str, Any]]:
    """Our groups in the settings, each with its event."""
    data = _data(text) if text.strip() else {}
    found = []
    for event, groups in _events(data).items():
        for group in groups if isinstance(groups, list) else ():
            if any(is_ours(hook.get("command"), host) for hook in _hooks(group)):
                found.append({event: group})
    return found


def _events(data: Any) -> dict[str, Any]:
    hooks = data.get("hooks") if isinstance(data, dict) else None
    return hooks if isinstance(hooks, dict) else {}


def _hooks(group: Any) -> list[dict[str, Any]]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [hook for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


def _without(data: Any, host: str) -> Any:
    """The same as data: what is empty only because ours was in it goes too."""
    events = _events(data)
    for event, groups in list(events.items()):
        if not isinstance(groups, list):
            continue
        kept = []
        for group in groups:
            ours = [hook for hook in _hooks(group) if is_ours(hook.get("command"), host)]
            if ours:
                group["hooks"] = [hook for hook in group["hooks"] if hook not in ours]
            if not ours or group["hooks"]:
                kept.append(group)
        if kept or not groups:
            events[event] = kept
        else:
            del events[event]
            if not events:
                del data["hooks"]
    return data


def _next_of_ours(document: "_Document", host: str) -> "Node | None":
    """What to take out for one command of ours: the most that would be empty without it."""
    hooks = document.member(document.object(document.top, "the settings"), "hooks")
    if hooks is None or hooks.type != "object":
        return None
    for pair in document.pairs(hooks):
        groups = pair.child_by_field_name("value")
        for group in document.elements(groups):
            inner = document.member(group, "hooks") if group.type == "object" else None
            for hook in document.elements(inner):
                if not _is_node_ours(document, hook, host):
                    continue
                assert inner is not None and groups is not None
                if len(document.elements(inner)) > 1:
                    return hook
                if len(document.elements(groups)) > 1:
                    return group
                if len(document.pairs(hooks)) > 1:
                    return pair
                assert hooks.parent is not None
                return hooks.parent
    return None


def _is_node_ours(document: "_Document", hook: "Node", host: str) -> bool:
    command = document.member(hook, "command") if hook.type == "object" else None
    return command is not None and is_ours(document.value(command), host)


# The text


@cache
def _parser() -> "Parser":
    import tree_sitter_json
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_json.language()))


class _Document:
    """A JSON text with comments, as the grammar reads it. Raises Unusable where it cannot."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        root = _parser().parse(self.raw).root_node
        if root.has_error:
            line = _first_error(root).start_point[0] + 1
            raise Unusable(f"line {line}: it is not JSON")
        values = [child for child in root.named_children if child.type != "comment"]
        if len(values) != 1:
            raise Unusable("it must hold one object")
        self.top = values[0]
        self._newline = "\r\n" if b"\r\n" in self.raw else "\n"

    def object(self, node: "Node", name: str) -> "Node":
        return self._of_type(node, "object", name)

    def array(self, node: "Node", name: str) -> "Node":
        return self._of_type(node, "array", name)

    def _of_type(self, node: "Node", kind: str, name: str) -> "Node":
        if node.type != kind:
            raise Unusable(f"line {node.start_point[0] + 1}: {name} must be an {kind}")
        return node

    def pairs(self, node: "Node") -> "list[Node]":
        return [child for child in node.named_children if child.type == "pair"]

    def elements(self, node: "Node | None") -> "list[Node]":
        if node is None or node.type != "array":
            return []
        return [child for child in node.named_children if child.type != "comment"]

    def member(self, node: "Node", key: str) -> "Node | None":
        found = [pair for pair in self.pairs(node) if self._key(pair) == key]
        if len(found) > 1:
            raise Unusable(f"line {found[1].start_point[0] + 1}: there are two of {key!r}")
        return found[0].child_by_field_name("value") if found else None

    def _key(self, pair: "Node") -> Any:
        key = pair.child_by_field_name("key")
        return None if key is None else self.value(key)

    def value(self, node: "Node") -> Any:
        """A node as data."""
        if node.type == "object":
            return {
                self._key(pair): self.value(value)
                for pair in self.pairs(node)
                if (value := pair.child_by_field_name("value")) is not None
            }
        if node.type == "array":
            return [self.value(each) for each in self.elements(node)]
        try:
            return json.loads(self.raw[node.start_byte : node.end_byte])
        except ValueError:
            raise Unusable(f"line {node.start_point[0] + 1}: it is not JSON") from None

    def with_member(self, node: "Node", key: str, value: Any) -> str:
        """The text with one more member at the end of an object."""
        return self._with(node, lambda dump: f"{json.dumps(key)}: {dump(value)}")

    def with_element(self, node: "Node", value: Any) -> str:
        """The text with one more element at the end of an array."""
        return self._with(node, lambda dump: dump(value))

    def _with(self, node: "Node", make: Callable[[Callable[[Any], str]], str]) -> str:
        children = node.named_children
        values = [child for child in children if child.type != "comment"]
        on_one_line = bool(values) and node.start_point[0] == node.end_point[0]
        if on_one_line:
            after = values[-1].end_byte
            return self._spliced((after, ", " + make(json.dumps)))
        outer = self._indentation(node)
        inner = outer + self._unit()

        def dump(value: Any) -> str:
            lines = json.dumps(value, indent=self._unit()).split("\n")
            return (self._newline + inner).join(lines)

        new = f"{self._newline}{inner}{make(dump)}"
        if not children:
            end = node.end_byte - 1
            return self._spliced((node.start_byte + 1, new + self._newline + outer), until=end)
        splices = [(self._end(children[-1]), new)]
        if values:
            splices.insert(0, (values[-1].end_byte, ","))
        return self._spliced(*splices)

    def _spliced(self, *splices: tuple[int, str], until: int | None = None) -> str:
        """Texts put in at bytes, in their order; what is between the last and `until` goes."""
        parts, last = [], 0
        for at, new in splices:
            parts += [self.raw[last:at], new.encode()]
            last = at
        return b"".join([*parts, self.raw[last if until is None else until :]]).decode()

    def _end(self, node: "Node") -> int:
        """A comment to the end of its line takes the carriage return along."""
        end = node.end_byte
        return end - 1 if node.type == "comment" and self.raw[end - 1 : end] == b"\r" else end

    def _indentation(self, node: "Node") -> str:
        """Of the line on which a node starts."""
        start = self.raw.rfind(b"\n", 0, node.start_byte) + 1
        line = self.raw[start : node.start_byte]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode()

    def _unit(self) -> str:
        for line in self.raw.decode().splitlines():
            stripped = line.lstrip(" \t")
            if stripped and stripped != line and not stripped.startswith(("*", "/")):
                return line[: len(line) - len(stripped)]
        return _DEFAULT_INDENT

    def without(self, node: "Node") -> str:
        """The text without a member or an element, and without its comma and blanks."""
        parent = node.parent
        assert parent is not None
        siblings = parent.named_children
        index = siblings.index(node)
        values = [each for each in siblings if each.type != "comment"]
        if len(siblings) == 1:  # nothing is left but the brackets
            return self._cut((parent.start_byte + 1, parent.end_byte - 1))
        before = self._end(siblings[index - 1]) if index else parent.start_byte + 1
        if node == values[-1]:
            comma = self.raw.index(b",", values[-2].end_byte) if len(values) > 1 else before
            own = [(comma, comma + 1)] if comma < before else []
            return self._cut(*own, (before, node.end_byte))
        after = siblings[index + 1].start_byte
        comma = self.raw.index(b",", node.end_byte)
        if comma < after:
            return self._cut((node.start_byte, after))
        return self._cut((node.start_byte, node.end_byte), (comma, comma + 1))

    def _cut(self, *spans: tuple[int, int]) -> str:
        parts, last = [], 0
        for start, end in spans:
            parts.append(self.raw[last:start])
            last = end
        return b"".join([*parts, self.raw[last:]]).decode()


def _first_error(node: "Node") -> "Node":
    for child in node.children:
        if child.has_error or child.is_missing:
            return _first_error(child)
    return node


def _data(text: str) -> Any:
    document = _Document(text)
    return document.value(document.top)
