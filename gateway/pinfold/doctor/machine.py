"""What the machine, the environment and the place of the record give."""

import os
import stat
import sys
from collections.abc import Collection, Mapping

from pinfold.audit.place import configured, default_path
from pinfold.config import Settings
from pinfold.doctor.finding import Finding, Spot, finding
from pinfold.doctor.volume import is_full
from pinfold.memory.layouts import LAYOUTS, Surroundings, elsewhere
from pinfold.memory.roots import find_git_root
from pinfold.paths.kernel import platform
from pinfold.paths.literal import home_directory

_ABOUT = "this machine"
_MEMORY = "where memory is"
_PLACES = {
    "qwen": ("QWEN_CODE_MEMORY_BASE_DIR", "QWEN_RUNTIME_DIR", "QWEN_HOME"),
    "claude": ("CLAUDE_CONFIG_DIR",),
}
_SWITCHES = {
    "QWEN_CODE_MEMORY_LOCAL": ("1",),
    "QWEN_CODE_MEMORY_PROJECT_SCOPE": ("workspace",),
}


def machine() -> list[Finding]:
    """How paths can be opened here."""
    found = [_walk()]
    if sys.platform == "linux" and not _names_are_told():
        found.append(finding("no-proc", _ABOUT, "The kernel's names of open files are not there"))
    if sys.platform != "linux":
        title = f"Nobody has proven the gateway on {sys.platform}"
        found.append(finding("platform-unproven", _ABOUT, title))
    return found


def _walk() -> Finding:
    try:
        os.close(platform.open_resolved(b"/", False))
    except OSError as error:
        title = f"Paths are opened name by name: no openat2 here ({error.strerror})"
        return finding("walk-by-components", _ABOUT, title)
    return finding("walk", _ABOUT, "Paths are opened by descriptors, whole ways in one call")


def _names_are_told() -> bool:
    try:
        root = platform.open_root()
    except OSError:
        return False
    try:
        return platform.name_of(root) == b"/"
    except OSError:
        return False
    finally:
        os.close(root)


# Where memory is


def environment(
    env: Mapping[str, str], layout: str, project: str, roots: Collection[str]
) -> list[Finding]:
    """The variables that decide where memory is, and what came of them; memory that is not in any
    of the session's roots."""
    around = surroundings(env, project)
    found = [_base(around, layout), *_elsewhere(around, roots)]
    relative = [name for name in _PLACES[layout] if not _is_absolute(env.get(name))]
    if relative:
        title = f"{', '.join(relative)}: counts from where a gateway happens to be started"
        found.append(finding("variable-relative", _MEMORY, title))
    if layout == "qwen":
        found += [_ignored(name, env[name]) for name in _SWITCHES if not _is_known(name, env)]
    return found


def surroundings(env: Mapping[str, str], project: str) -> Surroundings:
    """What a layout depends on, as it is here."""
    return Surroundings(project, find_git_root(project), env, home_directory(dict(env)), _here())


def left_out(around: Surroundings, roots: Collection[str]) -> list[tuple[str, str]]:
    """Memory of the project that is there, and in none of these roots: its layout and its path."""
    return [(name, path) for name, path in elsewhere(around, roots) if os.path.isdir(path)]


def _elsewhere(around: Surroundings, roots: Collection[str]) -> list[Finding]:
    by_layout: dict[str, list[Spot]] = {}
    for name, path in left_out(around, roots):
        by_layout.setdefault(name, []).append(Spot(path))
    return [
        finding(
            "memory-elsewhere",
            _MEMORY,
            f"There is memory of the {name} layout, and this session has nothing to do with it",
            spots,
            advice=f"Give --layout {name}, or memory.layout, if that is the one you mean.",
        )
        for name, spots in by_layout.items()
    ]


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # removed
        return "/"


def _base(around: Surroundings, layout: str) -> Finding:
    env = around.env
    deciding = [name for name in _PLACES[layout] if env.get(name)][:1]
    if layout == "qwen":
        deciding += [name for name in _SWITCHES if env.get(name) and _is_known(name, env)]
    why = f"set by {', '.join(deciding)}" if deciding else "no variable says otherwise"
    base = LAYOUTS[layout](around).base
    return finding("memory-base", _MEMORY, f"{base} ({layout} layout; {why})")


def _is_absolute(value: str | None) -> bool:
    return not value or value.startswith(("/", "~/")) or value == "~"


def _is_known(name: str, env: Mapping[str, str]) -> bool:
    value = env.get(name, "")
    if name == "QWEN_CODE_MEMORY_PROJECT_SCOPE":
        value = value.strip().lower()
    return value in ("", *_SWITCHES[name], "0")


def _ignored(name: str, value: str) -> Finding:
    title = f"{name}={value} has no effect; only {_SWITCHES[name][0]} has one"
    return finding("variable-ignored", _MEMORY, title)


# The record


def record(settings: Settings | None, env: Mapping[str, str]) -> list[Finding]:
    """Whether the gateway could append to its record, where somebody wants one."""
    wanted = None if settings is None else settings.connection.audit
    path = default_path() if wanted is None else configured(wanted, home_directory(dict(env))).path
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return [finding("record", "the record", f"{path}: none yet; hosts decide")]
    except OSError as error:
        return [_unusable(path, f"cannot be looked at ({error.strerror})")]
    if not stat.S_ISREG(status.st_mode):
        return [_unusable(path, "is no regular file")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [_unusable(path, "is not yours to write")]
    if is_full(path):
        return [_unusable(path, "is on a volume without room")]
    return [finding("record", "the record", f"{path}: {status.st_size:,} bytes, writable")]


def _unusable(path: str, problem: str) -> Finding:
    return finding("record-unusable", "the record", f"The file {problem}", [Spot(path)])
