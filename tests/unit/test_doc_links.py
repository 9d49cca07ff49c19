"""Every relative link of a page leads to a file that is there, every anchor to a heading."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import pages
from pages import Page

SOURCES = pages.sources()


def broken(page: Page, root: Path, load: Callable[[str], Page]) -> Iterator[str]:
    """What is wrong with each link of a page, with its place."""
    for link in page.links:
        problem = _problem(page, link.target, root, load)
        if problem:
            yield f"{page.path}:{link.line}: {link.target}: {problem}"


def _problem(page: Page, target: str, root: Path, load: Callable[[str], Page]) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    if parts.path.startswith("/"):
        return "an absolute path leads nowhere on a code host"
    path = page.path
    if parts.path:
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), unquote(parts.path)))
        if path.startswith(".."):
            return "leaves the repository"
        if not _is_there(root, path):
            return "there is no such file"
    anchor = unquote(parts.fragment)
    if not anchor or not path.endswith(".md"):
        return None
    there = page if path == page.path else load(path)
    return None if anchor in there.anchors else f"{path} has no such anchor"


def _is_there(root: Path, path: str) -> bool:
    """With exactly these letters, also where the file system would fold them."""
    at = root
    for part in Path(path).parts:
        if not at.is_dir() or part not in os.listdir(at):
            return False
        at = at / part
    return True


def test_the_page_that_is_installed_leads_out_to_no_other() -> None:
    alone = pages.load("docs/language.md")
    assert [link.target for link in alone.links if not link.target.startswith("#")] == []


def test_pages_are_found() -> None:
    assert {"README.md", "docs/index.md", "docs/editors/vim.md", "protocol/README.md"} <= set(
        SOURCES
    )
    assert not any("node_modules" in source for source in SOURCES)


@pytest.mark.parametrize("source", SOURCES)
def test_links_and_anchors(source: str) -> None:
    assert list(broken(pages.load(source), pages.ROOT, pages.load)) == []


BROKEN = {
    "[a](missing.md)": "there is no such file",
    "![a](missing.svg)": "there is no such file",
    "[a](OTHER.md)": "there is no such file",
    "[a](other.md/x)": "there is no such file",
    "[a](#nowhere)": "docs/page.md has no such anchor",
    "[a](other.md#Nowhere)": "docs/other.md has no such anchor",
    "[a](../../x.md)": "leaves the repository",
    "[a](/docs/other.md)": "an absolute path leads nowhere on a code host",
    "[a][b]\n\n[b]: missing.md": "there is no such file",
    '<img src="missing.png">': "there is no such file",
    'So <a href="#nowhere">a</a>': "docs/page.md has no such anchor",
    "| a |\n| --- |\n| [a](missing.md) |": "there is no such file",
    "- x\n  - [a](missing.md)": "there is no such file",
}
WHOLE = (
    "[a](other.md)",
    "[a](other.md#two-words-v10)",
    "[a](other.md#twice-1)",
    "[a](other.md#told)",
    "[a](#here)\n\n# Here",
    "[a](../docs/)",
    "[a](https://example.org/missing.md#x)",
    "`[a](missing.md)`",
    "```\n[a](missing.md)\n```",
    "<!-- [a](missing.md) -->",
)


@pytest.mark.parametrize("text", [*BROKEN, *WHOLE])
def test_a_broken_page_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    other = "# Two *words*, `v1.0`\n\n# Twice\n\n# Twice\n\n<a id='told'></a>\n"
    (tmp_path / "docs/other.md").write_text(other)
    page = pages.parse("docs/page.md", f"x\n\n{text}\n")
    found = list(broken(page, tmp_path, lambda path: pages.load(path, tmp_path)))
    expected = [BROKEN[text]] if text in BROKEN else []
    assert [each.rpartition(": ")[2] for each in found] == expected
    assert all(each.startswith("docs/page.md:") for each in found)


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("2. Sessions and turns", "2-sessions-and-turns"),
        ("Or keep the host's own tools: a hook", "or-keep-the-hosts-own-tools-a-hook"),
        ("A — dash", "a--dash"),
        ("snake_case/path", "snake_casepath"),
        ("Größe ✓", "größe-"),
        ("½ of `x`", "-of-x"),
    ],
)
def test_a_slug_is_a_code_hosts(heading: str, anchor: str) -> None:
    assert pages.parse("x.md", f"## {heading}\n").anchors == {anchor}
