"""Each example as a stranger runs it: one command, exit status 0, and what it says. That each
can fail is shown by a gateway that protects nothing."""

import asyncio
import os
from pathlib import Path

import pytest

import extract_then_dream
import python_host.__main__ as python_host_main
from pinfold_protocol.client import Client, Session
from python_host.agent import Agent
from python_host.place import Place, place
from python_host.scripted import ScriptedModel
from stage import run

SAYS = {
    "python_host": [
        "1. On Tuesdays.",
        "emptying it was denied",
        "the model was told: Denied: Pinned project memory",
        "4 old results were cleared",
        "9 calls, 2 denied",
    ],
    "extract_then_dream": [
        "pinning it by itself was denied",
        "the pinned document is still there",
        "through a symlink               pinned (resolved)",
        "by a hard link                  pinned (hard-link)",
        "every byte, mode and inode is what it was",
    ],
}


@pytest.mark.parametrize("module", SAYS)
def test_it_runs_and_says_what_it_shows(module: str, tmp_path: Path) -> None:
    printed = run(module, tmp_path)
    for line in SAYS[module]:
        assert line in printed
    assert os.listdir(tmp_path) == [], "it left something behind"


STORIES = {
    "python_host": python_host_main.converse,
    "extract_then_dream": extract_then_dream.run,
}


@pytest.mark.parametrize("name", STORIES)
def test_it_fails_where_nothing_is_protected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that was opened without its protection: the example must notice."""
    opened, begun = Client.open_session, Session.turn

    async def unprotected(client: Client, profile: str, root: str, **more: object) -> Session:
        return await opened(client, "main", root, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "open_session", unprotected)
    monkeypatch.setattr(Session, "turn", lambda session, profile: begun(session))
    with place() as at, pytest.raises(AssertionError):
        asyncio.run(STORIES[name](at))


def test_an_agent_ends_a_model_that_calls_without_end(tmp_path: Path) -> None:
    at = Place(str(tmp_path))
    at.write(at.file("a.txt"), "a")
    steps = [[("read_file", {"file_path": at.file("a.txt")})]] * 30

    async def main() -> None:
        async with await Client.spawn() as client:
            session = await client.open_session("main", at.project, memory=at.memory)
            await Agent(session, ScriptedModel(steps), "").say("go")

    with pytest.raises(RuntimeError, match="20 steps"):
        asyncio.run(main())
