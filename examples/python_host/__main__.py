"""A conversation with the host: `python -m python_host`, in `examples/`."""

import asyncio

from pinfold_protocol.client import Client
from pinfold_protocol.compaction import CLEARED_TEXT, CompactSettings
from pinfold_protocol.decision import Outcome, PermissionParams, RuleSpec
from python_host.agent import Agent
from python_host.place import RULES, Place, place, read
from python_host.scripted import ScriptedModel, Step, results

ASK = RuleSpec("ask", ["write_file", "edit"], ["*.env"])
SMALL = CompactSettings(keep_recent=1, size_threshold_chars=4_000)


class Person:
    """Who answers questions: a real host would show them. The first is allowed, others are not."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def permit(self, question: PermissionParams) -> Outcome:
        """Once, where the path really leads to the settings."""
        path = question.decision.resolved_path or ""
        self.asked.append(path)
        allowed = path.endswith("/settings.env") and len(self.asked) == 1
        return "allow-once" if allowed else "deny"


def script(at: Place) -> list[Step]:
    """What the model does, message by message."""
    settings, rules = at.file("settings.env"), at.topic("pinned/releases.md")
    return [
        [("read_memory", {"file_path": rules})],
        "On Tuesdays.",
        [("edit", {"file_path": settings, "old_string": "test", "new_string": "live"})],
        [("write_file", {"file_path": settings, "content": ""})],
        "It is live now; emptying it was denied.",
        [("write_file", {"file_path": rules, "content": "Any day.\n"})],
        [("write_file", {"file_path": at.topic("build.md"), "content": "Python 3.12.\n"})],
        "Tidied up; the release rules are pinned.",
        *([("read_file", {"file_path": at.file(f"src/part{n}.py")})] for n in range(4)),
        "Four parts. And releases are still on Tuesdays.",
    ]


async def converse(at: Place) -> None:
    """Four messages, each followed by what must be true of it."""
    person, model = Person(), ScriptedModel(script(at))
    async with await Client.spawn(on_permission=person.permit) as client:
        session = await client.open_session("main", at.project, memory=at.memory, rules=[ASK])
        agent = Agent(session, model, "You are a careful programmer.", SMALL)

        print("1.", await agent.say("When do we release?"))
        assert model.offered == ["read_file", "read_memory", "write_file", "edit"]
        assert results(agent.messages) == [(RULES, False)]

        print("2.", await agent.say("Make the settings live, then empty them."))
        assert person.asked == [at.file("settings.env")] * 2
        assert [failed for _, failed in results(agent.messages)[1:]] == [False, True]
        assert read(at.file("settings.env")) == b"MODE=live\n"

        print("3.", await agent.say("/dream", turn="dream"))
        assert "pinned" in model.systems[-1] and "pinned" not in model.systems[0]
        denial, done = results(agent.messages)[3:]
        assert denial[1] and not done[1], (denial, done)
        assert read(at.topic("pinned/releases.md")) == RULES.encode()
        print("   the model was told:", denial[0].splitlines()[0])

        print("4.", await agent.say("Read all of the source."))
        seen = [text for text, _ in results(agent.messages)]
        assert agent.compactions and CLEARED_TEXT in seen, "nothing was compacted"
        assert seen[0] == RULES, "memory was lost in a compaction"
        cleared = sum(each.tools_cleared for each in agent.compactions)
        print(f"   {cleared} old results were cleared; what was read of memory is still there")

        counts = await session.close()
        assert counts == {"calls": 9, "denials": 2}, counts
        print(f"   {counts['calls']} calls, {counts['denials']} denied")


if __name__ == "__main__":
    with place() as fresh:
        asyncio.run(converse(fresh))
