"""The repositories that git could find from a directory: what the shell gate must know of them.

They are found as git finds them, upwards from the directory, but where git may or may not take
something for a repository both are looked at. Nothing is run.

The environment of the gateway stands for that of the shell. It belongs to the user, like the user's
own configuration: a pager or a configuration that it names is trusted. But where it says which
repository is used (GIT_DIR and the like), or where a `cd` leads (CDPATH), nothing is proven.

A look is a moment: whoever may change the repository before the command runs may change what it
does. A memory agent may not, as everything that counts is outside of memory.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pinfold.paths.literal import decode, encode
from pinfold.policy.facts import RootFacts
from pinfold.policy.names import below, collapse
from pinfold.policy.shell.git import Repository
from pinfold.policy.shell.gitfiles import has_submodules, settings

_MOVES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
    *("GIT_NAMESPACE", "GIT_EXEC_PATH"),
)
# Every other word of a `cd` is looked for below CDPATH first.
_RELIES_ON_NOTHING = re.compile(r"[/~]|\.\.?(?:/|\Z)")
_MOST_SPELLINGS = 16
_HEAD = re.compile(r"(?:ref: refs/[^\s]+|[0-9a-f]{40}|[0-9a-f]{64})\n?")
_LARGEST_FILE = 1 << 18
_LARGEST_INDEX = 1 << 26
_HOOK = "post-index-change"
"""The one hook that a command which only reads may run: when it refreshes the index."""


class Memory(msgspec.Struct, frozen=True):
    """Where memory is: its roots' paths, as configured and as they are."""

    paths: frozenset[str]

    def holds(self, path: str) -> bool:
        """Whether this real path is inside a root, by name or by identity."""
        if any(below(path, root) is not None for root in self.paths):
            return True
        roots = {identity for root in self.paths if (identity := _identity(root))}
        return any(_identity(upper) in roots for upper in _upwards(path)) if roots else False


def memory_of(roots: Iterable[RootFacts]) -> Memory:
    """Every root, whether it is in the session's scope or not."""
    paths = (path for root in roots for path in (root.path, root.real, root.write_path))
    return Memory(frozenset(path for path in paths if path is not None))


class Finder(msgspec.Struct, frozen=True):
    """Looks from `start`, the literal absolute directory in which a command begins. What it has
    seen once it does not read again."""

    start: str
    home: str
    env: Mapping[str, str]
    memory: Memory
    _seen: dict[str, tuple[tuple[Repository, ...], bool]] = msgspec.field(default_factory=dict)

    def find(self, place: tuple[str, ...]) -> tuple[Repository, ...]:
        """Everything that git could take for the repository at a place; empty for nothing."""
        moved = next((name for name in _MOVES if name in self.env), None)
        if moved is not None:
            return (_unknown(self.start, f"would read the repository that {moved} names"),)
        if self.env.get("CDPATH") and not all(_RELIES_ON_NOTHING.match(word) for word in place):
            return (_unknown(self.start, "would run where CDPATH leads"),)
        directories = self._directories(place)
        if not directories:
            where = "/".join((self.start, *place))
            return (_unknown(where, f"would run in {where}, which is not there"),)
        if len(directories) > _MOST_SPELLINGS:
            return (_unknown(self.start, "would run in one of too many directories"),)
        found = (item for path in directories for item in self._search(_real(path)))
        return tuple(dict.fromkeys(found))

    def _directories(self, place: tuple[str, ...]) -> list[str]:
        """The names under which a shell could then be there. It folds `..` as text, by a name that
        may lead through links, or if that fails goes by the directory as it is: each `cd` either
        way."""
        spellings = self._starts()
        for word in place:
            if len(spellings) > _MOST_SPELLINGS:
                break
            target = self.home + word[1:] if word[:1] == "~" else word
            paths = (_joined(path, target) for path in spellings)
            both = (each for path in paths for each in (collapse(path), _real(path)))
            spellings = [path for path in dict.fromkeys(both) if os.path.isdir(encode(path))]
        return spellings

    def _starts(self) -> list[str]:
        """A shell takes the name of its PWD if that is where it is."""
        names = dict.fromkeys((self.start, _real(self.start)))
        logical = self.env.get("PWD", "")
        if logical.startswith("/") and _identity(logical) == _identity(self.start):
            names[collapse(logical)] = None
        return [path for path in names if os.path.isdir(encode(path))]

    def _search(self, directory: str) -> Iterator[Repository]:
        for path in _upwards(directory):
            if path not in self._seen:
                self._seen[path] = _looked_at(path, self.memory)
            repositories, final = self._seen[path]
            yield from repositories
            if final:
                return


def _looked_at(path: str, memory: Memory) -> tuple[tuple[Repository, ...], bool]:
    """What git could take a directory for, and whether it surely looks no further."""
    found: list[Repository] = []
    for look in (_at_marker, _at_bare):
        repository, final = look(path, memory)
        if repository is not None:
            found.append(repository)
        if final:
            return tuple(found), True
    return tuple(found), False


