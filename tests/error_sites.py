"""Every place in the source that makes an error which somebody can see, found by reading the code.

A site has the anchor of its kind in docs/errors.md and a template of its text, with … for what is
filled in. What is raised and is in no table here is an error that nobody has catalogued.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pinfold.paths.errors import KINDS as ERRNOS
from pinfold_protocol import errors
from pinfold_protocol.catalogue import DENIALS, RPC_ERRORS, TOOL_ERRORS

TOP = Path(__file__).parents[1]
GAP = "…"
ONE_KIND = {
    # Who makes it: the anchor of its kind, and which arguments are its text
    "invalid_params": ("rpc-invalid-params", (0, 1)),
    "_Problem": ("rpc-invalid-params", (0,)),
    "failed": ("rpc-request-failed", (0,)),
    "_not_a_request": ("rpc-invalid-request", (0,)),
    "FramingError": ("rpc-parse-error", (0,)),
    "_invalid": ("invalid-arguments", (0, 1)),
    "BadFlags": ("hook-options", (0,)),
    "NotUnderstood": ("hook-event", (0,)),
    "give_up": ("hook-fault", (0,)),
    "Unusable": ("hook-settings", (0,)),
    "Unreadable": ("command-transcript", (0,)),
    "ArgumentTypeError": ("command-line", (0,)),
    "refuse": ("denied-shell", (0, 1)),
    "Refused": ("denied-shell", (0,)),
    "_failed": ("command-output", (0,)),
}
INSIDE = {
    # Raised, and caught by our own code; what is made of it is a site of its own
    "BlockingIOError": "paths: becomes WouldBlock",
    "Cancelled": "rpc: becomes -32800",
    "asyncio.CancelledError": "rpc: becomes -32800",
    "ChangedUnderfoot": "calls: tried again, then `changed-underfoot`",
    "ConnectionLost": "client: for who uses it as a library",
    "Denied": "calls: becomes `denied`",
    "FileExistsError": "publish: becomes ChangedUnderfoot",
    "FileNotFoundError": "backends and commands: becomes `not-found`, or is said with its path",
    "GaveUp": "upstream: becomes `cancelled` or `backend`",
    "InputRequired": "mcp: becomes a question to the client",
    "IsADirectoryError": "paths: becomes `is-directory`",
    "OSError": "paths.errors: becomes a kind by its number, or is said with its path",
    "PermissionError": "paths.errors: becomes `permission`",
    "RuntimeError": "a mistake of ours",
    "TimeoutError": "client: for who uses it as a library",
    "TypeError": "a mistake of ours, or convert: becomes -32602",
    "Unnamed": "paths: another way is taken",
    "ValueError": "caught where it is called: becomes the error of what was being read",
    "WouldBlock": "calls: tried again where waiting is allowed",
    "below": "convert: becomes -32602 with a place",
    "_Stop": "doctor: becomes the finding `stopped`",
}
MAKERS = {
    # Functions that return an error which is raised: their own sites are found in them
    "_indexed",
    "_inseparable",
    "_located",
    "_no_expansion",
    "_not_storable",
    "_nothing_to_replace",
    "_refused",
    "_translated",
    "_undecodable",
    "_unstorable",
    "_untranslatable",
    "asking_about",
    "from_errno",
    "not_regular",
    "in_file",
    "too_large",
}
HANDED_ON = {
    "error if settings.path is None else in_file(settings.path, error)",
    "content.refusal",
    "failure",
    "seen.content.refusal",
    "self.error",
    "error",
    "problem",
}
"""Errors that were made elsewhere."""


class Site(msgspec.Struct, frozen=True):
    """One place. `kind`: an anchor, None where the code hands on whatever kind it was given."""

    place: str
    kind: str | None
    text: str


def sources() -> list[Path]:
    found = [p for top in ("gateway", "protocol") for p in sorted((TOP / top).rglob("*.py"))]
    assert len(found) > 100
    return found


def raised() -> Iterator[tuple[str, str]]:
    """Where, and the name of what every `raise` of the source raises."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                name = ast.unparse(what)
                if isinstance(node.exc, ast.Call) or isinstance(what, ast.Name):
                    name = name.rpartition(".")[2]
                yield f"{path.relative_to(TOP)}:{node.lineno}", name


def sites() -> list[Site]:
    """All of them, in the order of the source; those of an errno first."""
    by_errno = [
        Site("paths/errors.py", TOOL_ERRORS[kind].name, f"{GAP}: {what}. {then}")
        for kind, what, then in ERRNOS.values()
    ]
    return by_errno + [site for path in sources() for site in _in(path)]


