"""What MkDocs does not do by itself: pages from outside `docs/`, and a code host's anchors.

Pages are written for a code host, with relative links into the whole repository. Here the links
that leave `docs/` are turned to where the site has that page; what the site does not have is
shown as plain text, since no public address is known.
"""

import os
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pages import ROOT, slug

# Path in the repository → path in the site. What is not there yet is left out.
ADOPTED = {
    "protocol/README.md": "protocol.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
# The site's own way in says what README says.
_SAME = {"README.md": "index.md"}
_FIRST = 5  # before MkDocs' own look at relative links, which has priority 0


def site_path(path: str) -> str | None:
    """Where the site has the file at this path of the repository, or None."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return (ADOPTED | _SAME).get(path)


def repository_path(site: str) -> str:
    """The other way round, for a page."""
    return {there: here for here, there in ADOPTED.items()}.get(site, f"docs/{site}")


class _Turn(Treeprocessor):
    """Turns the links of one page. `page` is its path in the repository."""

    page = ""

    def run(self, root: Element) -> None:
        for element in root.iter():
            for name in ("href", "src"):
                target = element.get(name)
                if target and not target.startswith(("#", "/")) and "://" not in target:
                    self._turn(element, name, target)

    def _turn(self, element: Element, name: str, target: str) -> None:
        path, mark, anchor = target.partition("#")
        wanted = os.path.normpath(os.path.join(os.path.dirname(self.page), path))
        found = site_path(wanted)
        if found is None:
            element.tag = "span"
            del element.attrib[name]
            return
        here = site_path(self.page)
        assert here is not None
        element.set(name, os.path.relpath(found, os.path.dirname(here) or ".") + mark + anchor)


class _Turning(Extension):
    def __init__(self) -> None:
        super().__init__()
        self.turn = _Turn()

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name is Python-Markdown's
        md.treeprocessors.register(self.turn, "pinfold-turn", _FIRST)


_turning = _Turning()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Called by MkDocs: anchors as a code host makes them."""
    config.markdown_extensions.append(_turning)
    config.mdx_configs["toc"] = {"permalink": True, "slugify": _slugify}
    return config


def _slugify(text: str, _separator: str) -> str:
    return slug(text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs: take in the pages from outside."""
    for here, there in ADOPTED.items():
        if (ROOT / here).is_file():
            files.append(File.generated(config, there, abs_src_path=str(ROOT / here)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Called by MkDocs, right before a page is rendered."""
    _turning.turn.page = repository_path(page.file.src_uri)
    return markdown
