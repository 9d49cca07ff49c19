"""`pinfold hook`: one event in, one answer out.

Exit status: 0 with an answer on stdout, or with none where the gateway has no opinion; 2 with a
message on stderr, by which hosts block a tool. Whatever goes wrong blocks a tool that may change
something, and lets one pass that is known to read only; what cannot be parsed may change something.
"""

import os

from pinfold.doors.hook import events
from pinfold.doors.hook.events import Event, NotUnderstood
from pinfold.doors.hook.flags import BadFlags, Flags, read
from pinfold.doors.hook.hosts import HOSTS
from pinfold.doors.hook.lightly import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

PASSED, BLOCKED = 0, 2
_GRACE = 1.0
_WAITING = "pinfold hook: a host gives this an event on stdin. For people: `pinfold hook --help`.\n"
_READING = ("read", "list", "none")


class _Hook:
    """One event under way. Exactly one answer is given, by whoever is first."""

    def __init__(self) -> None:
        from _thread import allocate_lock

        self._answered = allocate_lock()
        self.event: Event | None = None
        self.host = ""

    def answer(self, status: int, text: str = "", problem: str = "") -> "NoReturn":
        """Say it, and end; threads may be stuck in a dead file system, and nobody waits."""
        if self._answered.acquire(blocking=False):
            try:
                _write(2, problem)
                _write(1, text)
            except OSError:  # an answer that is not heard must not be a permission
                status = status if status != PASSED or not text else BLOCKED
            os._exit(status)
        while True:  # the other one ends the process
            self._answered.acquire()

    def give_up(self, problem: str) -> "NoReturn":
        """The answer to a fault: a tool that may change something does not run."""
        status = BLOCKED if self._may_change() else PASSED
        ends = " The tool was not run." if status == BLOCKED else ""
        self.answer(status, "", f"pinfold hook: {problem}.{ends}\n")

    def _may_change(self) -> bool:
        if self.event is None:
            return True
        if self.event.name != events.BEFORE:
            return False
        host = HOSTS.get(self.host)
        tool = None if host is None else host.tools.get(self.event.tool)
        return tool is None or tool.kind not in _READING

    def watch(self, seconds: float) -> None:
        """Answer in time, whatever is still under way."""
        from _thread import allocate_lock, start_new_thread

        never = allocate_lock()
        never.acquire()

        def wait() -> None:
            never.acquire(timeout=seconds)
            if self._answered.locked():  # an answer is on its way: unless nobody takes it
                never.acquire(timeout=_GRACE)
                os._exit(BLOCKED)
            self.give_up(f"no decision within {seconds:g} seconds (--deadline)")

        start_new_thread(wait, ())

    def run(self, arguments: "Sequence[str]") -> "NoReturn":
        try:
            flags, problem = _flags(arguments)
            self.host = flags.host
            self.watch(flags.deadline)
            if os.isatty(0):
                _write(2, _WAITING)
            self.event = events.parse(_all_of(0))
            if problem is not None:
                raise problem
            self._dispatch(flags, self.event)
        except BadFlags as error:
            self.give_up(str(error))
        except NotUnderstood as error:
            self.give_up(f"the event cannot be understood: {error}")
        except KeyboardInterrupt:
            self.give_up("interrupted")
        except BaseException as error:  # noqa: BLE001 - the guard at the door: a bug is answered too
            self.give_up(f"a fault of ours ({type(error).__name__}); `pinfold doctor` may say more")

    def _dispatch(self, flags: Flags, event: Event) -> "NoReturn":
        if event.name == events.BEFORE:
            self._before(flags, event)
        if event.name in (events.AFTER, events.STARTED):
            from pinfold.doors.hook import reads

            self.answer(PASSED, reads.heard(flags, event))
        self.answer(PASSED)

    def _before(self, flags: Flags, event: Event) -> "NoReturn":
        load("pinfold.doors.hook.judge")
        from pinfold.doors.hook.judge import bench
        from pinfold_protocol.errors import ToolError

        judging = bench(flags, event)
        try:
            decision = judging.judge(event)
        except NotUnderstood as error:
            raise NotUnderstood(f"{event.tool}: {error}") from None
        except ToolError as error:
            self._cannot_look(error.message, confined=judging.scope.confine_reads)
        if decision is None or decision.decision == "allow":
            self.answer(PASSED)
        self.answer(PASSED, events.permission(decision.decision, _reason(decision.reason)))

    def _cannot_look(self, message: str, *, confined: bool) -> "NoReturn":
        """A path that cannot be judged: the host may make one of it all the same, so that where
        reads are confined they are denied too."""
        if not (confined or self._may_change()):
            self.answer(PASSED)
        reason = _reason(f"what the path leads to cannot be said: {message}")
        self.answer(PASSED, events.permission("deny", reason))


def _reason(text: str) -> str:
    return f"pinfold: {text}"


def _flags(arguments: "Sequence[str]") -> "tuple[Flags, BadFlags | None]":
    """What is wrong with them is told when the event is there, which says how much it counts."""
    try:
        flags = read(arguments)
    except BadFlags as error:
        flags = Flags()
        flags.host = next((host for host in HOSTS if host in " ".join(arguments)), "")
        return flags, error
    if flags.host not in HOSTS:
        problem = f"--host: must be {' or '.join(HOSTS)}, not {flags.host!r}"
        return flags, BadFlags(problem)
    return flags, None


def _all_of(descriptor: int) -> bytes:
    """The whole input. Raises NotUnderstood beyond `events.LONGEST`."""
    chunks, total = [], 0
    while chunk := os.read(descriptor, 1 << 20):
        total += len(chunk)
        if total > events.LONGEST:
            raise NotUnderstood(f"it is over {events.LONGEST} bytes long")
        chunks.append(chunk)
    return b"".join(chunks)


def _write(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]


def main(arguments: "Sequence[str]") -> "NoReturn":
    """Read an event from stdin, answer it on stdout, end the process."""
    _Hook().run(arguments)
