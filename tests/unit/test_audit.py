"""The record: what a line says, that contents never appear, and where it may lie."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinfold.audit.entry import Entry, Trace
from pinfold.audit.line import LONGEST, line_of, lost_line, parse
from pinfold.calls import Cancelled, Ticket
from pinfold_protocol.decision import Decision
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import AuditOptions, ConnectionOptions
from pinfold_protocol.tools import ToolsCallParams
from support import Embedded, kind, read, wiped, write

MEMBERS = "time session turn tool path realPath links decision rule match outcome sha256Before sha256After"


class Recorded(Embedded):
    """An embedded gateway that records."""

    def __init__(self, base: Path, path: str | None = None, **options: Any) -> None:
        super().__init__(base, **options)
        self.path = path or str(base / "state/audit.jsonl")
        self.troubles: list[str] = []
        self.gateway.on_trouble = self.troubles.append
        self.gateway.set_options(ConnectionOptions(audit=AuditOptions(self.path)))

    def lines(self) -> list[dict[str, Any]]:
        """The end of the gateway, and what is recorded."""
        self.gateway.close()
        if not os.path.exists(self.path):
            return []
        return [json.loads(line) for line in read(self.path).splitlines()]


def test_without_options_nothing_is_recorded(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    place.call(place.open(), "read_file", file_path="x")
    place.gateway.close()
    assert sorted(os.listdir(tmp_path)) == ["project"]


TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)
PATHS = st.one_of(st.none(), TEXT, st.sampled_from(["/" + "é" * 5000, "/" + "\udcff" * 4095, "\n"]))


@given(
    session=TEXT, tool=TEXT, path=PATHS, real=PATHS, turn=st.none() | TEXT, decided=st.booleans()
)
def test_a_line_is_one_line_of_ascii_and_reads_back(
    session: str, tool: str, path: str | None, real: str | None, turn: str | None, decided: bool
) -> None:
    decision = Decision("deny", "pinned", "secret reason", "user", "literal", path, real, turn)
    trace = Trace(path, decision if decided else None, os.stat(__file__), "denied", None, "ab")
    line = line_of(Entry(session, tool, trace, 0.9999))
    assert line.isascii() and line.endswith(b"\n") and line.count(b"\n") == 1
    assert len(line) <= LONGEST and b"secret" not in line
    members = json.loads(line)
    assert [*members] == MEMBERS.split() and members["time"] == "1970-01-01T00:00:00.999Z"
    record = parse(line)
    assert record is not None and record.text("session") == session and record.lost is None
    if decided and len(path or "") < 50 and len(real or "") < 50:
        assert record.text("path") == path and record.text("realPath") == real


@pytest.mark.parametrize(
    "line",
    [
        *("", "{", "[]", "null", "5", '"time"', "{}", '{"time": 5}', '{"time": "x", "tool": "t"}'),
        *('{"time": "2026-01-01T00:00:00Z"}', '{"time": "2026-01-01T00:00:00Z", "tool": 5}'),
        *('{"time": "2026-01-01T00:00:00Z", "tool": "t", "path": []}', "[" * 100_000),
        *('{"time": "2026-01-01T00:00:00Z", "lost": "many"}', "\udcff", "0" * 10_000),
    ],
)
def test_what_is_no_record_is_told_from_one(line: str) -> None:
    assert parse(line.encode("utf-8", "surrogateescape")) is None


def test_a_line_with_the_longest_paths_is_bounded() -> None:
    path = "/" + "😀" * 5000
    decision = Decision("allow", "default", "", path=path, resolved_path=path)
    line = line_of(Entry("😀" * 999, "😀" * 999, Trace(path, decision)))
    assert len(line) <= LONGEST and str(json.loads(line)["path"]).endswith("😀…")


def test_a_line_about_lost_ones_reads_back() -> None:
    record = parse(lost_line(7))
    assert record is not None and record.lost == 7


CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("main", "read_file", {"file_path": "t.txt"}, "done"),
    ("main", "read_file", {"file_path": "none.txt"}, "failed:not-found"),
    ("main", "read_file", {"file_path": ""}, "failed:invalid-path"),
    ("main", "read_file", {"file_path": "t.txt", "limit": 0}, "failed:invalid-arguments"),
    ("main", "read_file", {}, "failed:invalid-arguments"),
    ("main", "read_memory", {"file_path": "t.txt"}, "denied"),
    ("dream", "write_file", {"file_path": "t.txt", "content": "x"}, "denied"),
    ("main", "write_file", {"file_path": "t.txt", "content": "x"}, "done"),
    ("main", "write_file", {"file_path": "t.txt", "content": "old\n"}, "unchanged"),
    ("main", "write_file", {"file_path": "n.txt", "content": "", "dry_run": True}, "dry-run"),
    ("main", "edit", {"file_path": "t.txt", "old_string": "old", "new_string": "n"}, "done"),
    (
        "main",
        "edit",
        {"file_path": "t.txt", "old_string": "?", "new_string": "n"},
        "failed:no-match",
    ),
]


@pytest.mark.parametrize(("profile", "tool", "arguments", "outcome"), CALLS)
def test_each_call_has_one_line(
    tmp_path: Path, profile: str, tool: str, arguments: dict[str, Any], outcome: str
) -> None:
    place = Recorded(tmp_path)
    write(place.project / "t.txt", "old\n")
    session = place.open(profile, sessionId="s-1")
    result = place.call(session, tool, **arguments)
    (line,) = place.lines()
    assert (line["session"], line["tool"], line["outcome"]) == ("s-1", tool, outcome)
    assert datetime.fromisoformat(line["time"]).tzinfo is not None and line["turn"] is None
    told = result["_meta"]["pinfold/decision"]
    assert line["decision"] == (told and told["decision"]) and line["rule"] == (
        told and told["rule"]
    )
    named = arguments.get("file_path")
    assert line["path"] == (f"{place.project}/{named}" if named else None)
    assert line["realPath"] == (line["path"] if told else None)


def test_digests_and_links(tmp_path: Path) -> None:
    place = Recorded(tmp_path)
    session = place.open()
    path = write(place.project / "t.txt", "old\n")
    os.link(path, tmp_path / "twin")

    def digest(result: dict[str, Any]) -> str:
        return str(result["_meta"]["pinfold/details"]["sha256"])

    old = digest(place.call(session, "read_file", file_path=path))
    new = digest(place.call(session, "write_file", file_path=path, content="new\n"))
    place.call(session, "write_file", file_path=path, content="newer\n", dry_run=True)
    made = digest(place.call(session, "write_file", file_path="n.txt", content="made"))
    place.call(session, "write_file", file_path="o.txt", content="made", dry_run=True)
    shown = [(x["sha256Before"], x["sha256After"], x["links"]) for x in place.lines()]
    assert shown == [
        (None, old, 2),
        (old, new, 2),
        (new, new, 1),
        (None, made, None),
        (None, None, None),
    ]


def test_explained_decisions_are_recorded_and_commands_are_not(tmp_path: Path) -> None:
    place = Recorded(tmp_path)
    session = place.open("dream")
    place.explain(session, "run_shell_command", command="echo hunter2")
    place.explain(session, "edit", file_path=f"{place.memory}/pinned/x.md")
    place.explain(session, "x" * 1000, file_path="hunter2")
    with pytest.raises(RpcError):
        place.explain(session, "edit", file_path=5)
    with pytest.raises(RpcError):
        place.gateway.call(ToolsCallParams(session.session_id, "no_such_tool"))
    lines = place.lines()
    assert [(x["outcome"], x["decision"], x["rule"]) for x in lines] == [
        ("explained", "allow", "shell"),
        ("explained", "deny", "pinned"),
        ("explained", "deny", "unknown-tool"),
    ]
    assert b"hunter2" not in read(place.path) and len(lines[2]["tool"]) == 200


def test_a_cancelled_call_and_a_bug_have_lines_too(tmp_path: Path) -> None:
    ticket = Ticket()
    place = Recorded(tmp_path, seam=lambda moment: ticket.cancel() and None)
    session = place.open()
    arguments = {"file_path": "t.txt", "content": "x"}
    params = ToolsCallParams(session.session_id, "write_file", arguments)
    with pytest.raises(Cancelled):
        place.gateway.call(params, ticket)

    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    place.gateway.calls.backend.replace = bug  # type: ignore[assignment, method-assign]
    with pytest.raises(ZeroDivisionError):
        place.gateway.call(params)
    lines = place.lines()
    assert [x["outcome"] for x in lines] == ["cancelled", "failed:internal"]
    assert [x["decision"] for x in lines] == ["allow", "allow"]
    assert not (place.project / "t.txt").exists()


MARK = "HUNTER2"
CONTENT = st.builds("{}{}{}".format, st.text(max_size=5), st.just(MARK), st.text(max_size=5))
CALL = st.one_of(
    st.tuples(st.just("write_file"), st.fixed_dictionaries({"content": CONTENT})),
    st.tuples(
        st.just("edit"), st.fixed_dictionaries({"old_string": CONTENT, "new_string": CONTENT})
    ),
    st.tuples(st.just("edit"), st.fixed_dictionaries({"edits": CONTENT})),
    st.tuples(st.just("read_file"), st.fixed_dictionaries({}, optional={"encoding": CONTENT})),
    st.tuples(st.just("read_file"), st.dictionaries(CONTENT, CONTENT, max_size=3)),
)


@settings(max_examples=40, deadline=None)
@given(
    old=CONTENT,
    calls=st.lists(CALL, min_size=1, max_size=6),
    profile=st.sampled_from(["main", "dream"]),
)
def test_contents_never_appear(
    tmp_path_factory: pytest.TempPathFactory, old: str, calls: list[Any], profile: str
) -> None:
    with wiped(tmp_path_factory.mktemp("record") / "base") as base:
        place = Recorded(base)
        path = write(f"{place.memory}/t.md", old.encode("utf-8", "replace"))
        session = place.open(profile)
        for tool, arguments in calls:
            place.call(session, tool, file_path=path, **arguments)
        assert len(place.lines()) == len(calls) and MARK.encode() not in read(place.path)


def test_nothing_is_told_of_a_path_that_is_none(tmp_path: Path) -> None:
    place = Recorded(tmp_path)
    place.call(place.open(), "write_file", file_path=MARK * 1000, content="x")
    assert place.lines()[0]["path"] is None and MARK.encode() not in read(place.path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[
            (n, "denied")
            for n in ("audit.jsonl", "audit.jsonl.1", "AUDIT.jsonl", "Audit.jsonl.12.")
        ],
        *[(n, "denied") for n in ("audit.jsonl.2/x", "audit.jsonl/x", "link/audit.jsonl")],
        *[(n, None) for n in ("audit.jsonl.md", "audit.json", "sub/audit.jsonl", "x-audit.jsonl")],
    ],
)
def test_the_record_is_no_memory(tmp_path: Path, name: str, expected: str | None) -> None:
    plain = Embedded(tmp_path)
    os.symlink(plain.memory, tmp_path / "elsewhere")
    place = Recorded(tmp_path, f"{tmp_path}/elsewhere/audit.jsonl")
    os.symlink(".", f"{plain.memory}/link")
    session = place.open("dream")
    result = place.call(session, "write_file", file_path=f"{plain.memory}/{name}", content="x")
    assert kind(result) == expected
    if expected:
        rule = result["_meta"]["pinfold/decision"]["rule"]
        assert rule == "outside-memory" and "record" in result["content"][0]["text"]
    place.gateway.close()
    assert len(read(place.path).splitlines()) == 1
    assert kind(place.call(session, "read_file", file_path=place.path)) is None
