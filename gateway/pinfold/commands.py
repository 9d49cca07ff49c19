"""The commands for people: each takes what the parser found, and gives the exit status.

What a command needs is imported by it, so that none waits for what another one needs.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from pinfold.app import Gateway
    from pinfold.config import Settings
    from pinfold_protocol.compaction import CompactParams
    from pinfold_protocol.decision import Decision
    from pinfold_protocol.errors import RpcError
    from pinfold_protocol.session import Root, SessionResult

ALLOWED, DENIED, FAILED, INTERRUPTED = 0, 1, 2, 130


def run(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """A command for people, whatever becomes of the place where its output goes."""
    nothing = os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        return _failed("there is no output to write to")
    if sys.stdin is None:
        sys.stdin = os.fdopen(nothing)
    try:
        status = command(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever read it has seen enough
        status = ALLOWED
    except OSError as error:
        status = _failed(_described(error))
    except KeyboardInterrupt:
        status = INTERRUPTED
    os.dup2(nothing, sys.stdout.fileno())  # what is still buffered must not fail once more
    return status


def _described(error: OSError) -> str:
    """What failed, and where; an error that names no file is about one of two things."""
    if isinstance(error, FileNotFoundError) and not error.filename:
        return "the current directory has been removed: cd to another"
    return f"{error.filename or 'the output'}: {error.strerror}"


def hook(options: argparse.Namespace) -> int:
    """`pinfold hook --install`, `--uninstall` and `--show`: for people."""
    from pinfold.recalled import show

    if options.show:
        return show(options.host, as_json=options.json)
    from pinfold.doors.hook.flags import BadFlags, read
    from pinfold.installer.install import install, uninstall

    given = _hook_flags(options)
    try:
        flags = read(given)
    except BadFlags as error:
        return _failed(str(error))
    project = None if options.project is None else os.path.abspath(options.project)
    if options.install:
        return install(flags, given, project=project, yes=options.yes)
    return uninstall(flags, project=project, yes=options.yes)


def _hook_flags(options: argparse.Namespace) -> list[str]:
    """As a host is to give them; which project it is, the host says itself."""
    single = ("host", "profile", "rules", "layout", "deadline")
    found = ((name, getattr(options, name, None)) for name in single)
    given = [(name, value) for name, value in found if value is not None]
    if options.rules is not None:
        given = [(n, os.path.abspath(v) if n == "rules" else v) for n, v in given]
    many = ("scope", "memory")
    given += [(name, value) for name in many for value in getattr(options, name, ())]
    return [word for name, value in given for word in (f"--{name}", value)]


def explain(options: argparse.Namespace) -> int:
    """`pinfold explain`."""
    if options.host is not None:
        return _explain_hook(options)
    from pinfold import explaining
    from pinfold.tools.registry import as_call
    from pinfold_protocol.decision import ExplainParams
    from pinfold_protocol.errors import RpcError

    try:
        settings = _settings(options)
        gateway, session = _open(options, _rules(options), settings)
        argument = {"grep_search": "path", "list_directory": "path", "run_shell_command": "command"}
        options.tool = options.tool or "edit"
        name = argument.get(options.tool, "file_path")
        params = ExplainParams(session.session_id, options.tool, {name: options.path})
        decision = explaining.explain(gateway, params)
    except RpcError as error:
        return _failed(_with_file(error, options).message)
    if options.json:
        _print_json(decision)
    else:
        known = as_call(options.tool).action != "unknown"
        call = f"{options.tool} in a {session.profile} session"
        note = _likely(options.path, session) if known else _UNKNOWN
        _draw_decision(decision, call, session.profile, settings.path, note)
    return ALLOWED if decision.decision == "allow" else DENIED


def _explain_hook(options: argparse.Namespace) -> int:
    """The same for a tool of a host's own, as its hook would decide with these flags."""
    from pinfold.doors.hook.events import Event, NotUnderstood
    from pinfold.doors.hook.flags import BadFlags, read
    from pinfold.doors.hook.hosts import HOSTS
    from pinfold.doors.hook.judge import bench
    from pinfold_protocol.errors import ToolError

    tools = HOSTS[options.host].tools
    options.tool = options.tool or next(n for n, each in tools.items() if each.name == "edit")
    known = tools.get(options.tool)
    member = known.paths[0] if known is not None and known.paths else "file_path"
    try:
        flags = read(_hook_flags(options))
        flags.project = os.path.abspath(os.path.expanduser(options.project))
        members = {"cwd": flags.project, "tool_name": options.tool}
        event = Event({**members, "tool_input": {member: options.path}})
        decision = bench(flags, event).judge(event)
    except (BadFlags, NotUnderstood) as error:
        return _failed(str(error))
    except ToolError as error:
        return _failed(error.message)
    if options.json:
        _print_json(decision)
    elif decision is None:
        print(f"  pinfold has nothing to say of {options.tool}: the host decides")
    else:
        said = f"{options.tool} of {options.host}, by the hook"
        note = _UNKNOWN if known is None else None
        _draw_decision(decision, said, flags.profile or "main", None, note)
    return ALLOWED if decision is None or decision.decision == "allow" else DENIED


