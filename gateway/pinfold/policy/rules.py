"""Base rules: gitignore patterns over the path that was given and the path that it leads to.

A rule is read when it is given, and refused there if a part of it can never match: a hole in a
list of denials must not be silent. Matching is pathspec's; a pattern is first anchored where it
belongs, so that one list holds the patterns of all anchors, in their order.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from pinfold_protocol.decision import RuleSource, RuleSpec, Verdict
from pinfold_protocol.errors import invalid_params, perhaps, short

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_STRENGTH: tuple[Verdict, ...] = ("deny", "ask", "allow")
_SPECIAL = frozenset("\\*?[]!#")
_WILD = frozenset("\\*?[")
_NEWLINE = "\ue001"
"""Stands for a line break, which pathspec's wild cards do not match."""
_LONGEST_NAME = 255
_PROBE = "\ue000"
"""A name that no pattern names: what covers it covers whatever is in its directory."""


class Anchors(msgspec.Struct, frozen=True):
    """Where patterns count from, each as it is written and as it really is. `resolve` gives the
    real path of a directory that a pattern names in full, or the same path."""

    project: str
    home: str
    resolve: Callable[[str], str] = lambda path: path


class Rule(msgspec.Struct, frozen=True):
    """A rule that was read. `tools` is None for all of them, `paths` where it has none."""

    decision: Verdict
    source: RuleSource
    tools: frozenset[str] | None
    paths: "GitIgnoreSpec | None"

    def names(self, tool: str) -> bool:
        """Whether it is about a tool."""
        return self.tools is None or tool in self.tools

    def covers(self, path: str, *, directory: bool) -> bool:
        """Whether a pattern of it matches an absolute path. `directory`: the path is where a tool
        looks for files, so what covers all that is in it covers it too."""
        assert self.paths is not None
        if any(len(name) > _LONGEST_NAME for name in path.split("/")):
            return self.decision != "allow"  # no file system has it, and matching could take long
        inside = path.strip("/").replace("\n", _NEWLINE)
        forms = (inside, f"{inside}/", f"{inside}/{_PROBE}") if directory else (inside,)
        return any(self.paths.match_file(form) for form in forms)


def read_rules(
    specs: Sequence[RuleSpec],
    of: str,
    anchors: Anchors,
    known: Collection[str],
    at: str = "rules",
) -> tuple[Rule, ...]:
    """Rules, in their order. `known` are the tools that there are.

    Raises RpcError (-32602) that names the member which is wrong, below `at`.
    """
    return tuple(
        _read(spec, RuleSource(index, of), anchors, known, f"{at}[{index}]")  # type: ignore[arg-type]
        for index, spec in enumerate(specs)
    )


def _read(
    spec: RuleSpec, source: RuleSource, anchors: Anchors, known: Collection[str], at: str
) -> Rule:
    if not spec.tools:
        raise invalid_params(f"{at}.tools", 'is empty, so it would never match; "*" means all')
    for index, tool in enumerate(spec.tools):
        if tool != "*" and tool not in known:
            raise invalid_params(f"{at}.tools[{index}]", _no_such_tool(tool, known))
    tools = None if "*" in spec.tools else frozenset(spec.tools)
    paths = None if spec.paths is None else _read_paths(spec.paths, anchors, f"{at}.paths")
    return Rule(spec.decision, source, tools, paths)


def _no_such_tool(tool: str, known: Collection[str]) -> str:
    return f"there is no tool called {short(tool)!r}{perhaps(tool, known)}"


