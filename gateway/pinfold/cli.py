"""One command, `pinfold`, and what its options mean; `usage` has the words of `--help`.

`serve` and `hook` are spawned all the time, so nothing is imported before it is known to be needed.
"""

from __future__ import annotations

import gc
import os
import sys

from pinfold import __version__
from pinfold.flags import PROFILES, Flags, read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from pinfold.app import Gateway
    from pinfold_protocol.compaction import CompactParams
    from pinfold_protocol.decision import Decision
    from pinfold_protocol.errors import RpcError
    from pinfold_protocol.session import Root, SessionResult

ALLOWED, DENIED, FAILED = 0, 1, 2
_HOSTS = ("qwen-code", "claude-code", "gemini-cli", "codex", "opencode")
_HOOK_HOSTS = ("claude-code", "qwen-code")
_LAYOUTS = ("qwen", "claude")
_SHELLS = ("bash", "zsh", "fish")
_PROFILE_HELP = "the session's profile (default: {}); main and remember may change pinned/"
_LAYOUT_HELP = "whose memory it is: Qwen Code's (default) or Claude Code's"
_HOOK_FOR_PEOPLE = frozenset({"-h", "--help", "--install", "--uninstall", "--show"})


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console script. Exit status: see the commands; 2 for a command that cannot be done."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    upstream: list[str] = []
    if given[:1] == ["serve"]:
        _end_on_signals()
        if flags := read_plain(given[1:]):
            _serve(lambda: flags, flags)
        if "--" in given:  # what follows is another program's
            end = given.index("--")
            given, upstream = given[:end], given[end + 1 :]
    if given[:1] == ["hook"] and _HOOK_FOR_PEOPLE.isdisjoint(given):
        from pinfold.doors.hook.process import main as answer

        answer(given[1:])
    parser = _parser()
    options = parser.parse_args(given)
    options.upstream_command = upstream
    if upstream and options.upstream is None:
        parser.error("a command after -- goes with --upstream NAME")
    if options.command is None:
        _serve(lambda: _flags(options))
    sys.exit(_run(options.command, options))