def roots(options: argparse.Namespace) -> int:
    """`pinfold roots`."""
    from pinfold_protocol.errors import RpcError
    from pinfold_protocol.session import RootsResult

    try:
        settings = _settings(options)
        _, session = _open(options, settings=settings)
    except RpcError as error:
        return _failed(error.message)
    if options.path is not None:
        found = [root.path for root in session.roots if root.kind == options.path]
        print(*found, sep="\n")
        return ALLOWED if found else FAILED
    if options.json:
        _print_json(RootsResult(session.roots))
    else:
        _draw_roots(session.roots, session.scope.protect_pinned)
        _draw_around(session, settings)
    return ALLOWED


def index(options: argparse.Namespace) -> int:
    """`pinfold index`."""
    from pinfold import library
    from pinfold.listing import draw
    from pinfold_protocol.errors import RpcError

    try:
        gateway, opened = _open(options)
        session = gateway.sessions.get(opened.session_id)
        result = library.index(gateway, session, limit=options.limit)
    except RpcError as error:
        return _failed(error.message)
    if options.json:
        _print_json(result)
    else:
        draw(result, opened.roots)
    return ALLOWED


def doctor(options: argparse.Namespace) -> int:
    """`pinfold doctor`."""
    if sys.platform == "win32":
        return _failed("Windows is not supported")
    from pinfold.doctor import Case, as_json, examine, is_wrong
    from pinfold_protocol.errors import RpcError

    try:
        rules = _rules(options)
        settings, refused = _usable(options)
        case = Case(
            lambda given: _open(options, given, settings),
            os.environ,
            rules,
            settings=settings,
            refused=refused,
        )
        findings = examine(case)
    except RpcError as error:
        return _failed(error.message)
    if options.json:
        _print_json(as_json(findings))
    else:
        from pinfold.doctor.draw import draw

        draw(findings)
    return DENIED if is_wrong(findings) else ALLOWED


def compact(options: argparse.Namespace) -> int:
    """`pinfold compact`."""
    from pinfold import compacting
    from pinfold.compaction import examine
    from pinfold.transcript import Unreadable, doubts, draw, load, summary
    from pinfold_protocol.convert import structure
    from pinfold_protocol.errors import RpcError

    try:
        transcript = load(options.history)
        gateway, opened = _open(options)
        session = gateway.sessions.get(opened.session_id)
        params = structure(_compact_params(options, transcript.history), _compact_type())
        with compacting.evidence(gateway, params, session) as evidence:
            result, verdicts = examine(params, evidence)
    except (Unreadable, RpcError) as error:
        return _failed(error.message if isinstance(error, RpcError) else str(error))
    if options.diff:
        draw(result, verdicts)
    elif options.json:
        _print_json(result)
    else:
        sys.stdout.buffer.write(transcript.dump(result.history).encode())
        for line in filter(None, (summary(result), doubts(result, verdicts))):
            print(f"pinfold: {line}", file=sys.stderr)
    return ALLOWED


def _compact_type() -> type[CompactParams]:
    from pinfold_protocol.compaction import CompactParams

    return CompactParams


