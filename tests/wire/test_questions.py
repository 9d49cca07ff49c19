"""Questions over the wire: what is asked, what an answer lifts, and what becomes of no answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import Raw, clean_env, decision, kind, write

ASKS = {"experimental": {"pinfold": {"permissionRequests": True}}}
EDITOR = {"window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}}}}
RULES = [{"decision": "ask", "tools": ["*"], "paths": ["*.py"]}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "memory/pinned/rules.py", "old")
    write(tmp_path / "project/a.py", "a")
    write(tmp_path / "project/b.py", "b")
    return tmp_path / "project"


@contextmanager
def asking(capabilities: Any = ASKS, **limits: int) -> Iterator[Raw]:
    with Raw(env=clean_env()) as raw:
        options = {"pinfold": {"limits": limits}} if limits else {}
        params = {"processId": None, "capabilities": capabilities, "initializationOptions": options}
        raw.result("initialize", params)
        yield raw


def opened(raw: Raw, project: Path, rules: Any = RULES, **more: Any) -> str:
    memory = {"projectRoot": f"{project.parent}/memory"}
    session: str = raw.open(project, memory=memory, rules=rules, **more)["sessionId"]
    return session


def send(raw: Raw, number: int, session: str, path: str, tool: str = "write_file") -> None:
    arguments = {"file_path": path} | ({} if tool == "read_file" else {"content": f"new {number}"})
    params = {"sessionId": session, "name": tool, "arguments": arguments, "callId": f"c{number}"}
    raw.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def question(raw: Raw) -> dict[str, Any]:
    message = raw.receive()
    assert message["method"] in ("permission/request", "window/showMessageRequest"), message
    return message


def reply(raw: Raw, asked: dict[str, Any], **answer: Any) -> None:
    raw.send({"jsonrpc": "2.0", "id": asked["id"], **answer})


def allow(raw: Raw, outcome: str) -> dict[str, Any]:
    asked = question(raw)
    reply(raw, asked, result={"outcome": outcome})
    return asked


def answered(raw: Raw, number: int) -> dict[str, Any]:
    message = raw.receive()
    assert message["id"] == number, message
    result: dict[str, Any] = message["result"]
    return result


def test_the_question_says_what_was_given_and_where_it_leads(project: Path) -> None:
    (project / "link.py").symlink_to("a.py")
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "link.py")
        params = question(raw)["params"]
        assert params["sessionId"] == session
        assert (params["callId"], params["tool"]) == ("c1", "write_file")
        assert params["arguments"] == {"file_path": "link.py", "content": "new 1"}
        found = params["decision"]
        assert (found["decision"], found["rule"]) == ("ask", "base-rule")
        assert found["path"] == f"{project}/link.py"
        assert found["resolvedPath"] == f"{project}/a.py"
        assert found["source"] == {"rule": 0, "of": "session"}


@pytest.mark.parametrize("tool", ["write_file", "read_file"])
@pytest.mark.parametrize(
    ("outcome", "then"), [("allow-once", "asks"), ("allow-session", "passes"), ("deny", "asks")]
)
def test_what_an_answer_is_for(project: Path, tool: str, outcome: str, then: str) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py", tool)
        allow(raw, outcome)
        result = answered(raw, 1)
        assert decision(result)["asked"] == outcome
        assert (kind(result) == "denied") == (outcome == "deny")
        send(raw, 2, session, "../project/a.py", tool)
        if then == "asks":
            allow(raw, "deny")
        assert decision(answered(raw, 2))["asked"] == (
            "deny" if then == "asks" else "allow-session"
        )


def test_c193_an_answer_is_for_one_tool_one_file_one_session(project: Path) -> None:
    with asking() as raw:
        session, other = opened(raw, project), opened(raw, project)
        send(raw, 1, session, "a.py")
        allow(raw, "allow-session")
        answered(raw, 1)
        for number, who, path, tool in (
            (2, session, "b.py", "write_file"),
            (3, session, "a.py", "read_file"),
            (4, other, "a.py", "write_file"),
        ):
            send(raw, number, who, path, tool)
            allow(raw, "deny")
            assert kind(answered(raw, number)) == "denied"


def test_an_allowed_link_that_leads_elsewhere_by_now_is_asked_again(project: Path) -> None:
    (project / "link.py").symlink_to("a.py")
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "link.py")
        asked = question(raw)
        (project / "link.py").unlink()
        (project / "link.py").symlink_to("b.py")
        reply(raw, asked, result={"outcome": "allow-session"})
        again = question(raw)
        assert again["params"]["decision"]["resolvedPath"] == f"{project}/b.py"
        reply(raw, again, result={"outcome": "deny"})
        assert kind(answered(raw, 1)) == "denied"
        assert (project / "b.py").read_text() == "b"


def test_an_answer_lifts_no_pinned_denial(project: Path) -> None:
    """Neither one that was there before, nor one that came while it was asked."""
    path = f"{project.parent}/memory/pinned/rules.py"
    with asking() as raw:
        session = opened(raw, project, [{"decision": "ask", "tools": ["*"]}])
        protecting = {"sessionId": session, "scope": {"protectPinned": True}}
        send(raw, 1, session, path)
        asked = question(raw)
        raw.result("session/configure", protecting)
        reply(raw, asked, result={"outcome": "allow-session"})
        result = answered(raw, 1)
        assert decision(result)["rule"] == "pinned"
        send(raw, 2, session, path)
        assert decision(answered(raw, 2))["rule"] == "pinned"
        assert Path(path).read_text() == "old"


def test_a_deny_rule_that_comes_meanwhile_wins(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        asked = question(raw)
        deny = [{"decision": "deny", "tools": ["*"]}]
        raw.result("session/configure", {"sessionId": session, "rules": deny})
        reply(raw, asked, result={"outcome": "allow-session"})
        found = decision(answered(raw, 1))
        assert (found["decision"], found["rule"], found["asked"]) == ("deny", "base-rule", None)


def test_new_rules_ask_again(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        allow(raw, "allow-session")
        answered(raw, 1)
        raw.result("session/configure", {"sessionId": session, "rules": RULES})
        send(raw, 2, session, "a.py")
        allow(raw, "deny")
        assert kind(answered(raw, 2)) == "denied"


BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "an error": {"error": {"code": -32601, "message": "what?"}},
    "an error that is none": {"error": 3},
    "null": {"result": None},
    "no outcome": {"result": {}},
    "another outcome": {"result": {"outcome": "allow"}},
    "more than an outcome": {"result": {"outcome": "allow-once", "always": True}},
    "yes": {"result": "allow-once"},
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_that_is_none_is_a_no(project: Path, name: str) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        reply(raw, question(raw), **BAD_ANSWERS[name])
        result = answered(raw, 1)
        assert (kind(result), decision(result)["asked"]) == ("denied", "no-approver")


@pytest.mark.parametrize(
    "capabilities", [{}, None, [], {"experimental": {"pinfold": {"permissionRequests": "yes"}}}]
)
def test_c189_a_client_that_cannot_ask(project: Path, capabilities: Any) -> None:
    with asking(capabilities) as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        result = answered(raw, 1)
        assert (kind(result), decision(result)["asked"]) == ("denied", "no-approver")


def test_no_answer_in_time(project: Path) -> None:
    with asking(askSeconds=1) as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        asked = question(raw)
        result = answered(raw, 1)
        assert (kind(result), decision(result)["asked"]) == ("denied", "timeout")
        withdrawn = [each for each in raw.notifications if each["method"] == "$/cancelRequest"]
        assert [each["params"]["id"] for each in withdrawn] == [asked["id"]]
        reply(raw, asked, result={"outcome": "allow-session"})  # too late for anything
        send(raw, 2, session, "a.py")
        allow(raw, "deny")
        assert kind(answered(raw, 2)) == "denied"


@pytest.mark.parametrize("how", ["$/cancelRequest", "session/close"])
def test_c186_a_question_ends_with_its_call(project: Path, how: str) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        asked = question(raw)
        if how == "session/close":
            raw.send({"jsonrpc": "2.0", "id": 2, "method": how, "params": {"sessionId": session}})
        else:
            raw.send({"jsonrpc": "2.0", "method": how, "params": {"id": 1}})
        answer = raw.receive()
        assert (answer["id"], answer["error"]["code"]) == (1, -32800)
        if how == "session/close":
            assert raw.receive()["id"] == 2
        raw.result("session/list")
        withdrawn = [each for each in raw.notifications if each["method"] == "$/cancelRequest"]
        assert [each["params"]["id"] for each in withdrawn] == [asked["id"]]
        assert (project / "a.py").read_text() == "a"


def test_shutdown_settles_questions(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        question(raw)
        raw.send({"jsonrpc": "2.0", "id": 2, "method": "shutdown"})
        answers = {raw.receive()["id"] for _ in range(2)}
        assert answers == {1, 2}
        raw.send({"jsonrpc": "2.0", "method": "exit"})
        assert raw.status() == 0
    assert (project / "a.py").read_text() == "a"


def test_one_question_at_a_time_for_one_file(project: Path) -> None:
    """C208: no storm of prompts. A yes for the session is a yes for all that waited."""
    with asking() as raw:
        session = opened(raw, project)
        for number in range(1, 6):
            send(raw, number, session, "a.py", "read_file")
        allow(raw, "allow-session")
        results = {raw.receive()["id"] for _ in range(5)}
        assert results == {1, 2, 3, 4, 5}


def test_a_no_is_a_no_for_all_that_waited(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        for number in range(1, 4):
            send(raw, number, session, "a.py", "read_file")
        allow(raw, "deny")
        answers = [raw.receive() for _ in range(3)]
        assert [kind(each["result"]) for each in answers] == ["denied"] * 3


def test_a_question_holds_up_nothing_but_its_own_path(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        asked = question(raw)
        send(raw, 2, session, "a.py")
        send(raw, 3, session, "c.txt")
        send(raw, 4, session, "b.py")
        assert kind(answered(raw, 3)) is None
        other = question(raw)
        assert other["params"]["callId"] == "c4"
        reply(raw, other, result={"outcome": "allow-once"})
        assert kind(answered(raw, 4)) is None
        reply(raw, asked, result={"outcome": "allow-session"})
        assert kind(answered(raw, 1)) is None
        assert kind(answered(raw, 2)) is None
        assert (project / "a.py").read_text() == "new 2"  # in order of arrival


def test_a_rule_of_the_connection_counts_for_every_session(project: Path) -> None:
    rules = [{"decision": "deny", "tools": ["edit", "write_file"], "paths": ["~/keep/**", "b.py"]}]
    with Raw(env=clean_env(HOME=str(project.parent))) as raw:
        raw.initialize({"rules": rules})
        session = raw.open(project, rules=[{"decision": "allow", "tools": ["*"]}])["sessionId"]
        for path in ("b.py", "x/b.py", "~/keep/a"):
            found = decision(raw.call(session, "write_file", file_path=path, content="x"))
            assert found["source"] == {"rule": 0, "of": "connection"}
        assert kind(raw.call(session, "write_file", file_path="c.py", content="x")) is None


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ({"title": "Allow once"}, "allow-once"),
        ({"title": "Allow in this session"}, "allow-session"),
        ({"title": "Deny"}, "deny"),
        ({"title": "Whatever"}, "deny"),
        (None, "deny"),
        ("Allow once", "deny"),
    ],
)
def test_editors_are_asked_by_a_message(project: Path, answer: Any, asked: str) -> None:
    (project / "link\n\u202e.py").symlink_to("a.py")
    with asking(EDITOR) as raw:
        session = opened(raw, project)
        send(raw, 1, session, "link\n\u202e.py")
        message = question(raw)
        assert message["method"] == "window/showMessageRequest"
        text = message["params"]["message"]
        assert "link\\n\\u202e.py" in text and f"which leads to {project}/a.py" in text
        assert [each["title"] for each in message["params"]["actions"]] == [
            "Allow once",
            "Allow in this session",
            "Deny",
        ]
        reply(raw, message, result=answer)
        assert decision(answered(raw, 1))["asked"] == asked


def test_the_client_dies_while_it_is_asked(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        question(raw)
        assert raw.end_input() == 1
    assert (project / "a.py").read_text() == "a"


def test_an_answered_question_is_recorded_once(project: Path, tmp_path: Path) -> None:
    import json

    record = tmp_path / "record.jsonl"
    with Raw(env=clean_env()) as raw:
        options = {"pinfold": {"audit": {"path": str(record)}}}
        params = {"processId": None, "capabilities": ASKS, "initializationOptions": options}
        raw.result("initialize", params)
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        allow(raw, "allow-once")
        answered(raw, 1)
        raw.result("shutdown")
        raw.send({"jsonrpc": "2.0", "method": "exit"})
        raw.status()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(each["decision"], each["rule"], each["outcome"]) for each in lines] == [
        ("allow", "base-rule", "done")
    ]


def test_a_path_that_leads_elsewhere_each_time_is_given_up(project: Path) -> None:
    """Each answer is for one file; whoever keeps swapping the link gets a no in the end."""
    link = project / "link.py"
    link.symlink_to("a.py")
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "link.py")
        for number in range(8):
            asked = question(raw)
            link.unlink()
            link.symlink_to(write(project / f"t{number}.py", "t"))
            reply(raw, asked, result={"outcome": "allow-once"})
        result = answered(raw, 1)
        assert (kind(result), decision(result)["asked"]) == ("denied", "no-approver")
        assert not any("new" in path.read_text() for path in project.glob("*.py"))


def test_c196_a_bad_rule_names_itself_and_leaves_the_good_ones(project: Path) -> None:
    good = [{"decision": "deny", "tools": ["*"], "paths": ["a.py"]}]
    bad = [*({"decision": "deny", "tools": ["*"], "paths": [f"{n}.py"]} for n in range(9))]
    bad.append({"decision": "deny", "tools": ["*"], "paths": ["ok", "[oops"]})
    with asking() as raw:
        session = opened(raw, project, good)
        error = raw.ask("session/configure", {"sessionId": session, "rules": bad})["error"]
        assert (error["code"], error["data"]["path"]) == (-32602, "rules[9].paths[1]")
        send(raw, 1, session, "a.py")
        assert decision(answered(raw, 1))["source"] == {"rule": 0, "of": "session"}
        send(raw, 2, session, "0.py")
        assert kind(answered(raw, 2)) is None
        raw.result("session/configure", {"sessionId": session, "rules": []})
        send(raw, 3, session, "a.py")
        assert kind(answered(raw, 3)) is None


def test_c208_a_denied_write_is_denied_the_same_each_time(project: Path) -> None:
    deny = [{"decision": "deny", "tools": ["*"], "paths": ["a.py"]}]
    with asking() as raw:
        session = opened(raw, project, deny)
        answers = []
        for number in range(5):
            send(raw, number, session, "a.py")
            answers.append(answered(raw, number))
        assert all(each == answers[0] for each in answers)
        assert raw.result("session/close", {"sessionId": session}) == {"calls": 5, "denials": 5}


def test_nor_does_it_settle_what_waited_for_the_same_answer(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        for number in (1, 2):
            send(raw, number, session, "a.py", "read_file")
        asked = question(raw)
        raw.result("session/configure", {"sessionId": session, "rules": list(RULES)})
        reply(raw, asked, result={"outcome": "allow-session"})
        allow(raw, "deny")
        answers: list[str | None] = []
        while len(answers) < 2:  # the second asks by itself, if it comes after the first's no
            message = raw.receive()
            if "method" in message:
                reply(raw, message, result={"outcome": "deny"})
            else:
                answers.append(kind(message["result"]))
        assert answers == ["denied", "denied"]


def test_an_answer_to_rules_that_were_replaced_meanwhile_settles_nothing(project: Path) -> None:
    with asking() as raw:
        session = opened(raw, project)
        send(raw, 1, session, "a.py")
        asked = question(raw)
        raw.result("session/configure", {"sessionId": session, "rules": list(RULES)})
        reply(raw, asked, result={"outcome": "allow-session"})
        again = question(raw)
        reply(raw, again, result={"outcome": "deny"})
        assert kind(answered(raw, 1)) == "denied"
        send(raw, 2, session, "a.py")
        allow(raw, "deny")
        assert kind(answered(raw, 2)) == "denied"
