"""What the language service says, feature by feature: a text and facts in, values out."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.language.complete import complete, complete_topic
from pinfold.language.diagnose import (
    MOST_FINDINGS,
    MOST_LINE_UNITS,
    MOST_LINES,
    MOST_UNITS,
    SEVERITIES,
    diagnose,
)
from pinfold.language.facts import Linked, Where
from pinfold.language.hover import age, hover
from pinfold.language.links import as_target, find_links, resolve
from pinfold.language.matter import read_matter
from pinfold.language.model import Span
from pinfold.language.moves import mended, pinned_place, renamed_place, unpinned_place
from pinfold.language.outline import outline
from pinfold.text.editable import lines_of, without_ending
from pinfold.text.frontmatter import WHY, Topic
from pinfold_protocol.memory import MemoryDocument

DOCS = Path(__file__).parents[2] / "docs" / "language.md"
TOPIC = "---\ntype: user\nname: N\ndescription: D\n---\n\nbody\n"


def lines(text: str) -> list[str]:
    return [without_ending(each) for each in lines_of(text)]


def where(relative: str, **more: Any) -> Where:
    return Where(f"/m/{relative}", more.pop("kind", "project"), "/m", relative, **more)


def found(text: str, place: Where, links: Any = None) -> list[tuple[str, tuple[int, int, int]]]:
    findings = diagnose(text, lines(text), place, links or {})
    return [(each.code, (each.span.line, each.span.start, each.span.end)) for each in findings]


# Diagnostics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TOPIC, []),
        (TOPIC.replace("\n", "\r\n"), []),
        ("", [("frontmatter-missing", (0, 0, 0))]),
        ("# Title\n", [("frontmatter-missing", (0, 0, 7))]),
        ("--- \ntype: user\n---\n", [("frontmatter-missing", (0, 0, 4))]),
        ("\ufeff" + TOPIC, [("frontmatter-mark", (0, 0, 4))]),
        ("---\ntype: user\n", [("frontmatter-unclosed", (0, 0, 3))]),
        ("---\n" + "x" * 70_000 + "\n---\n", [("frontmatter-long", (0, 0, 3))]),
        ("---\nname: N\n---\n", [("type-missing", (0, 0, 3))]),
        ("---\ntype:\n---\n", [("type-missing", (1, 0, 4))]),
        ("---\ntype:  usr \n---\n", [("type-unknown", (1, 7, 10))]),
        ("---\ntype: 😀\n---\n", [("type-unknown", (1, 6, 7))]),
        ("---\ntype: user\n---\n", [("description-missing", (0, 0, 3))]),
        ("---\ntype: user\ndescription:\n---\n", [("description-missing", (2, 0, 11))]),
        (
            "---\ntype: user\ntype: x\ndescription: d\n---\n",
            [("key-repeated", (2, 0, 4))],
        ),
    ],
)
def test_frontmatter(text: str, expected: Any) -> None:
    assert found(text, where("user/x.md")) == expected


def test_a_mark_on_the_disk_counts_although_no_editor_shows_it() -> None:
    assert found(TOPIC, where("x.md", mark=True)) == [("frontmatter-mark", (0, 0, 3))]


def test_an_index_and_other_files_need_no_frontmatter() -> None:
    assert found("hello", where("MEMORY.md")) == []
    assert found("hello", where("sub/MEMORY.md")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n" * MOST_LINES, []),
        ("\n\n" + "x\n" * MOST_LINES + "\n\n", []),  # what an agent sees is trimmed
        ("x\n" * (MOST_LINES + 1), [("index-lines", (MOST_LINES, 0, 1))]),
        (f"{'x' * MOST_LINE_UNITS}\n", []),
        (f"{'x' * (MOST_LINE_UNITS + 1)}\n", [("index-line", (0, 0, MOST_LINE_UNITS + 1))]),
        ("😀" * 76, [("index-line", (0, 0, 76))]),  # two units each
        (f"{'x' * 124}\n" * (MOST_UNITS // 125), []),
        (
            f"{'x' * 124}\n" * (MOST_UNITS // 125) + "abc",
            [("index-lines", (200, 0, 3)), ("index-size", (200, 0, 3))],
        ),
    ],
)
def test_the_limits_of_an_index(text: str, expected: Any) -> None:
    assert found(text, where("MEMORY.md")) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (where("pinned/x.md", pinned="literal"), ["pinned"]),
        (where("x.md", pinned="resolved"), ["pinned"]),
        (where("x.md", pinned="hard-link"), ["pinned-hard-link"]),
        (where("a/pinned/x.md"), ["pinned-nested"]),
        (where("a/Pin\u200bned/x.md"), ["pinned-nested"]),
        (where("pinned/x.md", kind="team"), ["pinned-nested"]),
        (where("pinned-notes/x.md"), []),
        (where("pinned.md"), []),
        (where("x.md", leaves=True), ["document-leaves"]),
    ],
)
def test_where_a_document_is(place: Where, expected: list[str]) -> None:
    assert [code for code, _ in found(TOPIC, place)] == expected


def test_links() -> None:
    text = "- [a](gone.md) [b](here.md) [c](../../out.md) [d](https://x/y.md) [e](#top)\n"
    facts = {
        "gone.md": Linked("/m/gone.md", False, True),
        "here.md": Linked("/m/here.md", True, True),
        "../../out.md": Linked("/out.md", True, False),
    }
    dead, out = ("link-dead", (0, 6, 13)), ("link-leaves", (0, 32, 44))
    assert found(text, where("MEMORY.md"), facts) == [dead, out]
    assert found(TOPIC + text, where("x.md"), facts) == [("link-leaves", (7, 32, 44))]


def test_a_link_to_what_only_looks_pinned() -> None:
    text = "[a](a/pinned/x.md) [b](pinned/x.md)\n"
    facts = {
        "a/pinned/x.md": Linked("/m/a/pinned/x.md", True, True),
        "pinned/x.md": Linked("/m/pinned/x.md", True, True, pinned=True),
    }
    assert found(text, where("MEMORY.md"), facts) == [("pinned-nested", (0, 4, 17))]


def test_findings_are_bounded() -> None:
    text = "x" * 200 + "\n"
    assert len(found(text * 20_000, where("MEMORY.md"))) == MOST_FINDINGS


def test_every_code_has_a_section_and_a_reason_a_code() -> None:
    page = DOCS.read_text("utf-8")
    assert [code for code in SEVERITIES if f'<a id="{code}"></a>' not in page] == []
    assert set(WHY) <= set(SEVERITIES)


@given(st.text("-#`~[]()<>: \n\r\ttypeuserMEMORY.md\ufeff😀", max_size=300))
def test_nothing_that_is_typed_breaks_it(text: str) -> None:
    for place in (where("x.md"), where("MEMORY.md")):
        whole = lines(text)
        for finding in diagnose(text, whole, place, {}):
            assert 0 <= finding.span.start <= finding.span.end <= len(whole[finding.span.line])
        for symbol in outline(whole, place):
            assert symbol.span.line <= symbol.last < len(whole)
        for number, line in enumerate(whole):
            complete(whole, place, number, len(line))


# Links


@pytest.mark.parametrize(
    ("line", "path", "at"),
    [
        ("[t](a.md)", "a.md", (4, 8)),
        ("[t](<a b.md>)", "a b.md", (5, 11)),
        ("[t](a%20b.md)", "a b.md", (4, 12)),
        ('[t](a.md "title")', "a.md", (4, 8)),
        ("[t](a(1).md)", "a(1).md", (4, 11)),
        ("[t](a.md#part)", "a.md", (4, 13)),
        (r"[a\]b](c.md)", "c.md", (7, 11)),
        ("x 😀 [t](a.md)", "a.md", (8, 12)),
        ("[t](a%FFb)", "a\udcffb", (4, 9)),
        ("[t](https://x)", None, (4, 13)),
        ("[t](mailto:x)", None, (4, 12)),
        ("[t](#part)", None, (4, 9)),
        ("[t](a.md (title))", "a.md", (4, 8)),
        ("[t [u] v](a.md)", "a.md", (10, 14)),
        ("[`]` t](a.md)", "a.md", (8, 12)),
        ("`[x](y)` [t](a.md)", "a.md", (13, 17)),
        ("```c``` [t](a.md)", "a.md", (12, 16)),
        ("[t]: a.md", "a.md", (5, 9)),
        ('  [t]: <a b.md> "title"', "a b.md", (8, 14)),
        ("[t](a\ud800.md)", None, (4, 9)),
        ("[t](a%00b)", None, (4, 9)),
    ],
)
def test_a_link(line: str, path: str | None, at: tuple[int, int]) -> None:
    (link,) = find_links([line])
    assert link.path == path
    assert (link.at.start, link.at.end) == at


@pytest.mark.parametrize(
    "text",
    [
        "![t](a.png)",
        "[t] (a.md)",
        "[t](a.md",
        "```\n[t](a.md)\n```",
        "~~~x\n[t](a.md)\n~~\n",
        "[[x]",
        "`[t](a.md)`",
        "`` ` [t](a.md) ``",
        r"\[t](a.md)",
        "[^1]: a.md",
        "[t]: more words",
        "[t]:",
    ],
)
def test_no_link(text: str) -> None:
    assert find_links(text.split("\n")) == []


def test_what_only_begins_like_fenced_code_hides_nothing() -> None:
    (link,) = find_links(["```code``` and", "[t](a.md)"])
    assert link.path == "a.md"
    assert [each.name for each in outline(["```code``` and", "# h"], where("x.md"))] == ["h"]


def test_a_hostile_line_costs_no_more_than_its_length() -> None:
    for piece in ("`", "`[``", "[[a]", "[a]:", "[", "[a](", "](", "[a](<", "((", '[a](b "'):
        find_links([piece * 5000 + "]("])


@given(st.from_regex(r"/m(/[a-z %#()é]{1,5}){1,4}", fullmatch=True), st.sampled_from("ab"))
def test_a_written_link_leads_back(path: str, other: str) -> None:
    document = f"/m/{other}/x.md"
    (link,) = find_links([f"[t]({as_target(document, path)})"])
    assert resolve(document, link.path or "") == path


# Moves


@pytest.mark.parametrize(
    ("place", "pinned", "unpinned"),
    [
        (where("a/x.md"), "/m/pinned/a/x.md", None),
        (where("pinned/a/x.md", pinned="literal"), None, "/m/a/x.md"),
        (where("x.md", pinned="resolved"), None, None),
        (where("x.md", leaves=True), None, None),
        (where("MEMORY.md"), None, None),
        (where("x.txt"), None, None),
        (where("x.md", kind="team"), None, None),
        (where("pinned/x.md", kind="team"), None, None),
    ],
)
def test_where_a_topic_goes(place: Where, pinned: str | None, unpinned: str | None) -> None:
    assert pinned_place(place) == pinned
    assert unpinned_place(place) == unpinned


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("b", "/m/b.md"),
        (" a/b.md ", "/m/a/b.md"),
        ("a b", "/m/a b.md"),
        ("", None),
        ("/x.md", None),
        ("../x.md", None),
        ("a/../../x.md", None),
        ("MEMORY.md", None),
        ("a/", None),
        ("a\ud800", None),
        ("a\nb", None),
        ("a\0b", None),
    ],
)
def test_a_new_name(name: str, path: str | None) -> None:
    assert renamed_place("/m", name) == path


@pytest.mark.parametrize(
    ("document", "old", "new", "text", "after"),
    [
        ("/m/MEMORY.md", "/m/a.md", "/m/pinned/a.md", "[x](a.md)", "pinned/a.md"),
        ("/m/MEMORY.md", "/m/a.md", "/m/b c.md", "[x](<./a.md>)", "b%20c.md"),
        ("/m/t/b.md", "/m/a.md", "/m/pinned/a.md", "[x](../a.md#y)", "../pinned/a.md#y"),
        ("/m/a.md", "/m/a.md", "/m/pinned/a.md", "[x](t/b.md)", "../t/b.md"),
        ("/m/a.md", "/m/a.md", "/m/b.md", "[x](a.md)", "b.md"),
        ("/m/a.md", "/m/a.md", "/m/b.md", "[x](c.md)", None),
        ("/m/MEMORY.md", "/m/a.md", "/m/b.md", "[x]: a.md", "b.md"),
        ("/m/MEMORY.md", "/m/a.md", "/m/b.md", "[x](a.md?raw#y)", "b.md?raw#y"),
        ("/m/MEMORY.md", "/m/a.md", "/m/b.md", "[x](c.md) [y](https://a.md) [z](/m/a.md)", None),
    ],
)
def test_links_follow(document: str, old: str, new: str, text: str, after: str | None) -> None:
    changes = mended([text], document, old, new)
    assert [each.text for each in changes] == ([] if after is None else [after])


# The rest


def test_matter() -> None:
    matter = read_matter(["---", "type:  a b ", "- x: 1", "# c: 2", "n:", "---", "y: 3"])
    assert matter is not None
    assert [(each.key, each.value, each.value_at) for each in matter.entries] == [
        ("type", "a b", Span(1, 7, 10)),
        ("n", "", Span(4, 2, 2)),
    ]
    assert matter.end == 5


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "in the future"), (0, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"),
     (86_400, "1 day ago"), (40 * 86_400, "1 month ago"), (800 * 86_400, "2 years ago")],
)  # fmt: skip
def test_age(seconds: int, words: str) -> None:
    assert age(0, seconds * 1_000_000_000) == words


def test_hover() -> None:
    topic = Topic("user", "A *b*", "<c>")
    linked = Linked("/m/a.md", True, True, True, topic, 0)
    plain = hover(linked, 0, markdown=False)
    assert plain.startswith("A *b*\n\n<c>\n\nuser · changed just now · pinned")
    assert hover(linked, 0, markdown=True).startswith("**A \\*b\\***\n\n\\<c\\>\n\n")
    assert hover(Linked("/m/a.md", False, True), 0, markdown=True) == "There is no such file."
    outside = Linked("/a.md", True, False, topic=topic)
    assert "A" not in hover(outside, 0, markdown=False)


@pytest.mark.parametrize(
    ("text", "line", "column", "labels"),
    [
        ("---\n\n---\n", 1, 0, ["type", "name", "description"]),
        ("---\ntype: user\nna\n---\n", 2, 2, ["name", "description"]),
        ("---\ntype: \n---\n", 1, 6, ["user", "feedback", "project", "reference"]),
        ("---\ntype:\n", 1, 5, ["user", "feedback", "project", "reference"]),
        ("---\nname: \n---\n", 1, 6, []),
        ("---\n---\n\n", 2, 0, []),
        ("x\n", 0, 1, []),
        ("---\n", 9, 0, ["type", "name", "description"]),
    ],
)
def test_completion_in_frontmatter(text: str, line: int, column: int, labels: list[str]) -> None:
    proposals = complete(lines(text), where("x.md"), line, column)
    assert proposals is not None
    assert [each.label for each in proposals] == labels


@pytest.mark.parametrize(
    ("line", "column", "text"),
    [
        ("- [A](", 6, "- [A](a%20b/t.md"),
        ("- [A](us)", 8, "- [A](a%20b/t.md)"),
        ("- ", 2, "- [T (x)](a%20b/t.md) — D"),
        ("- [", 3, "- [T (x)](a%20b/t.md) — D"),
        ("- []", 3, "- [T (x)](a%20b/t.md) — D"),
        ("x", 1, None),
    ],
)
def test_completion_of_topics(line: str, column: int, text: str | None) -> None:
    topic = MemoryDocument(
        "project", "/m/a b/t.md", "a b/t.md", "user", "T [x]", "D", False, 1, "1970"
    )
    place = where("MEMORY.md")
    if text is None:
        assert complete([line], place, 0, column) == []
        return
    assert complete([line], place, 0, column) is None
    (proposal,) = complete_topic([line], place, 0, column, [topic])
    change = proposal.change
    assert line[: change.span.start] + change.text + line[change.span.end :] == text


def test_outline() -> None:
    text = "---\nname: N\n---\n# A\n## B ##\n```\n# no\n```\ntext\n# C\n"
    symbols = outline(lines(text), where("x.md"))
    assert [(each.name, each.span.line, each.last) for each in symbols] == [
        ("N", 0, 2), ("A", 3, 8), ("B", 4, 8), ("C", 9, 10),
    ]  # fmt: skip
    index = outline(["# I", "- [A](a.md) [B](b.md)"], where("MEMORY.md"))
    assert [each.name for each in index] == ["I", "A", "B"]
