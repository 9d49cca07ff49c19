"""What is decided where another process opens the path: whole trees, and spellings."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fronts import Front
from pinfold.policy.decide import decide
from pinfold.policy.facts import (
    Call,
    Effective,
    Facts,
    Reserved,
    RootFacts,
    Spelling,
    Step,
    Target,
)
from pinfold.policy.names import below
from pinfold.policy.spelling import doubt, look
from pinfold_protocol.convert import unstructure
from pinfold_protocol.session import PROFILES
from pinfold_protocol.tools import ToolsCallParams
from support import decision, kind, read, snapshot, write

DREAM = Effective(PROFILES["dream"])
PROTECTING = Effective(msgspec.structs.replace(PROFILES["main"], protect_pinned=True))
MOVE = Call("move", "change", tree=True, foreign=True)
ROOT = RootFacts(
    "project",
    "/h/m/notes",
    "/h/m/notes",
    "/h/m/notes",
    included=True,
    reserved=Reserved("/h/m/notes/pinned", ("/away/curated",)),
    above=frozenset({(1, 1), (1, 2)}),
)


def decided(path: str, call: Call = MOVE, effective: Effective = DREAM, **more: Any) -> Any:
    identity = more.pop("identity", None)
    ways = ((Step("", None), Step("x", identity)),)
    target = Target(path, more.pop("real", path), ways=ways)
    facts = Facts(target, (ROOT,), spelling=Spelling(), **more)
    found = decide(call, facts, effective)
    return found.decision, found.rule, found.match


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/h/m/notes/pinned", ("deny", "pinned", "literal")),
        ("/h/m/notes", ("deny", "pinned", "literal")),
        ("/h/m", ("deny", "pinned", "literal")),
        ("/h/M", ("deny", "pinned", "literal")),  # some volume may take it for the same
        ("/", ("deny", "pinned", "literal")),
        ("/away", ("deny", "pinned", "resolved")),
        ("/away/curated", ("deny", "pinned", "resolved")),
        ("/h/m/notes/pinned-not", ("allow", "default", None)),
        ("/h/m/notes/old", ("allow", "default", None)),
        ("/h/m/other", ("deny", "outside-memory", None)),
        ("/awa", ("deny", "outside-memory", None)),
    ],
)
def test_what_takes_the_reserved_directory_along(path: str, right: Any) -> None:
    assert decided(path) == right


@pytest.mark.parametrize("name", ["write", "create"])
def test_what_takes_nothing_along(name: str) -> None:
    call = Call(name, "change", foreign=True)
    assert decided("/h/m/notes", call)[:2] == ("allow", "default")


def test_a_tree_under_another_name() -> None:
    assert decided("/mnt/copy", effective=PROTECTING, identity=(1, 2)) == (
        *("deny", "pinned"),
        "identity",
    )
    assert decided("/mnt/copy", effective=PROTECTING, identity=(9, 9))[0] == "allow"


def test_a_root_itself_is_not_moved_even_where_nothing_is_pinned() -> None:
    remember = Effective(PROFILES["remember"])
    assert decided("/h/m/notes", effective=remember)[:2] == ("deny", "outside-memory")
    assert decided("/h/m/notes/a", effective=remember)[0] == "allow"


def test_the_record_goes_with_no_tree() -> None:
    record = "/h/m/notes/log/audit.jsonl"
    assert decided("/h/m/notes/log", record=record)[:2] == ("deny", "outside-memory")
    assert decided("/h/m/notes/other", record=record)[0] == "allow"


NAMES = st.sampled_from(["h", "m", "notes", "pinned", "away", "curated", "x", "Pinned", "H"])
PATHS = st.lists(NAMES, max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(PATHS)
def test_a_tree_is_denied_exactly_where_something_pinned_is_in_it_or_it_in_something_pinned(
    path: str,
) -> None:
    found = decided(path, effective=PROTECTING)
    places = ("/h/m/notes/pinned", "/away/curated")
    close = any(
        below(place, path) is not None or below(path, place) is not None for place in places
    )
    if close:
        assert found[:2] == ("deny", "pinned")
    elif path == path.lower():  # else a fold of names may deny more
        assert found[0] == "allow"


@given(PATHS)
def test_a_tree_is_never_decided_wider_than_a_file(path: str) -> None:
    for effective in (DREAM, PROTECTING, Effective(PROFILES["remember"])):
        file = decided(path, Call("write", "change", foreign=True), effective)
        if file[0] == "deny":
            assert decided(path, MOVE, effective)[0] == "deny"


SPELLINGS: list[tuple[str, str | None, Spelling, str | None]] = [
    ("/m/a b/c.md", "", Spelling(), None),
    ("/m/ü/日本.md", "", Spelling(), None),
    ("/m/it's/a\"b", "", Spelling(), None),
    ("/m/.hidden/~x/a%20b/$HOME/*", "", Spelling(), None),
    ("/m/new", "", Spelling(("new",)), None),
    ("/", "", Spelling(), None),
    ("/m/a", "/n/a", Spelling(), "link"),
    ("/m/a", None, Spelling(), "resolved"),
    ("/m/ a", "", Spelling(), "white space"),
    ("/m/a /b", "", Spelling(), "white space"),
    ("/m/a\u00a0", "", Spelling(), "white space"),
    ("/m/\ufeffa", "", Spelling(), "white space"),
    ("/m/a\u200b", "", Spelling(), "white space"),
    ("/m/'a", "", Spelling(), "quote"),
    ('/m/a"', "", Spelling(), "quote"),
    ("/m/`a`", "", Spelling(), "quote"),
    ("/m/\u201ca\u201d", "", Spelling(), "quote"),
    ("/m/\u00aba", "", Spelling(), "quote"),
    ("/m/a\tb", "", Spelling(), "control"),
    ("/m/a\nb", "", Spelling(), "control"),
    ("/m/a\x7fb", "", Spelling(), "control"),
    ("/m/a\x85b", "", Spelling(), "control"),
    ("/m/a\u2028b", "", Spelling(), "control"),
    ("/m/a\u202eb", "", Spelling(), "control"),
    ("/m/a\udcffb", "", Spelling(), "control"),
    ("/m/a\\b", "", Spelling(), "backslash"),
    ("/m/x/new", "", Spelling(("x", "new")), "does not exist"),
    ("/m/new", "", Spelling(("new",), ("NEW",)), "NEW"),
]


@pytest.mark.parametrize(("literal", "real", "spelling", "word"), SPELLINGS)
def test_which_paths_another_process_might_read_otherwise(
    literal: str, real: str | None, spelling: Spelling, word: str | None
) -> None:
    target = Target(literal, literal if real == "" else real, problem="a loop")
    found = doubt(target, spelling)
    assert (found is None) if word is None else (found is not None and word in found)


def test_the_kernel_s_other_name_counts_as_a_link() -> None:
    assert doubt(Target("/m/a", "/m/a", walked="/n/a"), Spelling()) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [("é", "e\u0301"), ("ﬁle", "FILE"), ("a  b", "a\u00a0b"), ("ß", "SS"), ("①", "1"), ("Å", "Å")],
)
def test_what_looks_the_same(one: str, other: str) -> None:
    assert look(one) == look(other)


# With a real tree, and an upstream that runs


@pytest.fixture
def front(tmp_path: Path) -> Any:
    with Front(tmp_path) as front:
        yield front


REFUSED: list[tuple[str, str, dict[str, str]]] = [
    ("pinned itself is moved", "move_it", {"from": "M/pinned", "to": "M/old"}),
    ("a pinned file is moved", "move_it", {"from": "M/pinned/p.md", "to": "M/p.md"}),
    ("the root is moved", "move_it", {"from": "M", "to": "M2"}),
    ("an ancestor of it is moved", "move_it", {"from": "B/memory", "to": "B/gone"}),
    ("pinned is dropped", "drop_it", {"path": "M/pinned/p.md"}),
    ("onto a pinned file", "move_it", {"from": "M/topic.md", "to": "M/pinned/p.md"}),
    ("into pinned", "move_it", {"from": "M/topic.md", "to": "M/pinned/new.md"}),
    ("pinned is written to", "write_it", {"path": "M/pinned/p.md", "content": "x"}),
    ("through a link", "write_it", {"path": "M/link.md", "content": "x"}),
    ("through a linked directory", "write_it", {"path": "M/dir/p.md", "content": "x"}),
    ("a link is moved", "move_it", {"from": "M/harmless", "to": "M/harmless2"}),
    ("a read through a link", "read_it", {"path": "M/harmless"}),
    ("another name of a pinned file", "write_it", {"path": "M/hard.md", "content": "x"}),
    ("another name of it is moved", "move_it", {"from": "M/hard.md", "to": "M/harder.md"}),
    ("out of memory", "move_it", {"from": "M/topic.md", "to": "B/project/out.md"}),
    ("into memory", "move_it", {"from": "B/project/in.md", "to": "M/in.md"}),
    ("a repository", "move_it", {"from": "M/topic.md", "to": "M/.git"}),
    ("no directory yet", "write_it", {"path": "M/none/x.md", "content": "x"}),
    ("a blank at the end", "write_it", {"path": "M/topic.md ", "content": "x"}),
    ("quoted", "write_it", {"path": "M/'topic.md'", "content": "x"}),
    ("a look-alike", "write_it", {"path": "M/TOPIC.md", "content": "x"}),
    ("another normal form", "write_it", {"path": "M/re\u0300gle.md", "content": "x"}),
    ("dots after a link", "write_it", {"path": "M/dir/../pinned/p.md", "content": "x"}),
    ("a loop", "write_it", {"path": "M/loop", "content": "x"}),
    ("nothing known of it", "odd", {"how": "x"}),
]


def lay(front: Front) -> None:
    memory = front.memory
    write(f"{memory}/topic.md", "topic")
    write(f"{memory}/r\u00e8gle.md", "one form")
    write(f"{memory}/pinned/p.md", "curated")
    write(f"{front.project}/in.md", "x")
    os.symlink("pinned/p.md", f"{memory}/link.md")
    os.symlink("pinned", f"{memory}/dir")
    os.symlink("topic.md", f"{memory}/harmless")
    os.symlink("loop", f"{memory}/loop")
    os.link(f"{memory}/pinned/p.md", f"{memory}/hard.md")


def placed(front: Front, arguments: dict[str, str]) -> dict[str, str]:
    def real(value: str) -> str:
        head, slash, rest = value.partition("/")
        base = {"M": front.memory, "M2": front.memory + "2", "B": str(front.base)}.get(head)
        return value if base is None else f"{base}{slash}{rest}"

    return {k: v if k in ("content", "how") else real(v) for k, v in arguments.items()}


def test_a_dream_session_in_front_of_an_upstream(front: Front) -> None:
    """One process for all rows: each is denied, nothing is sent, the disk is as it was."""
    lay(front)
    dream = front.open("dream", backend="up", scope={"hardLinks": "ignore"})
    assert dream.scope.hard_links == "deny"
    before = snapshot(front.base / "memory")
    for what, name, arguments in REFUSED:
        given = placed(front, arguments)
        result = front.call(dream, name, **given)
        assert kind(result) == "denied", (what, result)
        assert decision(result)["decision"] == "deny"
        assert front.explain(dream, name, **given) == decision(result), what
    assert snapshot(front.base / "memory") == before
    assert b"tools/call" not in read(front.log)


@pytest.mark.parametrize("second", ["x/y/alias", "x/y/../alias", "MEMORY/x/y/alias"])
def test_a_directory_that_only_a_link_on_the_way_is_in_stays(front: Front, second: str) -> None:
    """The reserved directory is a link to a link: without the second the first leads nowhere."""
    memory, away = front.memory, front.base / "away"
    write(away / "p.md", "curated")
    os.makedirs(f"{memory}/x/y")
    for place in (f"{memory}/x/y/alias", f"{memory}/x/alias"):
        os.symlink(away, place)
    os.symlink(second.replace("MEMORY", memory), f"{memory}/pinned")
    dream = front.open("dream", backend="up")
    main = front.open("main", backend="up", scope={"protectPinned": True})
    before = snapshot(memory)
    for session in (dream, main):
        for taken in ("x", "x/y"):
            ends = {"from": f"{memory}/{taken}", "to": f"{memory}/z"}
            result = front.call(session, "move_it", **ends)
            assert decision(result)["match"] == "identity", (taken, result)
    assert snapshot(memory) == before


def test_the_same_in_a_session_that_protects_nothing(front: Front) -> None:
    lay(front)
    main, memory = front.open("main", backend="up"), front.memory
    assert not front.call(main, "write_it", path=f"{memory}/link.md", content="x")["isError"]
    assert read(f"{memory}/pinned/p.md") == b"x"
    # A link that is moved or dropped is the link, not where it leads.
    moved = front.call(main, "move_it", **{"from": f"{memory}/harmless", "to": f"{memory}/l2"})
    assert not moved["isError"] and os.path.islink(f"{memory}/l2")
    assert not front.call(main, "drop_it", path=f"{memory}/l2")["isError"]
    assert os.path.exists(f"{memory}/topic.md") and not os.path.lexists(f"{memory}/l2")
    assert not front.call(main, "write_it", path=f"{memory}/ b ", content="x")["isError"]
    assert read(f"{memory}/ b ") == b"x"
    relative = front.call(main, "write_it", path="in.md", content="y", mode=3)
    assert not relative["isError"] and read(front.project / "in.md") == b"y"


def test_a_name_that_is_no_utf8_is_not_sent(front: Front) -> None:
    main = front.open("main", backend="up")
    os.symlink(os.fsencode(front.memory) + b"/\xff", f"{front.memory}/to")
    result = front.call(main, "write_it", path=f"{front.memory}/to", content="x")
    assert kind(result) == "invalid-path"


def test_the_gateway_s_own_pipes_are_not_handed_on(front: Front) -> None:
    reading, writing = os.pipe()
    main = front.open("main", backend="up")
    for number, name, more in ((reading, "read_it", {}), (writing, "write_it", {"content": "x"})):
        for path in (f"/dev/fd/{number}", f"/proc/{os.getpid()}/fd/{number}"):
            assert kind(front.call(main, name, path=path, **more)) == "not-a-regular-file"
    assert b"tools/call" not in read(front.log)
    os.close(reading)
    os.close(writing)


def test_a_bind_of_memory_under_another_name_is_found_out(front: Front) -> None:
    """By identity: every directory on the way to the reserved one counts."""
    lay(front)
    other = front.base / "other"
    other.mkdir()
    done = os.system(f"mount --bind '{front.base}/memory' '{other}' 2>/dev/null")
    if done != 0:
        pytest.skip("no mount here")
    try:
        session = front.open("main", backend="up", scope={"protectPinned": True}, rules=None)
        for path in (str(other), f"{other}/projects"):
            result = front.call(session, "drop_it", path=path)
            assert kind(result) == "denied", result
            assert decision(result)["match"] == "identity"
    finally:
        os.system(f"umount '{other}'")


def test_a_path_that_leads_elsewhere_right_before_it_is_sent_is_decided_again(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link is put in the way between the first look and the last: nothing is sent."""
    lay(front)
    dream, place = front.open("dream", backend="up"), f"{front.memory}/dir2"
    os.mkdir(place)
    peer = front.gateway.upstreams.named("up")

    def swap() -> None:
        if os.path.isdir(place) and not os.path.islink(place):
            os.rename(place, f"{place}.old")
            os.symlink("pinned", place)

    monkeypatch.setattr(peer, "start", swap)
    result = front.call(dream, "write_it", path=f"{place}/p.md", content="x")
    assert kind(result) == "denied" and decision(result)["rule"] == "pinned"
    assert read(f"{front.memory}/pinned/p.md") == b"curated"
    assert b"tools/call" not in read(front.log)


