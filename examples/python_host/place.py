"""A project with memory in a temporary directory: the stage of the examples."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pinfold_protocol.session import MemoryOptions

RULES = "---\nname: Releases\ntype: feedback\n---\n\nReleases happen on Tuesdays.\n"
BUILD = "---\nname: Build\ntype: project\n---\n\nThe build needs Python 3.11.\n"


@dataclass(frozen=True)
class Place:
    """Where everything is. `file` and `topic` give paths, `read` the bytes of one."""

    base: str

    @property
    def project(self) -> str:
        """The project's own files."""
        return f"{self.base}/project"

    @property
    def memory(self) -> MemoryOptions:
        """Both roots, so that nobody's real memory is touched."""
        return MemoryOptions(project_root=f"{self.base}/memory", user_root=f"{self.base}/user")

    def file(self, name: str) -> str:
        """A file of the project."""
        return f"{self.project}/{name}"

    def topic(self, name: str) -> str:
        """A document of the project's memory."""
        return f"{self.base}/memory/{name}"

    def write(self, path: str, text: str) -> None:
        """Put a file there, its directories too."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def pinned(self) -> dict[str, tuple[int, int, bytes]]:
        """All that is below `pinned/`: mode, inode and bytes, by path."""
        found = {}
        for directory, _, names in os.walk(self.topic("pinned")):
            for path in (f"{directory}/{name}" for name in names):
                status = os.lstat(path)
                found[path] = (status.st_mode, status.st_ino, read(path))
        return found


def read(path: str) -> bytes:
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


@contextmanager
def place() -> Iterator[Place]:
    """A fresh one: a pinned document, an ordinary one, and some source."""
    with tempfile.TemporaryDirectory(prefix="pinfold-example-") as base:
        made = Place(os.path.realpath(base))
        made.write(made.topic("pinned/releases.md"), RULES)
        made.write(made.topic("build.md"), BUILD)
        for number in range(4):
            made.write(made.file(f"src/part{number}.py"), f"part = {number}\n" * 200)
        made.write(made.file("settings.env"), "MODE=test\n")
        yield made
