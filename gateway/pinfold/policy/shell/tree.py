"""The syntax tree of a command, by tree-sitter-bash, held to our own reading of its tokens.

The grammar says how simple commands hang together; every command must begin and end where the
tokenizer says, and every one must be met once. Where the two disagree nothing is proven.
"""

from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec

from pinfold.policy.shell.tokens import Run, Tokens
from pinfold.policy.shell.words import Refused

if TYPE_CHECKING:
    from tree_sitter import Language, Node

Kind = Literal["sequence", "and", "or", "pipeline", "group", "subshell", "negated"]


class Compound(msgspec.Struct, frozen=True):
    """Statements and how they hang together."""

    kind: Kind
    parts: tuple["Statement", ...]


Statement = Run | Compound

_DISAGREE = "The syntax tree is not what the words say, so nothing about it is proven"
_SIMPLE = frozenset(("command", "test_command", "variable_assignment", "variable_assignments"))
_COMPOUND: dict[str, tuple[Kind, frozenset[str]]] = {
    "program": ("sequence", frozenset((";", "&", "\n"))),
    "pipeline": ("pipeline", frozenset(("|", "|&"))),
    "compound_statement": ("group", frozenset(("{", "}", ";", "&", "\n"))),
    "subshell": ("subshell", frozenset(("(", ")", ";", "&", "\n"))),
    "negated_command": ("negated", frozenset("!")),
}
_LISTS: dict[str, Kind] = {"&&": "and", "||": "or"}
_DEEPEST = 250
_LONGEST = 8192
"""Without here-documents. For some texts the grammar takes a time that grows by their square."""


@cache
def _language() -> "Language":
    """Loaded when the first command is read: not every session has a shell."""
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _parse(text: str) -> "Node":
    """By a parser of its own, since calls run on several threads."""
    from tree_sitter import Parser

    return Parser(_language()).parse(text.encode()).root_node


def statement(tokens: Tokens) -> Statement:
    """The tree of what was tokenized. Raises Refused."""
    if len(tokens.text) > _LONGEST:
        raise Refused(f"Commands of more than {_LONGEST} characters together are not read")
    root = _parse(tokens.text)
    if root.has_error or root.type != "program":
        raise Refused("It is not a command that the shell's grammar knows")
    walk = _Walk(tokens)
    found = walk.statement(root, 0)
    if walk.left:
        raise Refused(_DISAGREE)
    return found


class _Walk:
    def __init__(self, tokens: Tokens) -> None:
        self.left = {run.start: run for run in tokens.runs}

    def statement(self, node: "Node", depth: int) -> Statement:
        """A node that stands where a statement may. Raises Refused."""
        if depth > _DEEPEST:
            raise Refused("Commands that deep in one another are not read")
        if node.type in _SIMPLE:
            return self._simple(node)
        if node.type == "list":
            return self._list(node, depth)
        if node.type not in _COMPOUND:
            what = node.type.replace("_", " ")
            raise Refused(f"A {what} is not among what is known here")
        kind, marks = _COMPOUND[node.type]
        return Compound(kind, self._parts(node, marks, depth))

    def _parts(self, node: "Node", marks: frozenset[str], depth: int) -> tuple[Statement, ...]:
        parts = []
        for child in node.children:
            if child.is_named:
                parts.append(self.statement(child, depth + 1))
            elif child.type not in marks:
                raise Refused(_DISAGREE)
        return tuple(parts)

    def _list(self, node: "Node", depth: int) -> Statement:
        marks = [child.type for child in node.children if not child.is_named]
        if len(marks) != 1 or marks[0] not in _LISTS or node.named_child_count != 2:
            raise Refused(_DISAGREE)
        return Compound(_LISTS[marks[0]], self._parts(node, frozenset(marks), depth))

    def _simple(self, node: "Node") -> Run:
        run = self.left.pop(node.start_byte, None)
        if run is None or run.end != node.end_byte:
            raise Refused(_DISAGREE)
        return run