def test_a_path_that_never_stays_is_given_up(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    main, path = front.open("main", backend="up"), f"{front.memory}/moving.md"
    peer = front.gateway.upstreams.named("up")

    def move() -> None:
        os.rename(write(f"{path}.new", os.urandom(8)), path)

    monkeypatch.setattr(peer, "start", move)
    result = front.call(main, "write_it", path=path, content="x")
    assert kind(result) == "changed-underfoot" and b"tools/call" not in read(front.log)


SECRET = "PASSWORD=1"
SEALED = {"decision": "deny", "tools": ["read_file"], "paths": ["secret/**"]}


@pytest.mark.parametrize("how", ["quote", "quote in a failure", "quote in an error"])
def test_what_it_says_of_a_file_that_may_not_be_read_is_not_handed_on(
    front: Front, how: str
) -> None:
    path = write(front.project / "secret/q", SECRET)
    progress: list[Any] = []
    for rules, shown in (([], True), ([SEALED], False), ([SEALED | {"decision": "ask"}], False)):
        session = front.open("main", backend="up", rules=rules)
        params = ToolsCallParams(
            session.session_id, "write_it", {"path": path, "content": f"!{how}"}
        )
        result = front.gateway.call(params, on_progress=progress.append)
        told = json.dumps(unstructure(result))
        assert (SECRET in told) is shown, told
        assert result.is_error is (how != "quote")
        assert (SECRET in json.dumps(progress)) is shown
        assert shown or "may not read" in told
        progress.clear()


@pytest.mark.parametrize("scope", [{}, {"confineReads": True}])
def test_moving_is_also_reading_at_the_source(front: Front, scope: dict[str, Any]) -> None:
    path = write(front.project / "secret/q", SECRET)
    session = front.open("main", backend="up", scope=scope, rules=[] if scope else [SEALED])
    ends = {"from": path, "to": f"{front.memory}/open"}
    result = front.call(session, "move_it", **ends)
    assert kind(result) == "denied" and os.path.exists(path)
    assert front.explain(session, "move_it", **ends) == decision(result)
    back = {"from": write(f"{front.memory}/topic.md", "x"), "to": f"{front.project}/secret/new"}
    assert kind(front.call(session, "move_it", **back)) is None  # putting something there is not


def test_the_gateway_imports_nothing_of_upstreams_where_there_are_none() -> None:
    program = "import sys, pinfold.app; pinfold.app.Gateway({}); print(*sys.modules, sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(found.stdout.split())
    assert "pinfold.app" in loaded and not any("upstream" in each for each in loaded)
    assert "pinfold.relay" not in loaded and "subprocess" not in loaded
