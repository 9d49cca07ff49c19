"""The entry in a host's settings: put in, brought up to date, taken out; all else stays as it is.

The file is JSON, comments allowed. It is read by the grammar and changed by splices, so that
nothing that somebody wrote is written anew. What is in it is checked against what it should be
before anybody sees it.
"""

import json
import math
import os
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pinfold.doors.hook.flags import DEADLINE
from pinfold.doors.hook.hosts import HOSTS, Host

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_MORE_SECONDS = 5
"""How much longer than our own deadline the host is to wait."""

_DEFAULT_INDENT = "  "


class Unusable(Exception):
    """Settings that cannot be changed: says the line, and why."""


def place(host: Host, project: str | None, env: Mapping[str, str], home: str) -> str:
    """The settings file of a project, else the user's own."""
    if project is not None:
        return os.path.join(project, host.directory, "settings.json")
    own = env.get(host.home) or os.path.join(home, host.directory)
    return os.path.join(own, "settings.json")


def entries(host: Host, command: str, deadline: float = DEADLINE) -> dict[str, dict[str, Any]]:
    """What is to stand in the settings, by event: one group with one command. `deadline`: the
    command's own, in seconds."""
    reading = [name for name, tool in host.tools.items() if tool.kind == "read"]
    matchers = {
        "PreToolUse": "*",
        "PostToolUse": "|".join(reading),
        "SessionStart": "compact|clear",
    }
    hook = {"type": "command", "command": command, "timeout": math.ceil(deadline) + _MORE_SECONDS}
    return {event: {"matcher": matcher, "hooks": [hook]} for event, matcher in matchers.items()}


def is_ours(command: object, host: str) -> bool:
    """Whether a command is `pinfold hook` for this host and nothing else, wherever the program is:
    a hook of somebody's own that begins or ends with ours is theirs."""
    try:
        words = list(_shell_words(command)) if isinstance(command, str) else []
    except ValueError:
        return False
    if words[-1:] and set(words) & {";", "&", "&&", "|", "||", "(", ")", "<", ">", ">>"}:
        return False
    named = [os.path.basename(words[0]), *words[1:]] if words else []
    if named[:2] == ["pinfold", "hook"]:
        flags = named[2:]
    elif "-m" in named[1:3] and named[named.index("-m") :][1:3] == ["pinfold", "hook"]:
        flags = named[named.index("-m") + 3 :]
    else:
        return False
    return f"--host={host}" in flags or ("--host", host) in pairwise(flags)


def _shell_words(command: str) -> shlex.shlex:
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    return words


def installed(text: str, host: str, command: str, deadline: float = DEADLINE) -> str:
    """The settings with the entry for a host, and no older one. Raises Unusable."""
    wanted = entries(HOSTS[host], command, deadline)
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
    _require_same(_data(text), expected)
    return text


def uninstalled(text: str, host: str) -> str:
    """The settings without our entry for a host. Raises Unusable."""
    if not text.strip():
        return text
    document = _Document(text)
    expected = _others(document.value(document.object(document.top, "the settings")), host)
    while (node := _next_of_ours(document, host)) is not None:
        text = document.without(node)
        document = _Document(text)
    _require_same(_others(document.value(document.top), host), expected)
    return text


def _require_same(found: Any, expected: Any) -> None:
    if found != expected:
        raise Unusable("the settings would say something else then; nothing was changed")


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


def _others(data: Any, host: str) -> Any:
    """The settings as data without what is ours, and without what has nothing in it then."""
    events = {}
    for event, groups in _events(data).items():
        kept = (
            [_other_hooks(group, host) for group in groups] if isinstance(groups, list) else groups
        )
        if kept := [group for group in kept if group] if isinstance(kept, list) else kept:
            events[event] = kept
    rest = dict(data)
    if isinstance(rest.get("hooks"), dict):
        del rest["hooks"]
    return {**rest, "hooks": events} if events else rest


def _other_hooks(group: Any, host: str) -> Any:
    if not _hooks(group):
        return group if not isinstance(group, dict) or group.get("hooks") != [] else None
    hooks = [
        hook
        for hook in group["hooks"]
        if not (isinstance(hook, dict) and is_ours(hook.get("command"), host))
    ]
    return {**group, "hooks": hooks} if hooks else None


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
                if not document.is_all_of(inner, group, only=("matcher", "hooks")):
                    return hook
                if not document.is_all_of(groups, pair):
                    return group
                assert hooks.parent is not None
                return hooks.parent if document.is_all_of(hooks, hooks.parent) else pair
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
            wrong = _first_error(root)
            before = wrong.prev_sibling if wrong.is_missing else None
            comma = b"," in (wrong.text, before and before.text)
            why = "there is a comma too many" if comma else "it is not JSON"
            raise Unusable(f"line {wrong.start_point[0] + 1}: {why}")
        values = [child for child in root.named_children if child.type != "comment"]
        if len(values) != 1:
            raise Unusable("it must hold one object")
        self.top = values[0]
        self._comments = [node.start_byte for node in _comments(root)]
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

    def is_all_of(self, container: "Node", outer: "Node", only: tuple[str, ...] = ()) -> bool:
        """Whether one thing is all that is in a container, and all that it stands in may go with
        it: no comment, and no member but these."""
        ends = (outer.start_byte, outer.end_byte)
        commented = any(ends[0] < at < ends[1] for at in self._comments)
        keys = {self._key(pair) for pair in self.pairs(outer)} if only else set()
        return len(container.named_children) == 1 and not commented and keys <= set(only)

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
            comma = _comma_after(values[-2]).start_byte if len(values) > 1 else before
            own = [(comma, comma + 1)] if comma < before else []
            return self._cut(*own, (before, node.end_byte))
        after = siblings[index + 1].start_byte
        comma = _comma_after(node).start_byte
        if comma < after:
            return self._cut((node.start_byte, after))
        return self._cut((node.start_byte, node.end_byte), (comma, comma + 1))

    def _cut(self, *spans: tuple[int, int]) -> str:
        parts, last = [], 0
        for start, end in spans:
            parts.append(self.raw[last:start])
            last = end
        return b"".join([*parts, self.raw[last:]]).decode()


def _comments(node: "Node") -> "list[Node]":
    found, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        waiting += each.named_children
        found += [each] if each.type == "comment" else []
    return found


def _comma_after(node: "Node") -> "Node":
    """The comma that follows a member or an element, past comments."""
    following = node.next_sibling
    while following is not None and following.type != ",":
        following = following.next_sibling
    assert following is not None
    return following


def _first_error(node: "Node") -> "Node":
    for child in node.children:
        if child.has_error or child.is_missing:
            return _first_error(child)
    return node


def _data(text: str) -> Any:
    document = _Document(text)
    return document.value(document.top)