def _in(path: Path) -> Iterator[Site]:
    tree = ast.parse(path.read_text("utf-8"))
    for function, call in _calls(tree):
        for kind, wanted in _kinds(call, tree):
            place = f"{path.relative_to(TOP)}:{call.lineno}"
            arguments = [
                _texts(call.args[at], function, tree) for at in wanted if at < len(call.args)
            ]
            for text in _joined(arguments):
                yield Site(place, kind, text)
    for node in ast.walk(tree):  # a kind and a text, for another function to make an error of
        pair = node.value if isinstance(node, ast.Return) else None
        if (
            isinstance(pair, ast.Tuple)
            and len(pair.elts) == 2
            and isinstance(pair.elts[0], ast.Constant)
        ):
            known = TOOL_ERRORS.get(str(pair.elts[0].value))
            for text in [] if known is None else _texts(pair.elts[1], tree, tree):
                yield Site(
                    f"{path.relative_to(TOP)}:{pair.lineno}", known.name if known else None, text
                )


def _calls(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Each call, with the innermost function that it stands in."""

    def walk(node: ast.AST, function: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield function, child
            inner = child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            yield from walk(child, inner)

    yield from walk(tree, tree)


def _kinds(call: ast.Call, tree: ast.Module) -> Iterator[tuple[str | None, tuple[int, ...]]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    arguments = call.args
    if name in ONE_KIND and arguments:
        yield ONE_KIND[name]
    elif name == "error" and ast.unparse(call.func) == "parser.error":
        yield "command-line", (0,)
    elif name == "ToolError" and arguments:
        yield _tool_kind(arguments[0]), (1,)
    elif name in ("_refused", "_refuse") and len(arguments) == 3:
        yield _tool_kind(arguments[1]), (2,)
    elif name == "RpcError" and arguments:
        yield _rpc_kind(arguments[0], tree), (1,)
    elif name == "said" and ast.unparse(arguments[0]) != "'allow'":
        yield DENIALS[str(ast.literal_eval(arguments[1]))].name, (2,)


def _tool_kind(node: ast.expr) -> str | None:
    return TOOL_ERRORS[str(node.value)].name if isinstance(node, ast.Constant) else None


def _rpc_kind(node: ast.expr, tree: ast.Module) -> str | None:
    name = ast.unparse(node).rpartition(".")[2]
    code = getattr(errors, name, None)
    if code is None and name.lstrip("-").isdigit():
        code = int(name)
    return RPC_ERRORS[code].name if isinstance(code, int) else None


def _joined(parts: list[list[str]]) -> Iterator[str]:
    if len(parts) < 2:
        yield from (parts[0] if parts else [])
        return
    for first in parts[0]:
        for second in parts[1]:
            yield f"{first}: {second}" if first else second


def _texts(node: ast.expr, function: ast.AST, tree: ast.Module) -> list[str]:
    """What an expression may say, with a gap for what is not known before it runs."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        found = [""]
        for part in node.values:
            more = _texts(part, function, tree) if isinstance(part, ast.Constant) else None
            if isinstance(part, ast.FormattedValue):
                more = _filled(part.value, function, tree)
            found = [a + b for a in found for b in more or [GAP]]
        return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _texts(node.left, function, tree), _texts(node.right, function, tree)
        return [a + b for a in left for b in right]
    if isinstance(node, ast.IfExp):
        return _texts(node.body, function, tree) + _texts(node.orelse, function, tree)
    if isinstance(node, ast.Name):
        return _assigned(node, function, tree) or [GAP]
    return [GAP]


def _filled(node: ast.expr, function: ast.AST, tree: ast.Module) -> list[str]:
    """A constant of the module is said as it is; all else is a gap."""
    if isinstance(node, ast.Name) and node.id.lstrip("_").isupper():
        return _assigned(node, function, tree) or [GAP]
    return [GAP]


def _assigned(name: ast.Name, function: ast.AST, tree: ast.Module) -> list[str]:
    found: list[str] = []
    depth = _depth(name, function)
    for scope, where in ((function, ast.walk(function)), (tree, iter(tree.body))):
        changes = [n for n in where if isinstance(n, ast.Assign | ast.AugAssign)]
        for each in sorted(changes, key=lambda n: n.lineno):
            if scope is not tree and each.lineno >= name.lineno:
                continue
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            value: Any = each.value
            if not any(isinstance(t, ast.Name) and t.id == name.id for t in targets):
                continue
            if _names(value, name.id):  # made of what it was
                value = None
            said = [GAP] if value is None else _texts(value, function, tree)
            if isinstance(each, ast.Assign) and each.col_offset <= depth:
                found = []  # whatever was there before, it is this now
            if isinstance(each, ast.AugAssign) and found:
                found = found[:-1] + [found[-1] + more for more in said]
            elif value is not None:
                found += said
        if found:
            break
    return [*dict.fromkeys(found)]


def _depth(name: ast.AST, function: ast.AST) -> int:
    """How far the innermost statement that a name stands in is indented."""
    statements = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and name in ast.walk(s)]
    return max((s.col_offset for s in statements), default=0)


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def texts_by_kind() -> dict[str, list[str]]:
    """What each kind may say, without those that are nothing but gaps."""
    found: dict[str, list[str]] = {}
    for site in sites():
        if site.kind is not None and site.text.replace(GAP, "").strip(" .:;,()'\""):
            found.setdefault(site.kind, []).append(" ".join(site.text.split()))
    return {kind: sorted(set(texts), key=str.casefold) for kind, texts in found.items()}
