"""Base rules: what patterns mean, which are refused, and that no rule ever lifts a denial."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as run_with
from hypothesis import strategies as st

from pinfold.policy.decide import decide
from pinfold.policy.facts import Call, Effective, Facts, RootFacts, Target
from pinfold.policy.rules import Anchors, Rule, read_rules
from pinfold.policy.scopes import narrowed, stricter
from pinfold.tools.registry import HOST_TOOLS, TOOLS
from pinfold_protocol.convert import unstructure
from pinfold_protocol.decision import RuleSource, RuleSpec
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import PROFILES, Scope
from support import Embedded, decision, details, kind, write

KNOWN = {*TOOLS, *HOST_TOOLS}
ANCHORS = Anchors("/work/[p]", "/home/me", lambda path: path.replace("/work", "/data"))


def one(*paths: str, verdict: Any = "deny", tools: tuple[str, ...] = ("*",)) -> Rule:
    (rule,) = read_rules([RuleSpec(verdict, list(tools), list(paths))], "session", ANCHORS, KNOWN)
    return rule


MATCHES: list[tuple[tuple[str, ...], str, bool]] = [
    (("/etc/**",), "/etc/passwd", True),
    (("/etc/**",), "/etc", False),
    (("/etc",), "/etc/passwd", True),
    (("/etc",), "/work/[p]/etc/passwd", False),
    (("secret/**",), "/work/[p]/secret/a/b", True),
    (("secret/**",), "/data/[p]/secret/a", True),
    (("secret/**",), "/work/p/secret/a", False),
    (("secret/**",), "/work/[p]/x/secret/a", False),
    (("*.env",), "/work/[p]/x/y/a.env", True),
    (("*.env",), "/work/[p]/a.env", True),
    (("*.env",), "/home/me/a.env", False),
    (("secret/",), "/work/[p]/x/secret/a", True),
    (("secret/",), "/work/[p]/secret", False),
    (("~/notes/*.md",), "/home/me/notes/a.md", True),
    (("~/notes/*.md",), "/home/me/notes/b/a.md", False),
    (("~",), "/home/me/x", True),
    (("/**",), "/x", True),
    (("/**", "!/x/**"), "/x/y", False),
    (("secret/**", "!secret/readme.md"), "/work/[p]/secret/readme.md", False),
    (("secret/**", "!secret/readme.md"), "/work/[p]/secret/a.md", True),
    (("/a/*", "!/a/b", "/a/b"), "/a/b", True),
    (("doc?.md",), "/work/[p]/doc1.md", True),
    (("doc[12].md",), "/work/[p]/doc3.md", False),
    (("\\#x",), "/work/[p]/#x", True),
    (("\\!x",), "/work/[p]/!x", True),
    (("a\\*b",), "/work/[p]/a*b", True),
    (("a\\*b",), "/work/[p]/axb", False),
    (("SECRET/**",), "/work/[p]/secret/a", False),
    (("*.env",), "/work/[p]/a\nb/x.env", True),
    (("secret/**",), "/work/[p]/secret/a\n", True),
    (("a\nb/*",), "/work/[p]/a\nb/c", True),
    (("-" * 9 + "*.pem",), "/work/[p]/" + "-" * 300, True),
]


@pytest.mark.parametrize(("paths", "path", "matches"), MATCHES)
def test_what_a_pattern_means(paths: tuple[str, ...], path: str, matches: bool) -> None:
    assert one(*paths).covers(path, directory=False) is matches


def test_a_directory_whose_every_entry_is_denied_is_not_listed() -> None:
    """C204: not its content, and not its names."""
    rule = one("secret/**")
    assert rule.covers("/work/[p]/secret", directory=True)
    assert not one("secret/*.key").covers("/work/[p]/secret", directory=True)
    assert one("secret/").covers("/work/[p]/secret", directory=True)
    # What names no deeper place than the entries covers them all the same.
    assert one("/store/*").covers("/store", directory=True)
    assert one("/store/*", "!/store/a").covers("/store", directory=True)
    assert not one("/store/*").covers("/store", directory=False)
    assert not one("/store/*/*").covers("/store", directory=True)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": []}, "rules[0].tools"),
    ({"tools": ["write_files"]}, "rules[0].tools[0]"),
    ({"tools": ["edit", ""]}, "rules[0].tools[1]"),
    ({"paths": []}, "rules[0].paths"),
    ({"paths": ["!a"]}, "rules[0].paths"),
    ({"paths": ["!a", "b"]}, "rules[0].paths[0]"),
    ({"paths": ["a", ""]}, "rules[0].paths[1]"),
    ({"paths": ["a", "  "]}, "rules[0].paths[1]"),
    ({"paths": ["# all"]}, "rules[0].paths[0]"),
    ({"paths": ["/"]}, "rules[0].paths[0]"),
    ({"paths": ["./a"]}, "rules[0].paths[0]"),
    ({"paths": ["../a"]}, "rules[0].paths[0]"),
    ({"paths": ["/a/../b"]}, "rules[0].paths[0]"),
    ({"paths": ["a//b"]}, "rules[0].paths[0]"),
    ({"paths": ["a\\"]}, "rules[0].paths[0]"),
    ({"paths": ["[ab"]}, "rules[0].paths[0]"),
    ({"paths": ["a\0b"]}, "rules[0].paths[0]"),
    ({"paths": ["\ud800x"]}, "rules[0].paths[0]"),
    ({"paths": ["[z-a]"]}, "rules[0].paths"),
]


@pytest.mark.parametrize(("members", "at"), REFUSED)
def test_what_could_never_match_is_refused_by_name(members: dict[str, Any], at: str) -> None:
    spec = RuleSpec(**{"decision": "deny", "tools": ["*"]} | members)
    with pytest.raises(RpcError) as caught:
        read_rules([spec], "session", ANCHORS, KNOWN)
    assert caught.value.data is not None
    assert caught.value.data["path"] == at


@pytest.mark.parametrize(("paths", "words"), [([], "is empty"), (["!a"], "nothing but exceptions")])
def test_a_list_is_refused_for_what_it_is(paths: list[str], words: str) -> None:
    with pytest.raises(RpcError, match=words):
        read_rules([RuleSpec("deny", ["*"], paths)], "session", ANCHORS, KNOWN)


def test_a_misspelt_tool_is_told_what_it_may_have_been() -> None:
    with pytest.raises(RpcError, match="write_file"):
        read_rules([RuleSpec("deny", ["write_files"])], "session", ANCHORS, KNOWN)


# Decisions


def facts(literal: str, real: str | None = None) -> Facts:
    root = RootFacts("project", "/mem", "/mem", "/mem", True)
    return Facts(Target(literal, literal if real is None else real), (root,))


def decided(rules: list[RuleSpec], literal: str, real: str | None = None, **more: Any) -> Any:
    read = read_rules(rules, "session", ANCHORS, KNOWN)
    effective = Effective(more.get("scope", PROFILES["main"]), rules=read)
    tool = more.get("tool", "edit")
    action = {"edit": "change", "read_file": "read", "list_directory": "read"}[tool]
    return decide(Call(tool, action), facts(literal, real), effective)  # type: ignore[arg-type]


DENY, ASK, ALLOW = (
    RuleSpec("deny", ["*"], ["/a/**"]),
    RuleSpec("ask", ["*"], ["/a/**"]),
    RuleSpec("allow", ["*"], ["/a/**"]),
)


@pytest.mark.parametrize(
    ("rules", "literal", "real", "verdict", "number", "match"),
    [
        ([ALLOW, ASK, DENY], "/a/x", None, "deny", 2, "literal"),
        ([ALLOW, ASK], "/a/x", None, "ask", 1, "literal"),
        ([ALLOW], "/a/x", None, "allow", 0, "literal"),
        ([DENY], "/b/x", "/a/x", "deny", 0, "resolved"),
        ([DENY], "/a/x", "/b/x", "deny", 0, "literal"),
        ([ASK], "/b/x", "/a/x", "ask", 0, "resolved"),
        ([DENY, DENY], "/a/x", None, "deny", 0, "literal"),
        ([RuleSpec("deny", ["edit"])], "/q", None, "deny", 0, None),
    ],
)
def test_deny_beats_ask_beats_allow_on_either_path(
    rules: list[RuleSpec],
    literal: str,
    real: str | None,
    verdict: str,
    number: int,
    match: str | None,
) -> None:
    found = decided(rules, literal, real)
    assert (found.decision, found.rule) == (verdict, "base-rule")
    assert found.source == RuleSource(number, "session")
    assert found.match == match
    assert f"rules[{number}] of the session" in found.reason


@pytest.mark.parametrize(("literal", "real"), [("/a/x", "/b/x"), ("/b/x", "/a/x")])
def test_an_allow_that_matches_one_path_only_says_nothing(literal: str, real: str) -> None:
    assert decided([ALLOW], literal, real).rule == "default"


def test_a_rule_with_paths_never_covers_a_call_without_one() -> None:
    rules = read_rules([DENY, RuleSpec("ask", ["run_shell_command"])], "session", ANCHORS, KNOWN)
    effective = Effective(PROFILES["main"], rules=rules)
    found = decide(Call("run_shell_command", "shell"), None, effective)
    assert (found.decision, found.source) == ("ask", RuleSource(1, "session"))


def test_a_rule_speaks_for_the_tools_that_it_names() -> None:
    rule = RuleSpec("deny", ["read_file"], ["/a/**"])
    assert decided([rule], "/a/x").decision == "allow"
    assert decided([rule], "/a/x", tool="read_file").decision == "deny"


scopes = st.builds(
    Scope,
    confine_writes=st.booleans(),
    confine_reads=st.booleans(),
    project_memory=st.booleans(),
    user_memory=st.booleans(),
    protect_pinned=st.booleans(),
    shell=st.sampled_from(["deny", "read-only", "unscoped"]),
    bypass_ask=st.booleans(),
    hard_links=st.sampled_from(["deny", "ignore"]),
    staleness=st.sampled_from(["require-read", "detect", "off"]),
)
specs = st.builds(
    RuleSpec,
    decision=st.sampled_from(["deny", "ask", "allow"]),
    tools=st.sampled_from([["*"], ["edit"], ["read_file", "edit"], ["run_shell_command"]]),
    paths=st.sampled_from(
        [None, ["/mem/**"], ["/**"], ["/mem/pinned/**", "!/mem/pinned/a"], ["*.md"]]
    ),
)
calls = st.sampled_from(
    [
        Call("edit", "change"),
        Call("read_file", "read"),
        Call("list_directory", "read"),
        Call("run_shell_command", "shell"),
        Call("whatever", "unknown"),
    ]
)
targets = st.sampled_from(["/mem/a.md", "/mem/pinned/a", "/src/a.py", "/mem", "/work/[p]/a.md"])
STRENGTH = ("allow", "ask", "deny")


@given(scopes, st.lists(specs, max_size=4), specs, calls, targets, targets, st.data())
def test_one_more_rule_never_turns_a_denial_into_anything_else(
    scope: Scope,
    rules: list[RuleSpec],
    more: RuleSpec,
    call: Call,
    literal: str,
    real: str,
    data: Any,
) -> None:
    """Nor a question into a permission; wherever the rule is put."""
    place = data.draw(st.integers(0, len(rules)))
    known = None if call.action == "shell" else facts(literal, real)

    def found(specs: list[RuleSpec]) -> Any:
        read = read_rules(specs, "session", ANCHORS, KNOWN)
        return decide(call, known, Effective(scope, rules=read))

    before, after = found(rules), found([*rules[:place], more, *rules[place:]])
    assert STRENGTH.index(after.decision) >= STRENGTH.index(before.decision)
    if before.decision == "deny" and before.rule != "base-rule":
        assert (after.rule, after.reason) == (before.rule, before.reason)


@given(scopes, st.lists(specs, max_size=4), calls, targets, targets)
def test_no_answer_lifts_what_no_rule_asked(
    scope: Scope, rules: list[RuleSpec], call: Call, literal: str, real: str
) -> None:
    known = None if call.action == "shell" else facts(literal, real)
    effective = Effective(scope, rules=read_rules(rules, "session", ANCHORS, KNOWN))
    asked = decide(call, known, effective)
    yes = decide(call, known, effective, lambda key: "allow-session")
    no = decide(call, known, effective, lambda key: "deny")
    if asked.decision != "ask":
        assert asked == yes == no
    else:
        assert (yes.decision, yes.asked) == ("allow", "allow-session")
        assert (no.decision, no.asked) == ("deny", "deny")
        assert "base-rule" == asked.rule == yes.rule == no.rule


# Turns


@given(scopes, st.lists(scopes, max_size=3), calls, targets, targets)
def test_a_turn_never_widens(
    own: Scope, turns: list[Scope], call: Call, literal: str, real: str
) -> None:
    import msgspec

    named = {f"t{i}": msgspec.structs.asdict(turn) for i, turn in enumerate(turns)}
    scope, sources = narrowed(own, named)
    for member in msgspec.structs.asdict(scope):
        value = getattr(scope, member)
        for other in (own, *turns):
            assert stricter(member, value, getattr(other, member)) == value
        assert (member in sources) == (value != getattr(own, member))
    known = None if call.action == "shell" else facts(literal, real)
    before, after = decide(call, known, Effective(own)), decide(call, known, Effective(scope))
    assert STRENGTH.index(after.decision) >= STRENGTH.index(before.decision)


# Embedded, on files


@pytest.fixture
def place(tmp_path: Path) -> Embedded:
    return Embedded(tmp_path)


def rule(verdict: str, *paths: str, tools: tuple[str, ...] = ("*",)) -> dict[str, Any]:
    return {"decision": verdict, "tools": list(tools), "paths": list(paths) or None}


def test_c205_a_directory_that_is_read_only(place: Embedded, tmp_path: Path) -> None:
    write(tmp_path / "project/docs/a.md", "a")
    session = place.open("main", rules=[rule("deny", "docs/**", tools=("write_file", "edit"))])
    assert not place.call(session, "read_file", file_path="docs/a.md")["isError"]
    for path in ("docs/a.md", "docs/new/b.md", "x/../docs/c.md"):
        result = place.call(session, "write_file", file_path=path, content="b")
        assert kind(result) == "denied"
        assert decision(result)["source"] == {"rule": 0, "of": "session"}
    assert (tmp_path / "project/docs/a.md").read_text() == "a"
    assert not (tmp_path / "project/docs/new").exists()


def test_a_directory_whose_entries_are_denied_is_not_listed_by_the_host(
    place: Embedded, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    rules = [{"decision": "deny", "tools": ["*"], "paths": [f"{store}/*"]}]
    session = place.open("main", rules=rules)
    told = place.explain(session, "list_directory", path=str(store))
    assert (told["decision"], told["rule"]) == ("deny", "base-rule")
    assert place.explain(session, "list_directory", path=str(tmp_path))["decision"] == "allow"


def test_a_link_into_a_denied_directory_is_denied(place: Embedded, tmp_path: Path) -> None:
    write(tmp_path / "project/docs/a.md", "a")
    (tmp_path / "project/in").symlink_to("docs")
    (tmp_path / "project/docs/out").symlink_to("../free.md")
    session = place.open("main", rules=[rule("deny", "docs/**")])
    through = place.explain(session, "edit", file_path="in/a.md")
    assert (through["decision"], through["match"]) == ("deny", "resolved")
    leaving = place.explain(session, "edit", file_path="docs/out")
    assert (leaving["decision"], leaving["match"]) == ("deny", "literal")


def test_a_pattern_through_a_link_means_the_place_too(place: Embedded, tmp_path: Path) -> None:
    """Whoever denies LINK/** means what is there, however it is called."""
    write(tmp_path / "elsewhere/a.md", "a")
    (tmp_path / "project/link").symlink_to(tmp_path / "elsewhere")
    session = place.open("main", rules=[rule("deny", "link/**")])
    found = place.explain(session, "edit", file_path=str(tmp_path / "elsewhere/a.md"))
    assert found["decision"] == "deny"


def test_an_exception_through_a_link_lifts_no_other_denial(place: Embedded, tmp_path: Path) -> None:
    write(tmp_path / "project/secrets/k", "s")
    (tmp_path / "project/docs").mkdir(parents=True)
    (tmp_path / "project/docs/notes").symlink_to("../secrets")
    session = place.open("main", rules=[rule("deny", "secrets/**", "docs/**", "!docs/notes/**")])
    for path in ("secrets/k", "docs/notes/k"):
        assert place.explain(session, "read_file", file_path=path)["decision"] == "deny"


def test_a_place_whose_name_ends_in_a_blank(place: Embedded, tmp_path: Path) -> None:
    write(tmp_path / "project/real /k", "s")
    (tmp_path / "project/x").mkdir()
    (tmp_path / "project/x/sub").symlink_to("../real ")
    session = place.open("main", rules=[rule("deny", "x/sub")])
    for path in ("real /k", "x/sub/k"):
        assert place.explain(session, "read_file", file_path=path)["decision"] == "deny"


def test_a_read_is_decided_again_with_the_roots_of_the_new_scope(
    place: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that takes a root away while a read of it is under way."""
    from pinfold import calls
    from pinfold_protocol.session import ScopePatch, TurnBeginParams

    session = place.open("main", scope={"confineReads": True})
    user = session.roots[1].path
    path = write(f"{user}/a.md", "text")
    check = calls.check  # type: ignore[attr-defined]

    def narrowing(*arguments: Any, **more: Any) -> Any:
        if not place.gateway.sessions.get(session.session_id).turns:
            patch = ScopePatch(user_memory=False, given=("userMemory",))
            place.gateway.begin_turn(TurnBeginParams(session.session_id, scope=patch))
        return check(*arguments, **more)

    monkeypatch.setattr(calls, "check", narrowing)
    assert kind(place.call(session, "read_file", file_path=path)) == "denied"


def test_c201_an_inbox_with_one_allowed_name(place: Embedded, tmp_path: Path) -> None:
    (tmp_path / "project/inbox").mkdir(parents=True)
    (tmp_path / "project/way").symlink_to("inbox")
    session = place.open("main", rules=[rule("deny", "inbox/**", "!inbox/mine.patch")])
    verdicts = {
        path: place.explain(session, "write_file", file_path=path)["decision"]
        for path in ("inbox/x.patch", "way/x.patch", "inbox/mine.patch", "way/mine.patch")
    }
    assert list(verdicts.values()) == ["deny", "deny", "allow", "allow"]


def test_nobody_to_ask_is_a_denial_at_once(place: Embedded) -> None:
    """C189."""
    session = place.open("main", rules=[rule("ask", "*.py")])
    assert place.explain(session, "write_file", file_path="a.py")["decision"] == "ask"
    result = place.call(session, "write_file", file_path="a.py", content="x")
    assert (kind(result), decision(result)["asked"]) == ("denied", "no-approver")
    assert "nobody can be asked" in details(result)["error"]["message"]


def test_bypass_covers_what_is_inside_memory_and_nothing_else(place: Embedded) -> None:
    scope = {"confineWrites": False, "confineReads": False}
    session = place.open("remember", scope=scope, rules=[rule("ask")])
    inside = place.explain(session, "edit", file_path=f"{place.memory}/a.md")
    outside = place.explain(session, "edit", file_path="a.py")
    assert (inside["decision"], inside["rule"]) == ("allow", "base-rule")
    assert outside["decision"] == "ask"


def test_a_rule_on_an_unknown_tool_of_the_host_is_refused(place: Embedded) -> None:
    with pytest.raises(RpcError):
        place.open("main", rules=[rule("deny", tools=("web_fetch",))])


@run_with(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(specs)
def test_pinned_stays_pinned_whatever_a_rule_says(place: Embedded, spec: RuleSpec) -> None:
    session = place.open("dream", rules=[unstructure(spec)])
    found = place.explain(session, "edit", file_path=f"{place.memory}/pinned/a.md")
    assert (found["decision"], found["rule"]) == ("deny", "pinned")
