"""Base rules for a hook: the file that `--rules` names, in the words of the contract (section 5).

Tools may have the host's names or ours; a rule about `Write` is one about `write_file`.
"""

from pinfold.doors.hook.flags import BadFlags
from pinfold.doors.hook.hosts import Host
from pinfold.doors.scanning import loads
from pinfold.policy.rules import Anchors, Rule, read_rules
from pinfold_protocol.decision import RuleSpec
from pinfold_protocol.errors import RpcError, perhaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OURS = (
    *("read_file", "read_memory", "write_file", "edit"),
    *("grep_search", "list_directory", "run_shell_command"),
)
_MEMBERS = ("decision", "tools", "paths")
_DECISIONS = ("allow", "ask", "deny")
_LARGEST = 1 << 24


def read_file(path: str, host: Host, project: str, home: str) -> tuple[Rule, ...]:
    """The rules in a file of JSON. Raises BadFlags that says what is wrong, and in which rule."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
        raw = loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise BadFlags(f"--rules {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadFlags(f"--rules {path}: is not JSON") from None
    if len(data) > _LARGEST or not isinstance(raw, list):
        raise BadFlags(f"--rules {path}: must be a list of rules of at most {_LARGEST} bytes")
    specs = [_spec(each, host, f"--rules {path}: rules[{i}]") for i, each in enumerate(raw)]
    mcp = (name for spec in specs for name in spec.tools if name.startswith("mcp__"))
    known = {*_OURS, *host.tools, *mcp}
    try:
        return read_rules(specs, "session", Anchors(project, home, _real), known)
    except RpcError as error:
        raise BadFlags(f"--rules {path}: {error.message}") from None


def _real(path: str) -> str:
    import os

    return os.fsdecode(os.path.realpath(os.fsencode(path)))


def _spec(raw: "Any", host: Host, at: str) -> RuleSpec:
    if not isinstance(raw, dict):
        raise BadFlags(f"{at} must be an object")
    if unknown := set(raw).difference(_MEMBERS):
        name = min(unknown)
        raise BadFlags(f"{at}.{name} is not a known member{perhaps(name, _MEMBERS)}")
    decision: Any
    tools: Any
    paths: Any
    decision, tools, paths = raw.get("decision"), raw.get("tools"), raw.get("paths")
    if decision not in _DECISIONS:
        raise BadFlags(f"{at}.decision must be one of {', '.join(_DECISIONS)}")
    if not _are_texts(tools):
        raise BadFlags(f"{at}.tools must be a list of strings")
    if not (paths is None or _are_texts(paths)):
        raise BadFlags(f"{at}.paths must be a list of strings")
    return RuleSpec(decision, [_ours(name, host) for name in tools], paths)


def _are_texts(value: "Any") -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _ours(name: str, host: Host) -> str:
    known = host.tools.get(name)
    return known.name if known is not None and known.name else name
