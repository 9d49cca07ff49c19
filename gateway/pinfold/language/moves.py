"""Moving a document: where to, and which links have to follow."""

from collections.abc import Sequence

from pinfold.language.diagnose import is_topic
from pinfold.language.facts import Where
from pinfold.language.links import as_target, find_links, is_nameable, resolve
from pinfold.language.model import Change
from pinfold.policy.names import RESERVED, collapse, split


def pinned_place(where: Where) -> str | None:
    """Where a topic goes to be pinned: below `pinned/`, by the path that it has. None where it is
    pinned, or its root has no reserved directory."""
    if not is_topic(where) or where.kind == "team" or where.leaves or where.pinned is not None:
        return None
    return f"{where.root}/{RESERVED}/{where.relative}"


def unpinned_place(where: Where) -> str | None:
    """The way back. None for what is not below `pinned/` by its own name."""
    names = split(where.relative)
    if not is_topic(where) or where.kind == "team" or len(names) < 2 or names[0] != RESERVED:
        return None
    return f"{where.root}/{'/'.join(names[1:])}"


def renamed_place(root: str, new_name: str) -> str | None:
    """The path that a new name below a root means; None where it is none of a topic's."""
    name = new_name.strip()
    if not name or name.startswith("/") or name.endswith("/") or not is_nameable(name):
        return None
    if any(ord(each) < 32 for each in name):
        return None
    path = collapse(f"{root}/{name if name.endswith('.md') else f'{name}.md'}")
    inside = path.startswith(f"{root}/") and ".." not in name.split("/")
    return path if inside and path.rpartition("/")[2] != "MEMORY.md" else None


def mended(lines: Sequence[str], document: str, old: str, new: str) -> list[Change]:
    """The changes that keep the links of `document` when the file at `old` moves to `new`: of links
    to it, and, where the document is itself what moves, of links from it."""
    moves = document == old
    after = new if moves else document
    changes: list[Change] = []
    for link in find_links(lines):
        if link.path is None or link.path.startswith("/"):
            continue
        leads = resolve(document, link.path)
        wanted = new if leads == old else leads
        if leads == old or (moves and resolve(after, link.path) != leads):
            changes.append(Change(link.at, as_target(after, wanted) + link.fragment))
    return changes
