"""Does a volume fold names? Probed once for each directory, by device and inode, not guessed."""

import os
import stat

from pinfold.paths.kernel import platform
from pinfold.paths.literal import decode, encode
from pinfold.paths.opened import identity
from pinfold.paths.standing import Standing
from pinfold.policy.facts import Identity


class Volumes:
    """Remembers what was found out. Only a conclusive probe is remembered. `standing`: what the
    paths of roots led to."""

    def __init__(self) -> None:
        self._folding: dict[Identity, bool] = {}
        self.standing = Standing()

    def folds_names(self, directory: int, directory_identity: Identity | None) -> bool:
        """Whether a name in another case answers in this directory, as far as can be told."""
        if directory_identity in self._folding:
            return self._folding[directory_identity]
        found = probe(directory)
        if found is not None and directory_identity is not None:
            self._folding[directory_identity] = found
        return bool(found)


def probe(directory: int) -> bool | None:
    """Whether this directory folds names, by its own entries; None where they do not tell."""
    listing = platform.reopen(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(listing) as entries:
            for entry in entries:
                if (answer := _probe_entry(directory, entry.name)) is not None:
                    return answer
    finally:
        os.close(listing)
    return None


def _probe_entry(directory: int, name: str) -> bool | None:
    swapped = name.swapcase()
    if swapped == name:
        return None
    try:
        status = _status(directory, name)
    except OSError:
        return None
    try:
        other = _status(directory, swapped)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    if identity(status) == identity(other) and stat.S_ISDIR(status.st_mode):
        return True  # a directory has no second name
    # Two files, two hard links of one file, or one file on a volume without stable inodes: the
    # name that answers is in the listing, or it is no name of its own.
    return not _is_listed(directory, swapped)


def _is_listed(directory: int, name: str) -> bool:
    listing = platform.reopen(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return name in os.listdir(listing)
    finally:
        os.close(listing)


def _status(directory: int, name: str) -> os.stat_result:
    return os.stat(os.fsencode(name), dir_fd=directory, follow_symlinks=False)


def entries_of(directory: int, name: str, wanted: Identity | None) -> tuple[str, ...] | None:
    """Which listed names a name that answered stands for; None if it is listed itself.

    Compared byte for byte, then by identity. Raises OSError where the listing cannot be read.
    """
    listing = platform.reopen(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listed = [os.fsencode(each) for each in os.listdir(listing)]
        if encode(name) in listed:
            return None
        same = []
        for each in listed:
            status = os.stat(each, dir_fd=directory, follow_symlinks=False)
            if wanted is not None and identity(status) == wanted:
                same.append(decode(each))
        return tuple(same)
    finally:
        os.close(listing)


def holds_file(directory: int, wanted: Identity) -> bool:
    """Whether the regular file `wanted` has a name anywhere below a directory.

    Listed on descriptors, links not followed. Raises OSError where something cannot be listed.
    """
    listing = platform.reopen(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in os.listdir(listing):
            raw = os.fsencode(name)
            status = os.stat(raw, dir_fd=listing, follow_symlinks=False)
            if identity(status) == wanted:
                return True
            if stat.S_ISDIR(status.st_mode) and _descend(listing, raw, wanted):
                return True
        return False
    finally:
        os.close(listing)


def _descend(directory: int, name: bytes, wanted: Identity) -> bool:
    handle = platform.open_entry(directory, name)
    try:
        return holds_file(handle, wanted)
    finally:
        os.close(handle)
