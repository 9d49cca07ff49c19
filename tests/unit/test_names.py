"""How a deny compares names, and how containment does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinfold.policy import names

RESERVED = [
    "pinned", "PINNED", "Pinned", "pinned.", "pinned ", "pinned . .", "pinned\t", "pinned\u00a0",
    "pinned:", "pinned:x", "pinned::$DATA", "pinned.:x", "PINNED :stream", "._pinned", "._Pinned.",
    "pin\u200bned", "pin\u200cned", "\ufeffpinned", "pinned\ufe0f", "p\u00adinned", "pinned\U000e0001",
    "\u2060pinned", "pınned", "p\u0131nned", "PINNED\u200d.", "pi\u034fnned", "._._pinned",
]  # fmt: skip
ORDINARY = [
    "pinned-notes", "pinned.md", ".pinned", "unpinned", "pinne", "pinnedd", "pinned notes", " pinned",
    "ｐｉｎｎｅｄ", "pinned: notes", "pin.ned", "pin ned", "_pinned", ".", "..", "", "рinned", "pi\u0301nned",
    ":pinned", "x:pinned",
]  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_names_that_may_mean_the_reserved_directory_somewhere(name: str) -> None:
    assert names.same(name, "pinned")


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names(name: str) -> None:
    assert not names.same(name, "pinned")


def test_other_names_are_compared_the_same_way() -> None:
    assert names.same("r\u00e8gle.md", "re\u0300gle.md")
    assert names.same("Straße", "STRASSE")
    assert names.same("ſhared", "SHARED")
    assert not names.same("a", "b")


@given(st.text(max_size=8), st.text(max_size=8))
def test_sameness_is_symmetric_and_reflexive(a: str, b: str) -> None:
    assert names.same(a, b) is names.same(b, a)
    assert names.same(a, a) and names.same(a, a.upper())


@pytest.mark.parametrize(
    ("path", "folded"),
    [
        ("/", "/"),
        ("//", "/"),
        ("/a/./b/../c/", "/a/c"),
        ("/../../a", "/a"),
        ("/a//b", "/a/b"),
        ("/...", "/..."),
    ],
)
def test_dots_are_folded_as_text(path: str, folded: str) -> None:
    assert names.collapse(path) == folded


@pytest.mark.parametrize(
    ("path", "base", "inside"),
    [
        ("/a/b", "/a", ("b",)),
        ("/a", "/a", ()),
        ("/ab", "/a", None),
        ("/A/b", "/a", None),
        ("/", "/", ()),
        ("/a", "/", ("a",)),
        ("/a/..b/c", "/a", ("..b", "c")),
    ],
)
def test_containment_is_exact(path: str, base: str, inside: tuple[str, ...] | None) -> None:
    assert names.below(path, base) == inside


@given(st.text(st.characters(max_codepoint=127), max_size=12))
def test_plain_names_take_a_shorter_way_to_the_same_end(name: str) -> None:
    """As they fold next to something that is dropped, which takes the long way."""
    assert names.folds(name) == names.folds(f"\u200b{name}")
