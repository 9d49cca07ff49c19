"""What is mounted where, as the kernel tells it; nothing where there is no such table."""

import re
from collections.abc import Sequence

import msgspec

from pinfold.paths.literal import decode
from pinfold.policy.names import below

_TABLE = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_REMOTE = frozenset(
    (
        "9p",
        "afs",
        "ceph",
        "cifs",
        "glusterfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "vboxsf",
        "virtiofs",
    )
)


class Mount(msgspec.Struct, frozen=True):
    """A place, and the kind of file system that is mounted there."""

    point: str
    kind: str

    @property
    def remote(self) -> bool:
        """Whether another machine or another program may be behind it."""
        return self.kind in _REMOTE or self.kind.startswith("fuse")


def mounts() -> tuple[Mount, ...]:
    """All of them, later ones over earlier ones."""
    try:
        with open(_TABLE, "rb") as table:
            return tuple(_read(line) for line in table)
    except OSError:
        return ()


def _read(line: bytes) -> Mount:
    left, _, right = line.partition(b" - ")
    point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), left.split(b" ")[4])
    return Mount(decode(point), decode(right.split(b" ", 1)[0]))


def mount_of(real: str, table: Sequence[Mount]) -> Mount | None:
    """The one that a real path is on."""
    on = [mount for mount in table if below(real, mount.point) is not None]
    longest = max((len(mount.point) for mount in on), default=0)
    return next((mount for mount in reversed(on) if len(mount.point) == longest), None)


def mounts_below(real: str, table: Sequence[Mount]) -> list[str]:
    """The places below a real path where something is mounted."""
    return sorted({mount.point for mount in table if below(mount.point, real)})