def _compact_params(options: argparse.Namespace, history: list[Any]) -> dict[str, Any]:
    from pinfold_protocol.errors import invalid_params
    from pinfold_protocol.hosts import HOSTS

    trigger: dict[str, Any] = {"kind": options.trigger}
    if options.idle_seconds is not None:
        if options.trigger != "turn":
            raise invalid_params("--idle-seconds", "goes with --trigger turn")
        trigger["idleSeconds"] = options.idle_seconds
    host = HOSTS[options.host]
    settings = {
        "clearable": host.clearable,
        "reads": host.reads,
        "keepRecent": options.keep_recent,
        "sizeThresholdChars": options.size_threshold,
        "idleThresholdMinutes": options.idle_threshold,
        "clearAtLeastChars": options.clear_at_least,
    }
    return {
        "format": options.format,
        "history": history,
        "trigger": trigger,
        "settings": settings,
    }


def _rules(options: argparse.Namespace) -> list[Any] | None:
    """The rules in the file that was named. Raises RpcError."""
    from pinfold.rulefile import load

    return None if options.rules is None else load(options.rules)


def _settings(options: argparse.Namespace, *, file: bool = True) -> Settings:
    """What a session of an MCP client would have here. Raises RpcError."""
    from pinfold.config import load
    from pinfold.flags import Flags

    flags = Flags(
        profile=options.profile,
        project=options.project,
        config=options.config,
        layout=options.layout,
        scope=dict(map(override, options.scope)),
    )
    return load(flags, profile=options.else_profile, file=file)


def _usable(options: argparse.Namespace) -> tuple[Settings, str | None]:
    """The settings, or those without the user's file and what is wrong with it. Raises RpcError
    where that is not the file's fault."""
    from pinfold_protocol.errors import RpcError

    try:
        settings = _settings(options)
        _open(options, None, settings)
        return settings, None
    except RpcError as error:
        settings = _settings(options, file=False)
        _open(options, None, settings)
        return settings, error.message.removeprefix("Invalid params: ")


def _open(
    options: argparse.Namespace,
    rules: list[Any] | None = None,
    settings: Settings | None = None,
) -> tuple[Gateway, SessionResult]:
    """A gateway of our own with one session, as the user has configured it; `rules` in place of
    those. It records nothing. Raises RpcError."""
    import msgspec

    from pinfold.app import Gateway
    from pinfold.config import in_file
    from pinfold_protocol.convert import structure
    from pinfold_protocol.decision import RuleSpec
    from pinfold_protocol.errors import RpcError

    settings = settings or _settings(options)
    assert settings.project is not None
    connection, own = settings.connection, None
    if rules is not None:
        own = structure(rules, list[RuleSpec], "rules")
        connection = msgspec.structs.replace(connection, rules=None)
    gateway = Gateway(recording=False)
    try:
        gateway.set_options(connection)
    except RpcError as error:
        raise error if settings.path is None else in_file(settings.path, error) from None
    opening = settings.opening(settings.project)
    return gateway, gateway.open_session(msgspec.structs.replace(opening, rules=own, backend=None))


def _with_file(error: RpcError, options: argparse.Namespace) -> RpcError:
    """What is wrong in a rule is in the file that was named."""
    from pinfold.config import in_file

    at = str((error.data or {}).get("path"))
    return in_file(options.rules, error) if at.startswith("rules") else error


def override(text: str) -> tuple[str, Any]:
    """`protectPinned=true` → a member of the scope; whether there is such a one is told later."""
    name, _, value = text.partition("=")
    words = {"true": True, "false": False, "null": None}
    return name.strip(), words.get(value.strip().lower(), value.strip())


def _failed(message: str) -> int:
    """Say what is wrong; the exit status."""
    from pinfold.text.visible import visible

    if sys.stderr is not None:
        print(f"pinfold: {visible(message.removeprefix('Invalid params: '))}", file=sys.stderr)
    return FAILED


def _print_json(value: Any) -> None:
    import json

    from pinfold_protocol.convert import unstructure

    print(json.dumps(unstructure(value), indent=2, ensure_ascii=True))