def _run(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
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
    os.dup2(nothing, sys.stdout.fileno())  # what is still buffered must not fail once more
    return status


def _described(error: OSError) -> str:
    """What failed, and where; an error that names no file is about one of two things."""
    if isinstance(error, FileNotFoundError) and not error.filename:
        return "the current directory has been removed: cd to another"
    return f"{error.filename or 'the output'}: {error.strerror}"


def _end_on_signals() -> None:
    """Until the loop has its own handlers: nothing has happened yet that would need an end."""
    try:
        # `signal` is the same in enums, which take long to make.
        signal = __import__("_signal")
    except ImportError:
        import signal

    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        signal.signal(number, lambda *_, status=status: os._exit(status))


def _parser() -> argparse.ArgumentParser:
    import argparse

    from pinfold import usage

    parser = argparse.ArgumentParser(
        prog="pinfold",
        description=usage.PROGRAM,
        epilog=usage.PROGRAM_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"pinfold {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    serve = usage.add(commands, "serve")
    _serve_options(serve)
    serve.set_defaults(command=None)

    hook = usage.add(commands, "hook")
    _hook_options(hook)
    hook.set_defaults(command=_hook)

    explain = usage.add(commands, "explain")
    explain.add_argument(
        "path", metavar="PATH", help="as an agent would write it; for a shell, the command"
    )
    explain.add_argument(
        "--tool",
        default="edit",
        help="edit (default), write_file, read_file, read_memory, grep_search, list_directory, "
        "run_shell_command, or any other name that a host gives to a tool",
    )
    _rules_option(explain)
    _session_options(explain, "dream")
    explain.set_defaults(command=_explain)

    roots = usage.add(commands, "roots")
    _session_options(roots, "main")
    roots.set_defaults(command=_roots)

    index = usage.add(commands, "index")
    index.add_argument("--limit", type=int, metavar="N", help="of each root (default: 200)")
    _session_options(index, "main")
    index.set_defaults(command=_index)

    doctor = usage.add(commands, "doctor")
    _rules_option(doctor)
    _session_options(doctor, "dream")
    doctor.set_defaults(command=_doctor)

    compact = usage.add(commands, "compact")
    _compact_options(compact)
    compact.set_defaults(command=_compact)

    audit = usage.add(commands, "audit")
    audit.add_argument(
        "file", nargs="?", metavar="FILE", help="the record (default: where the gateway puts it)"
    )
    audit.add_argument("--denied", action="store_true", help="only what was denied")
    audit.add_argument("--session", metavar="S", help="only one session")
    audit.add_argument("--follow", action="store_true", help="go on with what is added")
    audit.add_argument("--json", action="store_true", help="print JSON, one record a line")
    audit.set_defaults(command=_audit)

    completion = usage.add(commands, "completion")
    completion.add_argument("shell", choices=_SHELLS, help="for which shell")
    completion.set_defaults(command=_completion)

    demo = usage.add(commands, "demo")
    demo.set_defaults(command=_demo)
    return parser


def _serve_options(parser: argparse.ArgumentParser) -> None:
    about = parser.add_argument_group(
        "the one session of an MCP client",
        "hosts of our own protocol, and editors, say these by messages",
    )
    about.add_argument("--profile", choices=PROFILES, help=_PROFILE_HELP.format("main"))
    about.add_argument(
        "--project", metavar="DIR", help="default: the client's first root, else here"
    )
    about.add_argument(
        "--config", metavar="FILE", help="settings (default: pinfold/config.json of the user)"
    )
    about.add_argument("--tool-prefix", metavar="TEXT", help="goes before the names of our tools")
    about.add_argument("--layout", choices=_LAYOUTS, help=_LAYOUT_HELP)
    _scope_option(about)
    about.add_argument(
        "--upstream",
        type=_upstream_name,
        metavar="NAME",
        help="be in front of a file server: the one whose command stands after --, else the one "
        "that the settings call so",
    )


def _upstream_name(text: str) -> str:
    import argparse

    if text in ("", "local", "editor") or not text.isprintable():
        raise argparse.ArgumentTypeError(
            "must be a printable name, and neither local nor editor, which are pinfold's own"
        )
    return text


def _hook_options(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--install", action="store_true", help="show the entry, and write it")
    asked.add_argument("--uninstall", action="store_true", help="take the entry out again")
    asked.add_argument("--show", action="store_true", help="what is recorded of reads")
    parser.add_argument("--yes", action="store_true", help="write without a question")
    parser.add_argument("--json", action="store_true", help="with --show: print JSON")
    parser.add_argument("--host", choices=_HOOK_HOSTS, help="whose hook it is")
    parser.add_argument(
        "--project",
        metavar="DIR",
        help="the project (default: as the host says); with --install, into its settings instead "
        "of the user's",
    )
    session = parser.add_argument_group("what the agent may do; by default pinned/ is protected")
    session.add_argument(
        "--profile", choices=PROFILES, help="the session's profile (default: main)"
    )
    _scope_option(session)
    session.add_argument("--rules", metavar="FILE", help="base rules: a file of JSON")
    session.add_argument(
        "--layout", choices=_LAYOUTS, help="whose memory it is (default: the host's)"
    )
    session.add_argument(
        "--memory",
        action="append",
        default=[],
        metavar="KIND=DIR",
        help="a root elsewhere: project, user or team, and its directory; may be repeated",
    )
    session.add_argument("--deadline", metavar="SECONDS", help="answer by then (default: 5)")


def _session_options(parser: argparse.ArgumentParser, profile: str) -> None:
    parser.add_argument(
        "--profile",
        choices=PROFILES,
        default=profile,
        help=_PROFILE_HELP.format(profile),
    )
    parser.add_argument(
        "--project", default=".", metavar="DIR", help="the project root (default: here)"
    )
    _scope_option(parser)
    parser.add_argument("--layout", choices=_LAYOUTS, help=_LAYOUT_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def _scope_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="MEMBER=VALUE",
        help="override one member of the profile's scope, such as protectPinned=true; may be "
        "repeated",
    )


def _rules_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rules",
        metavar="FILE",
        help="base rules to try out: a file of JSON, as in section 5 of the contract",
    )


def _compact_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "history",
        metavar="HISTORY",
        help="a list of messages, an object that holds one, or JSON Lines; - for standard input",
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=("gemini", "openai", "anthropic", "records"),
        help="whose messages these are",
    )
    parser.add_argument(
        "--trigger",
        choices=("turn", "results", "force", "pressure"),
        default="force",
        help="force (default): all that is not recent; the others as in the contract, section 6",
    )
    parser.add_argument(
        "--idle-seconds",
        type=float,
        metavar="S",
        help="for --trigger turn: how long nobody spoke",
    )
    parser.add_argument(
        "--keep-recent", type=int, metavar="N", help="results that stay in any case (default: 5)"
    )
    parser.add_argument(
        "--size-threshold",
        type=float,
        metavar="CHARS",
        help="for --trigger results: above this size of results (default: 500000)",
    )
    parser.add_argument(
        "--idle-threshold",
        type=float,
        metavar="MINUTES",
        help="for --trigger turn: after so long a pause (default: 60)",
    )
    parser.add_argument(
        "--clear-at-least",
        type=int,
        metavar="CHARS",
        help="clear nothing where it would be less than this (default: 0)",
    )
    parser.add_argument(
        "--host",
        choices=_HOSTS,
        default=_HOSTS[0],
        metavar="HOST",
        help=f"whose names the tools have: {', '.join(_HOSTS)} (default: {_HOSTS[0]})",
    )
    parser.add_argument(
        "--diff", action="store_true", help="say what goes, what stays and why, instead"
    )
    _session_options(parser, "main")


# serve


def _serve(flags: Callable[[], Flags], plain: Flags | None = None) -> NoReturn:
    """`plain`: the flags where they are such that the first answer can be given before the rest."""
    if sys.platform == "win32":
        print("pinfold: `serve` needs a POSIX system; Windows is not supported.", file=sys.stderr)
        sys.exit(FAILED)
    from pinfold.doors.greeting import greet
    from pinfold.doors.stdio import claim

    gc.disable()  # nothing that is loaded is garbage; `serve` wants it again
    streams = claim()
    greeting = greet(*streams, plain)
    import pinfold.doors.lean  # noqa: F401 - before others import what it imports
    from pinfold.doors.process import serve

    # Threads may be stuck in a dead file system: nobody waits for them.
    os._exit(serve(flags, *streams, greeting))


def _flags(options: argparse.Namespace) -> Flags:
    return Flags(
        profile=options.profile,
        project=options.project,
        config=options.config,
        layout=options.layout,
        tool_prefix=options.tool_prefix,
        scope=dict(map(_override, options.scope)),
        upstream=() if options.upstream is None else (options.upstream, *options.upstream_command),
    )


# hook


def _hook(options: argparse.Namespace) -> int:
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
    given = [(name, value) for name in single if (value := getattr(options, name)) is not None]
    if options.rules is not None:
        given = [(n, os.path.abspath(v) if n == "rules" else v) for n, v in given]
    given += [(name, value) for name in ("scope", "memory") for value in getattr(options, name)]
    return [word for name, value in given for word in (f"--{name}", value)]


# explain, roots, index


def _explain(options: argparse.Namespace) -> int:
    from pinfold_protocol.decision import ExplainParams
    from pinfold_protocol.errors import RpcError

    try:
        gateway, session = _open(options, _rules(options))
        argument = {"grep_search": "path", "list_directory": "path", "run_shell_command": "command"}
        name = argument.get(options.tool, "file_path")
        params = ExplainParams(session.session_id, options.tool, {name: options.path})
        decision = gateway.explain(params)
    except RpcError as error:
        return _failed(_with_file(error, options).message)
    if options.json:
        _print_json(decision)
    else:
        _draw_decision(decision, options, session)
    return ALLOWED if decision.decision == "allow" else DENIED


def _roots(options: argparse.Namespace) -> int:
    from pinfold_protocol.errors import RpcError
    from pinfold_protocol.session import RootsResult

    try:
        _, session = _open(options)
    except RpcError as error:
        return _failed(error.message)
    if options.json:
        _print_json(RootsResult(session.roots))
    else:
        _draw_roots(session.roots, session.scope.protect_pinned)
    return ALLOWED


def _index(options: argparse.Namespace) -> int:
    from pinfold.listing import draw
    from pinfold_protocol.errors import RpcError

    try:
        gateway, opened = _open(options)
        session = gateway.sessions.get(opened.session_id)
        result = gateway.index(session, limit=options.limit)
    except RpcError as error:
        return _failed(error.message)
    if options.json:
        _print_json(result)
    else:
        draw(result, opened.roots)
    return ALLOWED


# doctor


def _doctor(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        return _failed("Windows is not supported")
    from pinfold.config import load
    from pinfold.doctor import Case, as_json, examine, is_wrong
    from pinfold.flags import Flags
    from pinfold_protocol.errors import RpcError

    try:
        rules = _rules(options)
        layout = options.layout or "qwen"
        case = Case(
            lambda given: _open(options, given),
            os.environ,
            layout,
            rules,
            settings=lambda: load(Flags()),
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


# compact


def _compact(options: argparse.Namespace) -> int:
    from pinfold.compaction import examine
    from pinfold.transcript import Unreadable, doubts, draw, load, summary
    from pinfold_protocol.convert import structure
    from pinfold_protocol.errors import RpcError

    try:
        transcript = load(options.history)
        gateway, opened = _open(options)
        session = gateway.sessions.get(opened.session_id)
        params = structure(_compact_params(options, transcript.history), _compact_type())
        with gateway.evidence(params, session) as evidence:
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


def _open(
    options: argparse.Namespace, rules: list[Any] | None = None
) -> tuple[Gateway, SessionResult]:
    """A gateway of our own with one session. Raises RpcError."""
    from pinfold.app import Gateway
    from pinfold_protocol.convert import structure
    from pinfold_protocol.errors import invalid_params
    from pinfold_protocol.session import SessionOpenParams

    project = os.path.abspath(os.path.expanduser(options.project))
    if not os.path.isdir(project):
        raise invalid_params(
            "--project", f"there is no directory {project}; make it, or name another"
        )
    raw: dict[str, Any] = {
        "profile": options.profile,
        "projectRoot": project,
        "scope": dict(map(_override, options.scope)),
    }
    if options.layout:
        raw["memory"] = {"layout": options.layout}
    if rules is not None:
        raw["rules"] = rules
    gateway = Gateway()
    return gateway, gateway.open_session(structure(raw, SessionOpenParams))


def _with_file(error: RpcError, options: argparse.Namespace) -> RpcError:
    """What is wrong in a rule is in the file that was named."""
    from pinfold.config import in_file

    at = str((error.data or {}).get("path"))
    return in_file(options.rules, error) if at.startswith("rules") else error


def _override(text: str) -> tuple[str, Any]:
    """`protectPinned=true` → a member of the scope; whether there is such a one is told later."""
    name, _, value = text.partition("=")
    words = {"true": True, "false": False, "null": None}
    return name.strip(), words.get(value.strip().lower(), value.strip())


def _failed(message: str) -> int:
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


def _draw_decision(decision: Decision, options: argparse.Namespace, session: SessionResult) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from pinfold.terminal import console, shown
    from pinfold.text.visible import visible
    from pinfold.tools.registry import as_call

    out = console()
    verdict = _VERDICTS[decision.decision]
    call = visible(f"   {options.tool} in a {session.profile} session")
    out.print(Text.assemble(verdict, call))
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
        "from": _source(decision, session.profile),
    }
    for name, value in rows.items():
        if value is not None:
            table.add_row(f"    {name}", shown(value))
    if as_call(options.tool).action == "unknown":
        table.add_row("    note", Text("pinfold does not know this tool", "yellow"))
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


def _audit(options: argparse.Namespace) -> int:
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


def _completion(options: argparse.Namespace) -> int:
    from pinfold.completion import script

    print(script(_parser(), options.shell))
    return ALLOWED


def _demo(options: argparse.Namespace) -> int:
    from pinfold.demo import run

    return run()
