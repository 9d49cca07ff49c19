"""What can go wrong with a path, and how the system's errors are called in the contract."""

import errno
import os
from typing import NoReturn

from pinfold_protocol.errors import ToolError, ToolErrorKind


class WouldBlock(Exception):
    """An attempt that must not wait would have to; try again where waiting is allowed."""


class ChangedUnderfoot(Exception):
    """Something else changed the tree between a decision and its effect; nothing was changed."""


_CHECK = "Check the path."
_ASK = "Ask the user to allow it, or use another file."
_ROOM = "Ask the user to make room, then try again."
_LATER = "Try again later; if it stays, tell the user."
_MOUNT = "Use another file, or ask the user to change it, or to mount its directory instead."
_DISK = "The disk may fail, unless this is a file of the kernel's, as in /proc: tell the user."

KINDS: dict[int, tuple[ToolErrorKind, str, str]] = {
    errno.ENOENT: ("not-found", "no such file or directory", _CHECK),
    errno.ENOTDIR: ("not-found", "a component of the path is not a directory", _CHECK),
    errno.ELOOP: ("invalid-path", "too many symbolic links, or a loop of them", _CHECK),
    errno.ENAMETOOLONG: ("invalid-path", "the path or a name in it is too long", "Shorten it."),
    errno.EACCES: ("permission", "permission denied", _ASK),
    errno.EPERM: ("permission", "not permitted", _ASK),
    errno.EISDIR: ("is-directory", "it is a directory", "Give the path of a file."),
    errno.ENOSPC: ("no-space", "no space left on the device", _ROOM),
    errno.EDQUOT: ("no-space", "the disk quota is used up", _ROOM),
    errno.EROFS: ("read-only-filesystem", "the file system is read-only", _ASK),
    errno.EBUSY: ("io", "it is busy, as a mount point is, and cannot be replaced (EBUSY)", _MOUNT),
    errno.EAGAIN: ("io", "it has nothing to read now, and might never (EAGAIN)", "Use another."),
    errno.EIO: ("io", "input/output error (EIO)", _DISK),
    errno.EMFILE: ("io", "the gateway has too many open files (EMFILE)", _LATER),
    errno.ENFILE: ("io", "the system has too many open files (ENFILE)", _LATER),
    errno.ENOMEM: ("io", "the system is out of memory (ENOMEM)", _LATER),
}
"""By errno: the kind in the contract, what happened, what to do. All others are `io`."""

_IO = "The system cannot do that here: use another file, or tell the user."


def describe(number: int | None) -> str:
    """An errno in words, without what to do."""
    if number in KINDS:
        return KINDS[number][1]
    if number is None:
        return "input/output error"
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


def from_errno(number: int | None, path: str) -> ToolError:
    """The tool error for a failed system call on `path`."""
    kind, _, then = KINDS.get(number or 0, ("io", "", _IO))
    return ToolError(kind, f"{path}: {describe(number)}. {then}")


def reraise(error: OSError, path: str) -> NoReturn:
    """Raise the tool error that an OSError means for `path`."""
    raise from_errno(error.errno, path) from error