def _read_paths(patterns: Sequence[str], anchors: Anchors, at: str) -> "GitIgnoreSpec":
    import re

    from pathspec import GitIgnoreSpec

    if not patterns:
        raise invalid_params(at, "is empty, so it would never match; leave it out to mean all")
    if all(pattern.startswith("!") for pattern in patterns):
        raise invalid_params(at, "holds nothing but exceptions, so it would never match")
    lines: list[str] = []
    for index, pattern in enumerate(patterns):
        problem = _problem(pattern)
        if problem is None and pattern.startswith("!") and not lines:
            problem = "is an exception to nothing: the patterns before it count"
        if problem is not None:
            raise invalid_params(f"{at}[{index}]", problem)
        lines += _anchored(pattern, anchors)
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error) as error:
        raise invalid_params(at, f"holds a pattern that is none: {short(str(error))}") from None
    if any(pattern.include is None for pattern in spec.patterns):
        raise invalid_params(at, "holds a pattern that can never match")
    return spec


def _problem(pattern: str) -> str | None:
    """Why a pattern could never match anything, in words for whoever wrote it."""
    body = pattern.removeprefix("!")
    names = body.strip("/").split("/")
    tests = (
        (not body.strip(" "), "is empty"),
        (pattern.startswith("#"), "is a comment in gitignore; write \\# for a name with #"),
        (not body.strip("/"), "names no file; /** means all"),
        ("\0" in body, "has a NUL character, and no path has one"),
        (not _is_encodable(body), "has a lone surrogate, and no path has one"),
        (".." in names, "has .. in it, and what it is compared with never has; write it absolute"),
        (bool({"", "."} & set(names)), "has an empty name or . in it, so it could never match"),
        (_ends_in_backslash(body), "ends in a backslash that escapes nothing"),
        (_is_open(body), "has a [ that is never closed"),
    )
    return next((problem for holds, problem in tests if holds), None)


def _is_encodable(body: str) -> bool:
    try:
        body.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _ends_in_backslash(body: str) -> bool:
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1


def _is_open(body: str) -> bool:
    import re

    plain = re.sub(r"\\.", "", body)
    return bool(re.search(r"\[(?![!^]?\]?[^\]]*\])", plain))


def _anchored(pattern: str, anchors: Anchors) -> list[str]:
    """The same pattern from the file system's root, once for each way to write its anchor."""
    negation = "!" if pattern.startswith("!") else ""
    body = pattern.removeprefix("!")
    if body.startswith("/"):
        base, rest = "", body
    elif body == "~" or body.startswith("~/"):
        base, rest = anchors.home, body[1:]
    else:
        deep = "/" not in body.rstrip("/")
        base, rest = anchors.project, f"/**/{body}" if deep else f"/{body}"
    if negation:  # what an exception names may not be moved by a link to where a denial is
        real = _escaped(anchors.resolve(base or "/").rstrip("/"))
        spelt = dict.fromkeys((_escaped(base.rstrip("/")) + rest, real + rest))
    else:
        spelt = dict.fromkeys(_spellings(base, rest, anchors.resolve))
    return [negation + line.replace("\n", _NEWLINE) for line in spelt]


def _spellings(base: str, rest: str, resolve: Callable[[str], str]) -> list[str]:
    """As it is written, and with what it names in full as that really is."""
    names = rest.split("/")
    wild_ones = (i for i, name in enumerate(names) if (i and not name) or _WILD & set(name))
    fixed = next(wild_ones, None)
    plain = (base.rstrip("/") + "/".join(names[:fixed])).rstrip("/")
    real = resolve(plain or "/").rstrip("/")
    wild = "" if fixed is None else "/".join(["", *names[fixed:]])
    written = _escaped(base.rstrip("/")) + rest
    return [written] if real == plain else [written, _escaped(real) + wild]


def _escaped(path: str) -> str:
    """A blank in a class of its own: at the end it would be cut off."""
    escaped = (f"\\{char}" if char in _SPECIAL else char for char in path)
    return "".join(escaped).replace(" ", "[ ]")


def strongest(rules: Sequence[Rule], matches: Callable[[Rule], bool]) -> Rule | None:
    """Of the rules that match, the first of the strongest kind: deny, ask, allow."""
    found: dict[Verdict, Rule] = {}
    for rule in rules:
        if rule.decision not in found and matches(rule):
            found[rule.decision] = rule
    return next((found[kind] for kind in _STRENGTH if kind in found), None)
