"""Temporaries: what they are called, and what a killed writer left."""

import fcntl
import os
import re
import stat

from pinfold.paths.opened import snapshot

TEMPORARY = (b".pinfold-", b".tmp")
_LEFT_OVER = re.compile(re.escape(TEMPORARY[0]) + rb"[0-9a-f]{16}" + re.escape(TEMPORARY[1]))


def remove_left_over(directory: int, mine: bytes | None) -> None:
    """Remove temporaries of killed writers from a directory whose lock is held, but not `mine`.

    Only regular files with our name pattern, our owner, one link and a free lock.
    """
    for name in os.listdir(directory):
        raw = os.fsencode(name)
        if _LEFT_OVER.fullmatch(raw) and raw != mine:
            try:
                _remove_one(directory, raw)
            except OSError:
                continue


def _remove_one(directory: int, name: bytes) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not ours or status.st_nlink != 1:
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if snapshot(os.fstat(descriptor)) == snapshot(status):
            os.unlink(name, dir_fd=directory)
    finally:
        os.close(descriptor)


def temporary_name() -> bytes:
    """A name that nobody else has."""
    return TEMPORARY[0] + os.urandom(8).hex().encode() + TEMPORARY[1]
