"""`pinfold hook --install` and `--uninstall`: a diff, a question, and a file written whole."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pinfold.config import open_regular
from pinfold.doors.hook.events import Event
from pinfold.doors.hook.flags import BadFlags, Flags
from pinfold.doors.hook.hosts import HOSTS
from pinfold.doors.hook.judge import Bench
from pinfold.installer.settings import Unusable, installed, place, uninstalled
from pinfold.paths.literal import home_directory
from pinfold.terminal import console
from pinfold.text.visible import visible

if TYPE_CHECKING:
    from pinfold.app import Gateway
    from pinfold_protocol.session import SessionResult

DONE, REFUSED, FAILED = 0, 1, 2
_MOST_BYTES = 1 << 24


def command_of(flags: Flags, given: list[str]) -> str:
    """The command that a host is to run: this very program, with the flags as they were given."""
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) != "pinfold" or not os.access(program, os.X_OK):
        found = shutil.which("pinfold")
        words = [found] if found else [sys.executable, "-P", "-m", "pinfold"]
    else:
        words = [program]
    if "--profile" not in given and not any("protectPinned" in word for word in given):
        given = [*given, "--scope", "protectPinned=true"]
    return shlex.join([*words, "hook", *given])


def install(flags: Flags, given: list[str], *, project: str | None, yes: bool) -> int:
    """Show the entry as a diff, and write it if that is wanted. Exit status: 0, also where it is
    there already; 1 if nothing was written; 2 where it cannot be."""
    if project is not None and not os.path.isdir(project):
        return _failed(f"--project: there is no directory {project}")
    try:
        Bench(flags, Event({"hook_event_name": "Stop", "cwd": project or os.getcwd()}))
    except BadFlags as error:
        return _failed(str(error))
    command = command_of(flags, given)
    path = _place(flags, project)
    status = _change(path, lambda text: installed(text, flags.host, command, flags.deadline), yes)
    if status == DONE:
        _hints(command, project)
    return status


def uninstall(flags: Flags, *, project: str | None, yes: bool) -> int:
    """Take the entry out again. Exit status as `install`."""
    return _change(_place(flags, project), lambda text: uninstalled(text, flags.host), yes)


def _place(flags: Flags, project: str | None) -> str:
    env = dict(os.environ)
    return os.path.abspath(place(HOSTS[flags.host], project, env, home_directory(env)))


def _hints(command: str, project: str | None) -> None:
    out = console()
    words = shlex.split(command)
    if "shell=read-only" not in command and "--profile" not in command:
        out.print(
            "  Shell commands are not looked at: with --scope shell=read-only only those run that "
            "are proven read-only.",
            style="dim",
        )
    top = os.path.realpath(project or os.getcwd())
    if os.path.realpath(words[0]).startswith(f"{top}/"):
        out.print("  The program lies in the project, where an agent can change it.", style="dim")


def _change(path: str, change: Callable[[str], str], yes: bool) -> int:
    from pinfold_protocol.errors import RpcError, ToolError

    try:
        gateway, session = _gateway(path)
        before, digest = _read(path)
        after = change(before)
        if after == before:
            console().print(f"  Nothing to do: {visible(path)} is as it should be.")
            return DONE
        _draw_diff(path, before, after)
        if not (yes or _agreed(path)):
            return REFUSED
        _write(gateway, session, path, after, digest)
    except Unusable as error:
        return _failed(f"{path}: {error}")
    except RecursionError:
        return _failed(f"{path}: it is nested too deeply")
    except (RpcError, ToolError) as error:
        return _failed(error.message)
    console().print(f"  Written: {visible(path)}", style="green")
    return DONE


def _gateway(path: str) -> "tuple[Gateway, SessionResult]":
    from pinfold.app import Gateway
    from pinfold_protocol.session import SessionOpenParams

    gateway = Gateway()
    directory = os.path.dirname(path)
    return gateway, gateway.open_session(SessionOpenParams("main", directory))


def _read(path: str) -> tuple[str, str | None]:
    """The text, and its digest; "" and None where there is no file."""
    import hashlib

    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return "", None
    if len(data) > _MOST_BYTES:
        raise Unusable(f"it is over {_MOST_BYTES} bytes long")
    try:
        return data.decode("utf-8-sig"), hashlib.sha256(data).hexdigest()
    except UnicodeDecodeError as error:
        raise Unusable(f"it is not UTF-8 (byte {error.start})") from None


def _write(
    gateway: "Gateway", session: "SessionResult", path: str, text: str, digest: str | None
) -> None:
    """As the gateway writes any file: whole or not at all, and only over what was read."""
    from pinfold_protocol.errors import ToolError
    from pinfold_protocol.tools import ToolsCallParams

    arguments: dict[str, Any] = {"file_path": path, "content": text}
    tool = "write_file"
    if digest is None:
        tool, arguments = "edit", {"file_path": path, "old_string": "", "new_string": text}
    else:
        arguments["expected_sha256"] = digest
    result = gateway.call(ToolsCallParams(session.session_id, tool, arguments))
    if result.is_error:  # it says which file
        raise ToolError("io", getattr(result.content[0], "text", "it cannot be written"))


def _draw_diff(path: str, before: str, after: str) -> None:
    import difflib

    from rich.text import Text

    out = console()
    out.print(f"  {visible(path)}", style="bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    for line in list(lines)[2:]:
        shown = visible(line.expandtabs(4))
        out.print(Text(f"  {shown}", styles.get(line[:1], "")), soft_wrap=True)


def _agreed(path: str) -> bool:
    print(f"  Write this to {visible(path)}? [y/N] ", end="", flush=True)
    answer = sys.stdin.readline()
    if not sys.stdin.isatty():
        print()
    if answer.strip().lower() in ("y", "yes"):
        return True
    hint = "" if answer else " Run it again with --yes, or in a terminal."
    console().print(f"  Nothing was written.{hint}")
    return False


def _failed(message: str) -> int:
    print(f"pinfold: {visible(message)}", file=sys.stderr)
    return FAILED
