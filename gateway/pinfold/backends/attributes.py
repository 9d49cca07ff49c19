"""What a replacement keeps of the old file: owner, ACL, attributes, permission bits."""

import errno
import os
import stat

from pinfold_protocol.errors import ToolError

_NOT_HERE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


def keep_attributes(source: int, status: os.stat_result, target: int, path: str) -> None:
    """Owner, ACL, `user.*` attributes and label, then the permission bits; ToolError if the
    owner cannot be kept."""
    have = os.fstat(target)
    if (have.st_uid, have.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(target, status.st_uid, status.st_gid)
        except PermissionError as error:
            message = f"{path}: it belongs to someone else, and its owner could not be kept. "
            message += "Nothing was changed; ask its owner, or write another file."
            raise ToolError("permission", message) from error
    if hasattr(os, "listxattr"):
        _copy_extended_attributes(source, target)
    os.fchmod(target, stat.S_IMODE(status.st_mode) & 0o777)


_ACL = "system.posix_acl_access"
_KEPT = (_ACL, "security.selinux", "security.SMACK64")


def _copy_extended_attributes(source: int, target: int) -> None:
    named = f"/proc/self/fd/{source}"
    try:
        attributes = os.listxattr(named)
    except OSError:
        return
    if _ACL not in attributes and _attribute(target, _ACL) is not None:
        os.removexattr(target, _ACL)  # what the directory's default gave to a new file
    for name in attributes:
        if name.startswith("user.") or name in _KEPT:
            try:
                value = os.getxattr(named, name)
                if _attribute(target, name) != value:
                    os.setxattr(target, name, value)
            except OSError as error:
                if error.errno not in _NOT_HERE | {errno.ENODATA}:
                    raise


def _attribute(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError:
        return None