def _at_marker(path: str, memory: Memory) -> tuple[Repository | None, bool]:
    """`.git` in a directory."""
    marker = _joined(path, ".git")
    if not os.path.lexists(encode(marker)):
        return None, False
    if os.path.isdir(encode(marker)):
        git_directory = _real(marker)
        if not os.path.lexists(encode(f"{git_directory}/HEAD")):
            return None, False
    else:
        text = _read(marker)
        if text is None or not text.startswith("gitdir: "):
            return _unknown(path, f"would read {marker}, which is not plain"), False
        git_directory = _real(_joined(path, text.removeprefix("gitdir: ").rstrip("\r\n")))
    return _described(path, git_directory, memory), _is_whole(git_directory)


def _at_bare(path: str, memory: Memory) -> tuple[Repository | None, bool]:
    """The directory itself, if it could be a git directory."""
    has = {name for name in ("HEAD", "objects", "commondir") if _exists(path, name)}
    if "HEAD" not in has or len(has) == 1:
        return None, False
    return _described(path, path, memory), _is_whole(path)


def _is_whole(git_directory: str) -> bool:
    """Whether any git takes it for a repository, so that none looks further up."""
    head, common = _read(_joined(git_directory, "HEAD")), _common(git_directory)
    if common is None or head is None or not _HEAD.fullmatch(head):
        return False
    parts = [encode(_joined(common, name)) for name in ("objects", "refs")]
    return not os.path.islink(encode(_joined(git_directory, "HEAD"))) and all(
        os.path.isdir(part) and os.access(part, os.X_OK) for part in parts
    )


def _common(git_directory: str) -> str | None:
    """Where the parts are that several work trees share; None where that is not plain."""
    if not _exists(git_directory, "commondir"):
        return git_directory
    text = _read(_joined(git_directory, "commondir"))
    return None if text is None else _real(_joined(git_directory, text.rstrip("\r\n")))


def _described(path: str, git_directory: str, memory: Memory) -> Repository:
    """What is set in a repository, and where its parts are."""
    common = _common(git_directory)
    if common is None:
        return _unknown(path, f"would read {git_directory}, which is not plain")
    both = dict.fromkeys((git_directory, common))
    configurations = [
        _joined(base, name) for base in both for name in ("config", "config.worktree")
    ]
    deciding = [path, *both, *configurations, *(_joined(base, "hooks") for base in both)]
    in_memory = any(memory.holds(_real(each)) for each in deciding)
    found = _settings(configurations)
    problem = _problem(path, git_directory, both, found or ())
    return Repository(git_directory, problem, in_memory, found)


def _settings(paths: Iterable[str]) -> tuple[tuple[str, str], ...] | None:
    found: list[tuple[str, str]] = []
    for path in paths:
        if os.path.lexists(encode(path)):
            text = _read(path)
            keys = None if text is None else settings(text)
            if keys is None:
                return None
            found += keys
    return tuple(found)


def _problem(
    path: str, git_directory: str, both: Iterable[str], found: tuple[tuple[str, str], ...]
) -> str | None:
    """What git would run that no configuration names: a hook, itself in another repository."""
    if any(os.path.lexists(encode(f"{base}/hooks/{_HOOK}")) for base in both):
        return f"would run the hook {_HOOK} of {path}"
    if not _exists(git_directory, "index"):
        return None
    sha256 = any(key == "extensions.objectformat" and "256" in value for key, value in found)
    data = _bytes(_joined(git_directory, "index"), _LARGEST_INDEX)
    try:
        if data is None or has_submodules(data, 32 if sha256 else 20):
            return f"would run in the submodules of {path} too"
    except ValueError:
        return f"would read the index of {path}, which is not plain"
    return None


def _unknown(where: str, problem: str) -> Repository:
    return Repository(where, problem)


# The disk


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        if path in ("/", ""):
            return
        path = path.rpartition("/")[0] or "/"


def _joined(base: str, path: str) -> str:
    return path if path.startswith("/") else f"{base.rstrip('/')}/{path}"


def _real(path: str) -> str:
    return decode(os.path.realpath(encode(path)))


def _exists(directory: str, name: str) -> bool:
    return os.path.lexists(encode(_joined(directory, name)))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(encode(path))
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _read(path: str) -> str | None:
    """A file's text; None for what is not plain, as with a NUL in it: it would end a path."""
    data = _bytes(path, _LARGEST_FILE)
    return None if data is None or b"\0" in data else decode(data)


def _bytes(path: str, most: int) -> bytes | None:
    """A regular file's bytes; None for anything else, or more than that."""
    try:
        handle = os.open(encode(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return None
        try:
            data = file.read(most + 1)
        except OSError:
            return None
    return data if len(data) <= most else None
