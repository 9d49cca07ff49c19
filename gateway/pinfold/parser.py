"""What the command line may say; `usage` has the words of `--help`."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from pinfold import __version__, commands, usage
from pinfold.flags import PROFILES, Flags
from pinfold_protocol.errors import perhaps

_COMMAND = "COMMAND"
_HOSTS = ("qwen-code", "claude-code", "gemini-cli", "codex", "opencode")
_HOOK_HOSTS = ("claude-code", "qwen-code")
_LAYOUTS = ("qwen", "claude")
_SHELLS = ("bash", "zsh", "fish")
_PROFILE_HELP = "the session's profile (default: {}); main and remember may change pinned/"
_CONFIG_HELP = "settings (default: pinfold/config.json of the user)"
_LAYOUT_HELP = "whose memory it is: Qwen Code's (default) or Claude Code's"


class Parser(argparse.ArgumentParser):
    """Says what may have been meant, and whose help to look at."""

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """As `parse_args`, but what is too much is told by the command that it was given to."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            options.parser.error(options.parser.odd(unknown[0]))
        if not hasattr(options, "command"):
            self.error(f"which {_COMMAND}?")
        return options

    def error(self, message: str) -> NoReturn:
        """The message, with what to ask for more; status 2."""
        self.exit(2, f"{self.prog}: {message}\n{usage.more(self.prog)}")

    def odd(self, given: str) -> str:
        """What is wrong with an argument that has no place, and what may have been meant."""
        if not given.startswith("-"):
            return f"{given!r} is one argument too many"
        names = [name for action in self._actions for name in action.option_strings]
        return f"there is no option {given}{perhaps(given.partition('=')[0], names)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(each) for each in action.choices]
        if action.metavar == _COMMAND:
            self.error(f"there is no command {value!r}{perhaps(value, choices)}")
        name = "/".join(action.option_strings) or action.dest
        problem = f"must be one of {', '.join(choices)}, not {value!r}{perhaps(value, choices)}"
        self.error(f"{name}: {problem}")


def build() -> Parser:
    """The whole command line. `command` of what it finds is what to run; None for `serve`."""
    made = Parser(
        prog="pinfold",
        description=usage.PROGRAM,
        epilog=usage.PROGRAM_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("-V", "--version", action="version", version=f"pinfold {__version__}")
    made.set_defaults(parser=made)
    subparsers = made.add_subparsers(title="commands", metavar=_COMMAND)

    serve = usage.add(subparsers, "serve")
    _serve_options(serve)
    serve.usage = serve.format_usage().removeprefix("usage: ").rstrip() + " [-- COMMAND ...]"
    serve.set_defaults(command=None)

    hook = usage.add(subparsers, "hook")
    _hook_options(hook)
    hook.set_defaults(command=commands.hook)

    explain = usage.add(subparsers, "explain")
    explain.add_argument(
        "path", metavar="PATH", help="as an agent would write it; for a shell, the command"
    )
    explain.add_argument(
        "--tool",
        help="edit (default), write_file, read_file, read_memory, grep_search, list_directory, "
        "run_shell_command, or any other name that a host gives to a tool",
    )
    explain.add_argument(
        "--host",
        choices=_HOOK_HOSTS,
        help="ask its hook about a tool of the host's own, such as Write; then the session is what "
        "`pinfold hook` has by these options, and no settings count",
    )
    _rules_option(explain)
    _session_options(explain, "dream")
    explain.set_defaults(command=commands.explain)

    roots = usage.add(subparsers, "roots")
    roots.add_argument(
        "--path", choices=("project", "user", "team"), help="print the path of that root, alone"
    )
    _session_options(roots, "main")
    roots.set_defaults(command=commands.roots)

    index = usage.add(subparsers, "index")
    index.add_argument("--limit", type=int, metavar="N", help="of each root (default: 200)")
    _session_options(index, "main")
    index.set_defaults(command=commands.index)

    doctor = usage.add(subparsers, "doctor")
    _rules_option(doctor)
    _session_options(doctor, "dream")
    doctor.set_defaults(command=commands.doctor)

    compact = usage.add(subparsers, "compact")
    _compact_options(compact)
    compact.set_defaults(command=commands.compact)

    audit = usage.add(subparsers, "audit")
    audit.add_argument(
        "file", nargs="?", metavar="FILE", help="the record (default: where the gateway puts it)"
    )
    audit.add_argument("--denied", action="store_true", help="only what was denied")
    audit.add_argument("--session", metavar="S", help="only one session")
    audit.add_argument("--follow", action="store_true", help="go on with what is added")
    audit.add_argument("--json", action="store_true", help="print JSON, one record a line")
    audit.set_defaults(command=commands.audit)

    completion = usage.add(subparsers, "completion")
    completion.add_argument("shell", choices=_SHELLS, help="for which shell")
    completion.set_defaults(command=commands.completion, whole=made)

    demo = usage.add(subparsers, "demo")
    demo.set_defaults(command=commands.demo)
    return made


def _serve_options(parser: argparse.ArgumentParser) -> None:
    about = parser.add_argument_group(
        "the one session of an MCP client",
        "hosts of our own protocol, and editors, say these by messages",
    )
    about.add_argument("--profile", choices=PROFILES, help=_PROFILE_HELP.format("main"))
    about.add_argument(
        "--project", metavar="DIR", help="default: the client's first root, else here"
    )
    about.add_argument("--config", metavar="FILE", help=_CONFIG_HELP)
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
    parser.set_defaults(else_profile=profile)
    parser.add_argument(
        "--profile", choices=PROFILES, help=_PROFILE_HELP.format(f"the settings', else {profile}")
    )
    parser.add_argument(
        "--project", default=".", metavar="DIR", help="the project root (default: here)"
    )
    parser.add_argument("--config", metavar="FILE", help=_CONFIG_HELP)
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
        help="base rules to try out, in place of the settings': a file of JSON, as in section 5 of "
        "the contract",
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


def flags_of(options: argparse.Namespace) -> Flags:
    """What the options of `serve` say."""
    return Flags(
        profile=options.profile,
        project=options.project,
        config=options.config,
        layout=options.layout,
        tool_prefix=options.tool_prefix,
        scope=dict(map(commands.override, options.scope)),
        upstream=() if options.upstream is None else (options.upstream, *options.upstream_command),
    )