_VERDICTS = {
    "allow": ("  ✓ ALLOW", "bold green"),
    "ask": ("  ? ASK", "bold yellow"),
    "deny": ("  ✗ DENY", "bold red"),
}


_UNKNOWN = "pinfold does not know this tool"


def _likely(path: str, session: SessionResult) -> str | None:
    """What else may have been meant by a path that counts from the project."""
    if os.path.isabs(path) or path.startswith("~"):
        return None
    inside = [f"{root.path}/{path}" for root in session.roots]
    found = next((each for each in inside if os.path.lexists(each)), None)
    return found and f"it counts from the project; in memory there is {found}"


def _draw_decision(
    decision: Decision, call: str, profile: str, settings: str | None, note: str | None
) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from pinfold.terminal import console, shown
    from pinfold.text.visible import visible

    out = console()
    verdict = _VERDICTS[decision.decision]
    out.print(Text.assemble(verdict, visible(f"   {call}")))
    out.print(Padding(shown(decision.reason), (0, 0, 0, 4), expand=False))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    decided = decision.rule if decision.match is None else f"{decision.rule} ({decision.match})"
    rows = {
        "path": decision.path,
        "leads to": decision.resolved_path if decision.resolved_path != decision.path else None,
        "memory": f"{decision.root} root" if decision.root else None,
        "rule": decided,
        "from": _source(decision, profile),
        "settings": settings,
    }
    for name, value in rows.items():
        if value is not None:
            table.add_row(f"    {name}", shown(value))
    if note is not None:
        table.add_row("    note", shown(note, "yellow"))
    out.print(table)


def _source(decision: Decision, profile: str) -> str | None:
    named = {"profile": f"the {profile} profile", "override": "an override", "turn": "a turn"}
    return (
        None if decision.source is None else named.get(str(decision.source), str(decision.source))
    )


def _draw_roots(roots: list[Root], protected: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from pinfold.terminal import console, shown

    out = console()
    for root in roots:
        state = "" if root.exists else "   not there yet"
        scope = "" if root.included else "   outside the session's scope"
        out.print(Text.assemble((f"  {root.kind}", "bold"), (state, "yellow"), (scope, "dim")))
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row("    path", shown(root.path))
        if root.real_path != root.path:
            table.add_row("    leads to", shown(root.real_path or "nowhere that can be resolved"))
        if root.write_path not in (root.path, root.real_path):
            table.add_row("    trusted as", shown(root.write_path or "nothing"))
        for index, pinned in enumerate(root.pinned):
            table.add_row("    pinned" if index == 0 else "", shown(pinned))
        if root.pinned:
            table.add_row("", Text("read-only in this session" if protected else "writable", "dim"))
        out.print(table)


def _draw_around(session: SessionResult, settings: Settings) -> None:
    """What counted, and which memory did not."""
    from pinfold.doctor.machine import left_out, surroundings
    from pinfold.terminal import console, shown

    out = console()
    assert settings.project is not None
    around = surroundings(os.environ, settings.project)
    for name, path in left_out(around, {root.path for root in session.roots}):
        out.print(shown(f"  not in this session: {path}  (--layout {name})", "yellow"))
    if settings.path is not None:
        out.print(shown(f"  settings: {settings.path}", "dim"))


def audit(options: argparse.Namespace) -> int:
    """`pinfold audit`."""
    from pinfold.audit.place import default_path
    from pinfold.records import Wanted, show

    wanted = Wanted(options.denied, options.session)
    path = options.file or default_path()
    try:
        return show(path, wanted, follow=options.follow, as_json=options.json)
    except FileNotFoundError as error:
        if error.filename != path:
            raise
        return _failed(f"{path}: there is no record; name its file, or let the host switch it on")


def completion(options: argparse.Namespace) -> int:
    """`pinfold completion`. `options.whole` is the parser of all commands."""
    from pinfold.completion import script

    print(script(options.whole, options.shell))
    return ALLOWED


def demo(options: argparse.Namespace) -> int:
    """`pinfold demo`."""
    from pinfold.demo import run

    return run()
