"""What can go wrong with a path, and how the system's errors are called in the contract."""

import errno
from typing import NoReturn

from pinfold_protocol.errors import ToolError, ToolErrorKind


class WouldBlock(Exception):
    """An attempt that must not wait would have to; try again where waiting is allowed."""


class ChangedUnderfoot(Exception):
    """Something else changed the tree between a decision and its effect; nothing was changed."""


_KINDS: dict[int, tuple[ToolErrorKind, str]] = {
    errno.ENOENT: ("not-found", "no such file or directory"),
    errno.ENOTDIR: ("not-found", "a component of the path is not a directory"),
    errno.ELOOP: ("invalid-path", "too many symbolic links, or a loop of them"),
    errno.ENAMETOOLONG: ("invalid-path", "the path or a name in it is too long"),
    errno.EACCES: ("permission", "permission denied"),
    errno.EPERM: ("permission", "not permitted"),
    errno.EISDIR: ("is-directory", "it is a directory"),
    errno.ENOSPC: ("no-space", "no space left on the device"),
    errno.EDQUOT: ("no-space", "the disk quota is used up"),
    errno.EROFS: ("read-only-filesystem", "the file system is read-only"),
}


def describe(number: int | None) -> str:
    """An errno in words."""
    if number in _KINDS:
        return _KINDS[number][1]
    return "input/output error" if number is None else f"{errno.errorcode.get(number, number)}"


def from_errno(number: int | None, path: str) -> ToolError:
    """The tool error for a failed system call on `path`."""
    kind: ToolErrorKind = _KINDS[number][0] if number in _KINDS else "io"
    return ToolError(kind, f"{path}: {describe(number)}")


def reraise(error: OSError, path: str) -> NoReturn:
    """Raise the tool error that an OSError means for `path`."""
    raise from_errno(error.errno, path) from error
