"""Kate on a screen in memory, with keys pressed, in an empty home."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from editors.desk import EDITORS, INDEX, RELEASES, Desk, need
from pinfold_protocol.framing import Body, Framer
from support import DEADLINE, write

pytestmark = [pytest.mark.editor, pytest.mark.timeout(90)]
_T = TypeVar("_T")
KATERC = """\
[General]
Show Tip of Day=false
Show welcome view for new window=false
[Kate Plugins]
lspclientplugin=true
[lspclient]
AllowedServerCommandLines={server} serve
"""


def until(what: str, look: Callable[[], _T | None]) -> _T:
    deadline = time.monotonic() + DEADLINE
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)
    return seen


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A process, and whatever it starts, until the end."""
    options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Screen:
    """Kate with one document, on a display of its own."""

    def __init__(self, desk: Desk, document: Path, until_end: ExitStack) -> None:
        self.desk = desk
        self.name = document.name
        read, write_end = os.pipe()
        server = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1000x640x24"]
        until_end.enter_context(started(server, pass_fds=[write_end]))
        os.close(write_end)
        with os.fdopen(read) as told:
            display = told.readline().strip()
        assert display, "Xvfb did not start"
        runtime = desk.base / "run"
        runtime.mkdir(mode=0o700)
        self.env = desk.env | {
            "DISPLAY": f":{display}",
            "PWD": str(desk.project),
            "QT_QPA_PLATFORM": "xcb",
            "XDG_RUNTIME_DIR": str(runtime),
        }
        kate = ["dbus-run-session", "--", "kate", "-n", "-b", str(document)]
        self.kate = until_end.enter_context(started(kate, env=self.env, cwd=desk.project))
        until("the window", lambda: self._xdotool("search", "--onlyvisible", "--name", self.name))

    def _xdotool(self, *arguments: str) -> str:
        told = subprocess.run(
            ["xdotool", *arguments], env=self.env, capture_output=True, text=True, timeout=DEADLINE
        )
        return told.stdout.strip()

    def windows(self) -> list[str]:
        return self._xdotool("search", "--onlyvisible", "--class", "kate").split()

    def focus(self) -> None:
        window = self._xdotool("search", "--onlyvisible", "--name", self.name).split()[-1]
        self._xdotool("windowfocus", "--sync", window)

    def press(self, *keys: str) -> None:
        self._xdotool("key", "--delay", "30", *keys)

    def menu(self, *keys: str) -> None:
        """Open the menu "LSP Client", and press keys in it."""
        self.focus()
        before = set(self.windows())
        self.press("alt+l")
        until("the menu", lambda: set(self.windows()) - before)
        self.press(*keys)

    def said(self, side: str) -> list[dict[str, Any]]:
        """Every message of one side so far."""
        kept = self.desk.base / side
        framer = Framer(1 << 30)
        framer.receive(kept.read_bytes() if kept.exists() else b"")
        found = []
        while isinstance(event := framer.next_event(), Body):
            found.append(json.loads(event.data))
        return found

    def asked(self) -> list[str]:
        """The method of every request and notification of Kate so far."""
        return [each["method"] for each in self.said("asked") if "method" in each]

    def answered(self, method: str) -> Any:
        """The last result of a method, once there is one."""
        ids = [each["id"] for each in self.said("asked") if each.get("method") == method]
        found = [each for each in self.said("answered") if "method" not in each]
        return next((each["result"] for each in found[::-1] if each["id"] in ids), None)

    def pushed(self) -> list[str]:
        """The codes of the last diagnostics."""
        method = "textDocument/publishDiagnostics"
        all_ = [each for each in self.said("answered") if each.get("method") == method]
        return [each["code"] for each in all_[-1]["params"]["diagnostics"]] if all_ else []


Show = Callable[[Path], Screen]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """As docs/editors/kate.md says: our settings.json, and the plugin switched on."""
    for program, package in (
        ("kate", "kate"),
        ("Xvfb", "xvfb"),
        ("xdotool", "xdotool"),
        ("dbus-run-session", "dbus"),
    ):
        need(program, package)
    desk = Desk(tmp_path)
    desk.serve(sys.executable, Path(__file__).parent / "tee.py", tmp_path)
    config = desk.home / ".config"
    write(config / "katerc", KATERC.format(server=desk.starter))
    settings = (EDITORS / "kate/settings.json").read_text("utf-8")
    write(config / "kate/lspclient/settings.json", settings)
    return desk


@pytest.fixture
def show(desk: Desk) -> Iterator[Show]:
    """Kate with a document, once the gateway has told it something of that."""
    with ExitStack() as until_end:

        def shown(document: Path) -> Screen:
            screen = Screen(desk, document, until_end)
            until("the outline", lambda: screen.answered("textDocument/documentSymbol"))
            return screen

        yield shown


def end(screen: Screen) -> None:
    """Leave Kate as a person does; the gateway ends too."""
    screen.focus()
    screen.press("ctrl+q")
    assert screen.kate.wait(DEADLINE) == 0
    screen.desk.wait_until_ended()
    # Kate kills a server that takes 250 ms to go, but it has said this before.
    until("the end", lambda: screen.asked()[-2:] == ["shutdown", "exit"])
    assert len(screen.desk.servers) == 1


def test_looking(desk: Desk, show: Show) -> None:
    """What is wrong, also in what is typed, and what a link leads to."""
    screen = show(desk.index)
    until("diagnostics", lambda: screen.pushed() == ["link-dead"])
    assert screen.said("asked")[0]["params"]["rootUri"] == desk.project.as_uri()
    screen.focus()
    screen.press("ctrl+Home", "Down", "Down", *["Right"] * 4)
    screen.menu("Return")  # the first that is not greyed: Symbol Info
    told = until("hover", lambda: screen.answered("textDocument/hover"))
    assert "how we release" in told["contents"]["value"]
    screen.focus()
    screen.press("Down", "End", *["BackSpace"] * len("[Gone](user/gone.md): lost"))
    until("no diagnostics", lambda: screen.pushed() == [])
    screen.press("ctrl+s")
    until("the file", lambda: desk.index.read_text("utf-8") != INDEX)
    assert desk.index.read_text("utf-8").startswith(INDEX.partition("- [Gone]")[0])
    end(screen)


def test_pin_by_code_action(desk: Desk, show: Show) -> None:
    """Kate announces no edits: the gateway moves the file, and mends the index on the disk."""
    screen = show(desk.topic)
    screen.menu(*["Down"] * 4, "Right")
    offered = until("actions", lambda: screen.answered("textDocument/codeAction"))
    assert [each["title"] for each in offered] == ["Pin"]
    screen.press("Down", "Return")
    moved = until("the move", lambda: screen.answered("workspace/executeCommand"))
    place = desk.memory / "pinned/feedback/releases.md"
    assert moved == {"from": str(desk.topic), "to": str(place)}
    assert place.read_text("utf-8") == RELEASES and not desk.topic.exists()
    assert desk.index.read_text("utf-8") == INDEX.replace("(feedback/", "(pinned/feedback/")
    end(screen)
