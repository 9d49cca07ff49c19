"""Vim with ALE, without a terminal, with our package, in an empty home."""

from pathlib import Path
from typing import Any

import pytest

from editors.desk import BAD, DRIVE, EDITORS, INDEX, RELEASES, RULES, Desk, need

pytestmark = [pytest.mark.editor, pytest.mark.timeout(40)]
ALE = Path("/usr/share/vim-ale")
VIMRC = """\
set nocompatible noswapfile
packadd! ale
let g:ale_linters = {'markdown': ['pinfold']}
filetype plugin on
"""


@pytest.fixture
def vim() -> str:
    found = need("vim", "vim")
    if not ALE.exists():
        pytest.skip("ALE is not installed (Debian: vim-ale)")
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """As docs/editors/vim.md says: two packages, and three lines in vimrc."""
    desk = Desk(tmp_path)
    start = desk.home / ".vim/pack/pinfold/start"
    start.mkdir(parents=True)
    (start / "pinfold").symlink_to(EDITORS / "vim")
    (desk.home / ".vim/vimrc").write_text(VIMRC, "utf-8")
    return desk


def drive(vim: str, desk: Desk, scenario: str) -> dict[str, Any]:
    command: list[str | Path] = [vim, "--not-a-term", "-T", "dumb", "-S", DRIVE / "vim.vim"]
    told = desk.drive(command, scenario)
    desk.wait_until_ended()
    assert len(desk.servers) == 1
    return told


def test_looking(vim: str, desk: Desk) -> None:
    told = drive(vim, desk, "look")
    assert told["bad"] == ["type-unknown"]
    assert told["index"] == ["link-dead"]
    assert told["hover"] == "how we release"
    assert told["pinned"] == ["pinned"]
    assert told["explain"].startswith("dream may not.")
    assert desk.bad.read_text("utf-8") == BAD


def test_pin_by_code_action_and_unpin_by_command(vim: str, desk: Desk) -> None:
    """ALE takes no file operations: the gateway moves the file. Our command follows it."""
    told = drive(vim, desk, "pin")
    assert "1) Pin" in told["offered"]
    assert told["gone"] and told["index"] == INDEX.replace("(feedback/", "(pinned/feedback/")
    assert (told["name"], told["unpinned"]) == (str(desk.topic), INDEX)
    assert (told["buffer"], told["modified"]) == (RELEASES, 0)


def test_an_agent_sees_what_is_typed_and_changes_what_is_not_open(vim: str, desk: Desk) -> None:
    """ALE announces no edits, so an open document is not changed, and the agent is told."""
    told = drive(vim, desk, "agent")
    typed = RELEASES + "typed, not saved\n"
    assert (told["read"], told["source"]) == (typed, "buffer")
    assert told["call"]["kind"] == "backend" and "Nothing was changed" in told["call"]["said"]
    assert (told["buffer"], told["disk"]) == (typed, RELEASES)
    assert not told["other"]["isError"] and told["bad"] == BAD.replace("wisdom", "user")


def test_a_dream_session_is_denied(vim: str, desk: Desk) -> None:
    told = drive(vim, desk, "denied")
    assert told["call"]["kind"] == "denied"
    assert told["same"] and told["disk"] == RULES
