"""A small file system in user space that folds names: `python folding_fuse.py BACKING MOUNTPOINT
[--normalise] [--own-inodes]`. For tests: kernels here have neither vfat nor casefold.

Names keep the spelling they were made with and answer in any case; with `--normalise` a name is
stored decomposed, as HFS+ does; with `--own-inodes` a file has one inode number for each spelling,
as on volumes without stable ones. Runs in the foreground until it is unmounted.
"""

import errno
import os
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import mfusepy  # type: ignore[import-not-found,import-untyped,unused-ignore]


def folded(name: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


class Folding(mfusepy.Operations):  # type: ignore[misc,unused-ignore]
    """Passes everything on to a backing directory, by the stored spelling of each name."""

    use_ns = True

    def __init__(self, backing: str, normalise: bool) -> None:
        self.backing = backing
        self.normalise = normalise

    def stored(self, path: str) -> str:
        """The backing path of what answers to `path`, or of what would be made."""
        here = self.backing
        for name in filter(None, path.split("/")):
            try:
                listed = os.listdir(here)
            except OSError:
                listed = []
            match = next((each for each in listed if folded(each) == folded(name)), None)
            new = unicodedata.normalize("NFD", name) if self.normalise else name
            here = os.path.join(here, match or new)
        return here

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        status = self.call(os.lstat, self.stored(path))
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_ino")
        found = {name: getattr(status, name) for name in names}
        for name in ("atime", "mtime", "ctime"):
            found[f"st_{name}"] = getattr(status, f"st_{name}_ns")
        return found

    @staticmethod
    def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except OSError as error:
            raise mfusepy.FuseOSError(error.errno) from error

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, Any], int]]:
        names = [".", "..", *self.call(os.listdir, self.stored(path))]
        # An entry without an inode number would be passed over by readers.
        return [
            (name, self.getattr(path if name == ".." else f"{path}/{name}"), 0) for name in names
        ]

    def open(self, path: str, flags: int) -> int:
        return int(self.call(os.open, self.stored(path), flags & ~os.O_CREAT))

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return int(self.call(os.open, self.stored(path), os.O_RDWR | os.O_CREAT, mode))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        data: bytes = self.call(os.pread, fh, size, offset)
        return data

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return int(self.call(os.pwrite, fh, data, offset))

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        self.call(os.truncate, self.stored(path), length)

    def release(self, path: str, fh: int) -> None:
        self.call(os.close, fh)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        self.call(os.fsync, fh)

    def mkdir(self, path: str, mode: int) -> None:
        self.call(os.mkdir, self.stored(path), mode)

    def rmdir(self, path: str) -> None:
        self.call(os.rmdir, self.stored(path))

    def unlink(self, path: str) -> None:
        self.call(os.unlink, self.stored(path))

    def symlink(self, target: str, source: str) -> None:
        self.call(os.symlink, source, self.stored(target))

    def link(self, target: str, source: str) -> None:
        self.call(os.link, self.stored(source), self.stored(target))

    def readlink(self, path: str) -> str:
        return str(self.call(os.readlink, self.stored(path)))

    def chmod(self, path: str, mode: int) -> None:
        self.call(os.chmod, self.stored(path), mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        self.call(os.chown, self.stored(path), uid, gid)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        self.call(os.utime, self.stored(path), ns=times)

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        if flags:
            raise mfusepy.FuseOSError(errno.EINVAL)
        self.call(os.rename, self.stored(old), self.stored(new))


if __name__ == "__main__":
    mfusepy.FUSE(
        Folding(os.path.abspath(sys.argv[1]), "--normalise" in sys.argv),
        sys.argv[2],
        foreground=True,
        nothreads=True,
        default_permissions=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        hard_remove=True,  # or an open file that is removed leaves a name behind
        use_ino="--own-inodes" not in sys.argv,
    )
