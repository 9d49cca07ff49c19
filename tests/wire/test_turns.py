"""Turns over the wire: a visible `/dream` on the main agent gets the gate of a forked one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pinfold_protocol.client import Client
from pinfold_protocol.decision import RuleSpec
from support import Held, Raw, clean_env, decision, kind, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "memory/pinned/rules.md", "old")
    write(tmp_path / "user/a.md", "old")
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def raw(project: Path) -> Any:
    with Raw(env=clean_env()) as gateway:
        yield gateway.initialize()


def opened(raw: Raw, project: Path, profile: str = "main", **more: Any) -> str:
    base = project.parent
    memory = {"projectRoot": f"{base}/memory", "userRoot": f"{base}/user"}
    session: str = raw.open(project, profile, memory=memory, **more)["sessionId"]
    return session


def begin(raw: Raw, session: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = raw.result("turn/begin", {"sessionId": session, **more})
    return result


def end(raw: Raw, session: str, turn: str) -> dict[str, Any]:
    result: dict[str, Any] = raw.result("turn/end", {"sessionId": session, "turnId": turn})
    return result


def pinned(raw: Raw, project: Path, session: str, text: str) -> dict[str, Any]:
    path = f"{project.parent}/memory/pinned/rules.md"
    return raw.call(session, "write_file", file_path=path, content=text)


def test_a_main_session_may_then_may_not_then_may(raw: Raw, project: Path) -> None:
    session = opened(raw, project)
    assert kind(pinned(raw, project, session, "one")) is None
    turn = begin(raw, session, profile="dream")
    assert turn["scope"]["protectPinned"] and not turn["scope"]["userMemory"]
    assert any("consolidation" in sentence for sentence in turn["promptRules"])
    denied = pinned(raw, project, session, "two")
    assert kind(denied) == "denied"
    assert decision(denied)["source"] == "turn"
    assert decision(denied)["turnId"] == turn["turnId"]
    assert raw.result("session/list")["sessions"][0]["turns"] == [turn["turnId"]]
    assert end(raw, session, turn["turnId"])["scope"]["protectPinned"] is False
    assert kind(pinned(raw, project, session, "three")) is None
    assert (project.parent / "memory/pinned/rules.md").read_text() == "three"


def test_turns_nest_and_end_in_any_order(raw: Raw, project: Path) -> None:
    session = opened(raw, project)
    outer = begin(raw, session, turnId="outer", profile="dream")
    inner = begin(raw, session, turnId="inner", scope={"shell": "deny"})
    assert outer["scope"]["shell"] == "read-only"
    assert (inner["scope"]["shell"], inner["scope"]["protectPinned"]) == ("deny", True)
    after = end(raw, session, "outer")
    assert (after["scope"]["shell"], after["scope"]["protectPinned"]) == ("deny", False)
    assert end(raw, session, "inner")["scope"]["shell"] == "unscoped"


def test_a_turn_never_widens(raw: Raw, project: Path) -> None:
    session = opened(raw, project, "dream")
    scope = {"protectPinned": False, "confineWrites": False, "shell": "unscoped", "bypassAsk": True}
    before = raw.result("session/configure", {"sessionId": session})["scope"]
    assert begin(raw, session, profile="main", scope=scope)["scope"] == before
    assert kind(pinned(raw, project, session, "x")) == "denied"
    found = raw.call(session, "write_file", file_path="a.py", content="x")
    assert (kind(found), decision(found)["source"]) == ("denied", "profile")


def test_a_root_that_the_turn_takes_away_is_the_turn_s_denial(raw: Raw, project: Path) -> None:
    session = opened(raw, project, "extraction")
    turn = begin(raw, session, profile="dream")["turnId"]
    path = f"{project.parent}/user/a.md"
    found = decision(raw.call(session, "write_file", file_path=path, content="x"))
    assert (found["rule"], found["source"], found["turnId"]) == ("outside-memory", "turn", turn)


def test_configure_during_a_turn_changes_what_is_below_it(raw: Raw, project: Path) -> None:
    session = opened(raw, project)
    turn = begin(raw, session, profile="dream")["turnId"]
    params = {"sessionId": session, "scope": {"protectPinned": True, "shell": "deny"}}
    assert raw.result("session/configure", params)["scope"]["shell"] == "deny"
    after = end(raw, session, turn)["scope"]
    assert (after["protectPinned"], after["shell"], after["confineWrites"]) == (True, "deny", False)


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("turn/begin", {"turnId": "t"}, "turnId"),
        ("turn/end", {"turnId": "u"}, "turnId"),
        ("turn/begin", {"scope": {"protectPined": True}}, "scope.protectPined"),
        ("turn/begin", {"profile": "drem"}, "profile"),
        ("turn/end", {}, "turnId"),
    ],
)
def test_what_is_wrong_is_named_and_changes_nothing(
    raw: Raw, project: Path, method: str, params: dict[str, Any], path: str
) -> None:
    session = opened(raw, project)
    begin(raw, session, turnId="t")
    error = raw.ask(method, {"sessionId": session} | params)["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, path)
    assert raw.result("session/list")["sessions"][0]["turns"] == ["t"]


def test_a_turn_ends_with_its_session(raw: Raw, project: Path) -> None:
    session = opened(raw, project, sessionId="s")
    begin(raw, session, profile="dream")
    raw.result("session/close", {"sessionId": session})
    opened(raw, project, sessionId="s")
    assert kind(pinned(raw, project, "s", "x")) is None


def test_a_change_that_waits_is_decided_by_the_turn_that_began_meanwhile(
    raw: Raw, project: Path
) -> None:
    """It was allowed when it arrived; it waits for a lock; the turn begins; it is denied."""
    session = opened(raw, project)
    held = Held(project.parent / "memory/pinned")
    path = f"{project.parent}/memory/pinned/rules.md"
    arguments = {"file_path": path, "content": "new"}
    call = {"sessionId": session, "name": "write_file", "arguments": arguments}
    try:
        raw.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        begin(raw, session, profile="dream")
    finally:
        held.release()
    answer = raw.receive()
    assert answer["id"] == 1 and kind(answer["result"]) == "denied"
    assert Path(path).read_text() == "old"


def test_the_client_s_side(project: Path) -> None:
    asked: list[str] = []

    async def permit(question: Any) -> Any:
        asked.append(question.decision.resolved_path)
        return "allow-once"

    async def main() -> None:
        async with await Client.spawn(env=clean_env(), on_permission=permit) as client:
            rules = [RuleSpec("ask", ["write_file"], ["*.py"])]
            session = await client.open_session("main", str(project), rules=rules)
            written = await session.call("write_file", {"file_path": "a.py", "content": "x"})
            assert not written.is_error
            async with session.turn("dream") as turn:
                assert turn.scope.protect_pinned
                denied = await session.call("write_file", {"file_path": "a.py", "content": "y"})
                assert denied.is_error
                shell = await session.explain("run_shell_command", {"command": "rm x"})
                assert shell.decision == "deny"
            found = await session.explain("write_file", {"file_path": "a.py"})
            assert (found.decision, str(found.source)) == ("ask", "rules[0] of the session")

    asyncio.run(main())
    assert asked == [str(project / "a.py")]
