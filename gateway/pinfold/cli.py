"""One command, `pinfold`. What is for people is in `parser` and `commands`.

`serve` and `hook` are spawned all the time, so nothing is imported before it is known to be needed.
"""

from __future__ import annotations

import gc
import os
import sys

from pinfold.flags import Flags, read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

_WAITING = (
    "pinfold: a host or an editor speaks to this, on stdin and stdout; Ctrl-D ends it. "
    "For people: `pinfold --help`."
)
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
    from pinfold import commands
    from pinfold.parser import build, flags_of

    parser = build()
    options = parser.read(given)
    options.upstream_command = upstream
    if upstream and options.upstream is None:
        options.parser.error("a command after -- goes with --upstream NAME")
    if options.command is None:
        _serve(lambda: flags_of(options))
    sys.exit(commands.run(options.command, options))


def _end_on_signals() -> None:
    """Until the loop has its own handlers: nothing has happened yet that would need an end."""
    try:
        # `signal` is the same in enums, which take long to make.
        signal = __import__("_signal")
    except ImportError:
        import signal

    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        signal.signal(number, lambda *_, status=status: os._exit(status))


def _serve(flags: Callable[[], Flags], plain: Flags | None = None) -> NoReturn:
    """`plain`: the flags where they are such that the first answer can be given before the rest."""
    if sys.platform == "win32":
        print("pinfold: `serve` needs a POSIX system; Windows is not supported.", file=sys.stderr)
        sys.exit(2)
    from pinfold.doors.greeting import greet
    from pinfold.doors.stdio import claim

    if os.isatty(0) and sys.stderr is not None:
        print(_WAITING, file=sys.stderr)
    gc.disable()  # nothing that is loaded is garbage; `serve` wants it again
    streams = claim()
    greeting = greet(*streams, plain)
    import pinfold.doors.lean  # noqa: F401 - before others import what it imports
    from pinfold.doors.process import serve

    # Threads may be stuck in a dead file system: nobody waits for them.
    os._exit(serve(flags, *streams, greeting))
