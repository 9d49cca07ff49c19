"""Emacs with Eglot, in batch mode, with pinfold.el, in an empty home."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from editors.desk import BAD, DRIVE, EDITORS, INDEX, RELEASES, RULES, Desk, need
from support import DEADLINE

pytestmark = [pytest.mark.editor, pytest.mark.timeout(40)]
BATCH = ("--batch", "--no-init-file", "-f", "package-initialize")
MOVED = INDEX.replace("(feedback/", "(pinned/feedback/")


@pytest.fixture
def emacs() -> str:
    found = need("emacs", "emacs-nox")
    for library, package in (("eglot", "elpa-eglot"), ("markdown-mode", "elpa-markdown-mode")):
        probe = [found, *BATCH, "--eval", f"(require '{library})"]
        if subprocess.run(probe, capture_output=True, timeout=DEADLINE).returncode:
            pytest.skip(f"{library} is not installed (Debian: {package})")
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def drive(emacs: str, desk: Desk, scenario: str) -> dict[str, Any]:
    library = ("-L", EDITORS / "emacs", "-l", "pinfold")
    command: list[str | Path] = [emacs, *BATCH, *library, "-l", DRIVE / "emacs.el"]
    told = desk.drive(command, scenario)
    desk.wait_until_ended()
    assert len(desk.servers) == (2 if scenario == "died" else 1)
    return told


def test_compiles_without_warnings(emacs: str, tmp_path: Path) -> None:
    file = shutil.copy(EDITORS / "emacs/pinfold.el", tmp_path)
    strict = ("--eval", "(setq byte-compile-error-on-warn t)")
    compiled = subprocess.run(
        [emacs, *BATCH, *strict, "-f", "batch-byte-compile", file],
        capture_output=True,
        timeout=DEADLINE,
    )
    assert compiled.returncode == 0, compiled.stderr.decode()


def test_looking(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "look")
    assert told["bad"] == ["type-unknown"]
    assert told["index"] == ["link-dead"]
    assert "how we release" in told["hover"]
    assert told["pinned"] == ["pinned"]
    lines = dict(line.split(maxsplit=1) for line in told["explain"].splitlines()[2:6])
    assert lines["main"] == "may change it" and lines["dream"].startswith("may not.")
    assert desk.bad.read_text("utf-8") == BAD


def test_pin_by_code_action_and_unpin_by_command(emacs: str, desk: Desk) -> None:
    """Eglot up to 1.9 takes no file operations in edits: the gateway moves the file."""
    told = drive(emacs, desk, "pin")
    place = desk.memory / "pinned/feedback/releases.md"
    assert told["offered"] == ["Pin"]
    assert told["pinned"] == {"name": str(place), "gone": True, "index": MOVED}
    assert told["codes"] == ["pinned"] and told["point"]
    assert told["unpinned"] == {"name": str(desk.topic), "gone": True, "index": INDEX}
    assert desk.topic.read_text("utf-8") == RELEASES


def test_an_open_index_is_mended_and_saved(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "pin-open")
    assert (told["disk"], told["buffer"], told["modified"]) == (MOVED, MOVED, False)


def test_a_pin_saves_nothing_that_was_unsaved(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "pin-unsaved")
    assert (told["disk"], told["buffer"]) == (INDEX, MOVED + "- unsaved\n")


def test_an_agent_in_an_unsaved_buffer(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "agent")
    typed = RELEASES + "typed, not saved\n"
    assert (told["read"], told["source"]) == (typed, "buffer")
    assert not told["call"]["isError"], told["call"]
    assert told["buffer"] == typed.replace("😀 never", "😀 ever") and told["modified"]
    assert told["disk"] == RELEASES and told["column"] == 2
    assert told["undone"] == typed


def test_a_dream_session_is_denied(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "denied")
    assert told["call"]["kind"] == "denied"
    assert told["same"] and told["disk"] == RULES


def test_typing_in_between(emacs: str, desk: Desk) -> None:
    """Eglot answers an error to an edit of an older version."""
    told = drive(emacs, desk, "stale")
    text = "typed in between\n" + RELEASES
    assert told["call"]["kind"] == "stale", told["call"]
    assert (told["buffer"], told["disk"]) == (text, RELEASES)
    assert not told["again"]["isError"], told["again"]
    assert told["after"] == text.replace("Ask before", "Ask after")


def test_what_changes_on_disk_is_shown(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "disk")
    assert not told["call"]["isError"] and not told["modified"] and told["managed"]
    assert told["other"] is False


def test_a_gateway_that_dies(emacs: str, desk: Desk) -> None:
    """Who waits is told, and the next request starts another gateway."""
    told = drive(emacs, desk, "died")
    assert (told["problem"], told["buffer"], told["tools"]) == (True, RELEASES, 4)


def test_a_host_in_elisp(emacs: str, desk: Desk) -> None:
    told = drive(emacs, desk, "host")
    assert (told["tools"], told["managed"], told["wrong"]) == (4, True, -32602)
    assert (told["memory"], told["servers"]) == (str(desk.index), 1)


def test_no_gateway_outlives_it_when_it_is_killed(emacs: str, desk: Desk) -> None:
    drive(emacs, desk, "killed")
