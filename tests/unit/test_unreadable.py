"""What a session may not read is not told it by a change either, nor by a hint."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinfold_protocol.convert import structure
from pinfold_protocol.session import ScopePatch, SessionConfigureParams, SessionResult
from support import Bench, decision, details, kind, read, write

SECRET = "PASSWORD"
OLD = f"{SECRET}=1\nmiddle\n{SECRET}=1\n"


def sealed(verdict: str, *tools: str) -> dict[str, Any]:
    return {"rules": [{"decision": verdict, "tools": list(tools), "paths": ["secret/**"]}]}


UNREADABLE: dict[str, dict[str, Any]] = {
    "a rule denies": sealed("deny", "read_file"),
    "a rule asks": sealed("ask", "read_file"),
    "a rule about all, but for changes": {
        "rules": [
            {"decision": "deny", "tools": ["read_file", "grep_search"], "paths": ["/**/secret/q"]}
        ]
    },
    "reads are confined": {"scope": {"confineReads": True}},
}
READABLE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a rule about another place": {
        "rules": [{"decision": "deny", "tools": ["read_file"], "paths": ["other/**"]}]
    },
    "a rule about changes": sealed("allow", "write_file"),
}


def edit(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"edits": [{"old_string": a, "new_string": b, **more} for a, b in pairs]}


# What is called, what becomes of it, and whether it shows the old content where that may be read
CALLS: dict[str, tuple[str, dict[str, Any], str | None, bool]] = {
    "a write": ("write_file", {"content": "x\n"}, None, True),
    "an edit": ("edit", edit(("middle", "x")), None, True),
    "of all": ("edit", edit(("=1", "=2"), replace_all=True), None, True),
    "no change": ("write_file", {"content": OLD}, None, False),
    "a near miss": ("edit", edit((f"{SECRET[:-1]}X=1", "x")), "no-match", True),
    "a near miss in another case": ("edit", edit(("MIDDLE", "x")), "no-match", True),
    "a near miss at the end": ("edit", edit((f"middle\n{SECRET}=1\n\n", "x")), "no-match", True),
    "one after another": ("edit", edit(("middle", "y"), ("Y", "x")), "no-match", True),
    "several matches": ("edit", edit(("=1", "x")), "ambiguous-match", True),
}
QUOTED = (SECRET, "middle", "line 1", "line 2", "lines 1", '"line"', '"column"', '"lines": [0')


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scene", [*UNREADABLE, *READABLE])
def test_c077_a_change_shows_what_may_be_read(
    tmp_path: Path, scene: str, call: str, dry: bool
) -> None:
    bench = Bench(tmp_path)
    path = write(tmp_path / "project/secret/q", OLD)
    session = bench.place.open(**(UNREADABLE | READABLE)[scene])
    tool, arguments, expected, quotes = CALLS[call]
    result = bench.place.call(session, tool, file_path=path, dry_run=dry, **arguments)
    assert kind(result) == expected and decision(result)["decision"] == "allow"
    assert (read(path) != OLD.encode()) is (expected is None and quotes and not dry)
    told = json.dumps({**result, "content": [each["text"] for each in result["content"]]})
    shown = scene in READABLE and quotes
    assert any(each in told for each in QUOTED) is shown, told
    assert ("may not read" in told) is (quotes and not shown)
    if expected is None:
        found = details(result)
        assert bool(found["diff"]) is shown and found["changed"] is quotes
        assert len(found["sha256"]) == 64 and found["lineEnding"] == "lf"


def test_a_new_file_is_shown_whoever_may_read_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    session = bench.place.open(**UNREADABLE["a rule denies"])
    new = f"{bench.project}/secret/new"
    result = bench.place.call(session, "write_file", file_path=new, content="mine\n", dry_run=True)
    assert "+mine" in result["content"][0]["text"] and "+mine" in details(result)["diff"]


def test_through_a_link_by_either_of_its_names(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    path = write(tmp_path / "project/secret/q", OLD)
    os.symlink(path, f"{bench.project}/link")
    session = bench.place.open(**UNREADABLE["a rule denies"])
    result = bench.place.call(
        session, "write_file", file_path=f"{bench.project}/link", content="x", dry_run=True
    )
    assert SECRET not in json.dumps(result) and "may not read" in result["content"][0]["text"]


def test_confined_reads_show_what_is_inside(tmp_path: Path) -> None:
    """Also where writes are not confined, and the roots are looked at for the reading alone."""
    bench = Bench(tmp_path)
    session = bench.place.open(scope={"confineReads": True})
    path = write(f"{bench.memory}/topic.md", OLD)
    result = bench.place.call(session, "write_file", file_path=path, content="x", dry_run=True)
    assert f"-{SECRET}=1" in details(result)["diff"]


def test_what_was_allowed_for_the_session_is_shown(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    path = write(tmp_path / "project/secret/q", OLD)
    opened = bench.place.open(**UNREADABLE["a rule asks"])
    session = bench.place.gateway.sessions.get(opened.session_id)
    session.allow(("read_file", path), session.effective.rules)
    result = bench.place.call(opened, "write_file", file_path=path, content="x", dry_run=True)
    assert SECRET in details(result)["diff"]


NARROWED: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"content": "x\n"}),
    ("edit", edit(("middle", "x"))),
]


@pytest.mark.parametrize(("tool", "arguments"), NARROWED)
def test_a_scope_that_is_narrowed_meanwhile_counts(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    bench = Bench(tmp_path)
    path = write(tmp_path / "project/secret/q", OLD)
    session = bench.place.open()

    def narrow() -> None:
        scope = structure({"confineReads": True}, ScopePatch)
        params = SessionConfigureParams(session.session_id, scope=scope)
        bench.place.gateway.configure_session(params)

    bench.seam.at("written", narrow)
    result = bench.place.call(session, tool, file_path=path, **arguments)
    assert kind(result) is None and read(path) != OLD.encode()
    assert SECRET not in json.dumps(result) and details(result)["diff"] == ""


# Names beside one that is not there

Opens = Callable[[Bench], SessionResult]


def hides(*tools: str, paths: str) -> Opens:
    rule = {"decision": "deny", "tools": list(tools), "paths": [paths]}
    return lambda bench: bench.place.open(rules=[rule])


NEAR: list[tuple[Opens, list[str]]] = [
    (lambda bench: bench.main, ["Note.md", "nOte.md"]),
    (hides("read_file", paths="d/Note.md"), ["nOte.md"]),
    (hides("read_file", paths="d/[Nn]*"), []),
    (hides("list_directory", paths="d/"), []),
    (hides("list_directory", paths="d/**"), []),
    (hides("read_file", paths="e/**"), ["Note.md", "nOte.md"]),
]


@pytest.mark.parametrize("asked", ["d/note.md", "link"])
@pytest.mark.parametrize("index", range(len(NEAR)))
def test_names_that_look_alike_are_told_to_whom_may_see_them(
    tmp_path: Path, index: int, asked: str
) -> None:
    bench, (opens, right) = Bench(tmp_path), NEAR[index]
    for name in ("Note.md", "nOte.md", "else.md"):
        write(f"{bench.project}/d/{name}", "x")
    os.symlink("d/note.md", f"{bench.project}/link")
    session = opens(bench)
    for tool, more in (("read_file", {}), ("edit", {"old_string": "a", "new_string": "b"})):
        result = bench.place.call(session, tool, file_path=f"{bench.project}/{asked}", **more)
        if kind(result) != "denied":
            assert details(result)["error"].get("near", []) == right
            assert all(name in result["content"][0]["text"] for name in right)
