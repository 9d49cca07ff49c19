"""JSON-RPC error codes, tool error kinds, and the two exceptions that carry them."""

from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

# JSON-RPC 2.0 and the Language Server Protocol
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803
"""Of the Language Server Protocol too: a feature that was understood, and cannot be done."""
# Ours
UNKNOWN_SESSION = -32010
MESSAGE_TOO_LARGE = -32011
# The Model Context Protocol's
UNSUPPORTED_VERSION = -32022

ToolErrorKind = Literal[
    "denied",
    "not-found",
    "is-directory",
    "not-a-regular-file",
    "binary",
    "undecodable",
    "too-large",
    "permission",
    "no-match",
    "ambiguous-match",
    "no-change",
    "already-exists",
    "stale",
    "not-read",
    "invalid-path",
    "invalid-arguments",
    "read-only-filesystem",
    "no-space",
    "changed-underfoot",
    "io",
    "backend",
    "cancelled",
]
TOOL_ERROR_KINDS: tuple[str, ...] = get_args(ToolErrorKind)


class RpcError(Exception):
    """A protocol error, for the host: `code` is a constant above, `data` is plain JSON."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(Exception):
    """A failure that the model should read and react to; becomes a result with `isError: true`.

    `data` holds further members of `pinfold/details.error` (plain JSON).
    """

    def __init__(self, kind: ToolErrorKind, message: str, **data: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.data = data


_LONGEST_MISTAKE = 64
"""Characters of a name that others are compared with."""


_E = TypeVar("_E", bound=BaseException)


def kept(error: _E) -> _E:
    """An error that is kept: as data, or to be raised again by others. It lets go of where it came
    from, whose frames hold all that a call did, and perhaps the error itself: such a ring would
    stay in memory until a collection."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def short(text: str) -> str:
    """A name that came from outside, cut so that it can be said in an error."""
    return text if len(text) <= 200 else f"{text[:199]}…"


def perhaps(given: str, known: "Iterable[str]") -> str:
    """`; 'edit'?` for `edti`: what may have been meant, to be added to what is wrong; nothing where
    that is far."""
    import difflib  # a hook starts for every call

    near = difflib.get_close_matches(given, known, n=1) if len(given) <= _LONGEST_MISTAKE else ()
    return f"; {near[0]!r}?" if near else ""


def invalid_params(path: str, problem: str) -> RpcError:
    """-32602; `path` names the member in dotted form (`scope.shell`), empty for the params."""
    path = short(path)
    where = f"{path}: " if path else ""
    data = {"path": path, "problem": problem}
    return RpcError(INVALID_PARAMS, f"Invalid params: {where}{problem}", data)
