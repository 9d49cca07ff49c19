"""Notes are taken after a conversation, then tidied up in the background: both are gated.

`python -m extract_then_dream`, in `examples/`. The dream tries to overwrite a pinned document in
every way that it can think of; a compaction comes in the middle of it.
"""

import asyncio
import os

from pinfold_protocol.client import Client
from pinfold_protocol.compaction import CLEARED_TEXT, CompactSettings, ForceTrigger
from pinfold_protocol.tools import DECISION_KEY
from python_host.agent import Agent, Json
from python_host.place import RULES, Place, place, read
from python_host.scripted import Call, ScriptedModel, results

CONVERSATION = "person: Please never mock the clock in tests.\nagent: Understood."
NOTE = "---\nname: Tests\ntype: feedback\n---\n\nNever mock the clock.\n"
MERGED = "---\nname: Build\ntype: project\n---\n\nThe build needs Python 3.12.\n"


def attempts(at: Place) -> dict[str, Call]:
    """Ways to overwrite the pinned document, and what else is not the dream's business."""

    def over(path: str) -> Call:
        return "write_file", {"file_path": path, "content": "Any day will do.\n"}

    pinned = at.topic("pinned/releases.md")
    edit: Json = {"file_path": pinned, "old_string": "Tuesdays", "new_string": "Sundays"}
    return {
        "directly": over(pinned),
        "by an edit": ("edit", edit),
        "in another case": over(at.topic("PINNED/releases.md")),
        "with a letter that nobody sees": over(at.topic("pin\u200bned/releases.md")),
        "by way of `..`": over(at.topic("notes/../pinned/releases.md")),
        "through a symlink": over(at.topic("alias/releases.md")),
        "by a hard link": over(at.topic("twin.md")),
        "beside it, a new one": over(at.topic("pinned/newer.md")),
        "out of memory, the source": over(at.file("src/part0.py")),
    }


def lay_traps(at: Place) -> None:
    """Other names for what is pinned, as somebody's checkout may bring them."""
    os.symlink("pinned", at.topic("alias"))
    os.link(at.topic("pinned/releases.md"), at.topic("twin.md"))


async def extract(client: Client, at: Place) -> None:
    """After the conversation: what is worth keeping becomes a topic."""
    print("Extraction: notes of a conversation")
    note = at.topic("feedback/tests.md")
    model = ScriptedModel(
        [
            [
                ("write_file", {"file_path": note, "content": NOTE}),
                ("write_file", {"file_path": at.topic("pinned/tests.md"), "content": NOTE}),
            ],
            "Noted.",
        ]
    )
    session = await client.open_session("extraction", at.project, memory=at.memory)
    agent = Agent(session, model, "Write down what is worth keeping.")
    await agent.say(CONVERSATION)
    assert [failed for _, failed in results(agent.messages)] == [False, True]
    assert read(note) == NOTE.encode()
    assert not os.path.exists(at.topic("pinned/tests.md"))
    print("  a topic was written, feedback/tests.md; pinning it by itself was denied")
    await session.close()


async def dream(client: Client, at: Place) -> None:
    """In the background: topics are read and merged."""
    print("Dream: topics are tidied up")
    pinned, build = at.topic("pinned/releases.md"), at.topic("build.md")
    tries = attempts(at)
    model = ScriptedModel(
        [
            [("read_file", {"file_path": pinned})],
            [("read_file", {"file_path": at.file("src/part0.py")})],
            [("write_file", {"file_path": build, "content": MERGED})],
            "Half done.",
            list(tries.values()),
            "The release rules cannot be changed.",
        ]
    )
    session = await client.open_session("dream", at.project, memory=at.memory)
    listed = (await session.index()).documents
    print("  topics:", ", ".join(f"{t.title}{' (pinned)' if t.pinned else ''}" for t in listed))
    assert {t.relative_path for t in listed if t.pinned} >= {"pinned/releases.md"}
    agent = Agent(session, model, "Merge what belongs together.")
    await agent.say("Tidy up.")
    assert "pinned" in model.systems[0], "the prompt says what is pinned"
    assert read(build) == MERGED.encode()

    made = await session.compact(
        agent.messages, "anthropic", ForceTrigger(), CompactSettings(keep_recent=1)
    )
    agent.messages = made.history
    texts = [text for text, _ in results(agent.messages)]
    assert texts[:2] == [RULES, CLEARED_TEXT], texts
    assert made.report.preserved == 1
    print("  compacted: the source that was read is gone, the pinned document is still there")

    await agent.say("Now the release rules.")
    answers = results(agent.messages)[-len(tries) :]
    for (how, (name, given)), (text, failed) in zip(tries.items(), answers, strict=True):
        assert failed and text.startswith("Denied"), (how, text)
        why = await session.explain(name, given)
        print(f"  denied  {how:31} {why.rule}{f' ({why.match})' if why.match else ''}")
    # Once more by hand, to see how a host learns why.
    result = await session.call(*tries["through a symlink"])
    assert result.meta[DECISION_KEY]["match"] == "resolved"
    counts = await session.close()
    assert counts["denials"] == len(tries) + 1, counts


async def run(at: Place) -> None:
    """The whole story, and that nothing pinned has changed in it."""
    lay_traps(at)
    before, source = at.pinned(), read(at.file("src/part0.py"))
    assert before
    async with await Client.spawn() as client:
        await extract(client, at)
        await dream(client, at)
    assert at.pinned() == before, "something below pinned/ was changed"
    assert read(at.file("src/part0.py")) == source
    print("Below pinned/ every byte, mode and inode is what it was.")


if __name__ == "__main__":
    with place() as fresh:
        asyncio.run(run(fresh))
