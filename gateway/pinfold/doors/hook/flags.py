"""What the command line of `pinfold hook` says. Read by hand: argparse would cost as much again."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DEADLINE = 5.0
"""Seconds after which an answer is given, whatever is still under way; hosts wait for longer."""

_WORDS = {"true": True, "false": False}


class BadFlags(Exception):
    """A flag that is not understood."""


class Flags:
    """`scope` in the names of the wire, `memory` by kind of root; None where nothing is said.
    Without a profile it is `main`, with `protectPinned`."""

    def __init__(self) -> None:
        self.host = ""
        self.profile: str | None = None
        self.project: str | None = None
        self.layout: str | None = None
        self.rules: str | None = None
        self.scope: dict[str, object] = {}
        self.memory: dict[str, str] = {}
        self.deadline = DEADLINE


def read(arguments: "Sequence[str]") -> Flags:
    """Raises BadFlags for anything but `--name value` and `--name=value` of a known name."""
    flags, rest = Flags(), list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in _TAKEN:
            raise BadFlags(f"there is no option {name}")
        if not equals:
            if not rest:
                raise BadFlags(f"{name} needs a value")
            value = rest.pop(0)
        _TAKEN[name](flags, value)
    if not flags.host:
        raise BadFlags("--host is missing: give claude-code or qwen-code")
    if flags.profile is None:  # whoever says nothing wants what hooks are for
        flags.profile = "main"
        flags.scope.setdefault("protectPinned", True)
    return flags


def _host(flags: Flags, value: str) -> None:
    flags.host = value  # whether there is such a one, the table of hosts says


def _profile(flags: Flags, value: str) -> None:
    flags.profile = value


def _project(flags: Flags, value: str) -> None:
    flags.project = os.path.abspath(os.path.expanduser(value))


def _layout(flags: Flags, value: str) -> None:
    if value not in ("qwen", "claude"):
        raise BadFlags(f"--layout: must be qwen or claude, not {value!r}")
    flags.layout = value


def _rules(flags: Flags, value: str) -> None:
    flags.rules = value


def _pair(flag: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadFlags(f"{flag}: must be NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _scope(flags: Flags, text: str) -> None:
    name, value = _pair("--scope", text)
    flags.scope[name] = _WORDS.get(value.lower(), value)


def _memory(flags: Flags, text: str) -> None:
    kind, path = _pair("--memory", text)
    if kind not in ("project", "user", "team"):
        raise BadFlags(f"--memory: must be project=, user= or team=DIR, not {text!r}")
    if not path.startswith(("/", "~/")):
        raise BadFlags(f"--memory: {path!r} must be an absolute path, or begin with ~/")
    flags.memory[kind] = path


def _deadline(flags: Flags, value: str) -> None:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise BadFlags(f"--deadline: must be seconds above 0, not {value!r}")
    flags.deadline = seconds


_TAKEN = {
    "--host": _host,
    "--profile": _profile,
    "--project": _project,
    "--layout": _layout,
    "--rules": _rules,
    "--scope": _scope,
    "--memory": _memory,
    "--deadline": _deadline,
}
