"""The open documents: found by file, waited for from another thread."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from pinfold.doors.lsp.client import path_of
from pinfold.doors.lsp.documents import Document, Documents
from pinfold.paths.opened import identity
from support import DEADLINE, write


def document(uri: str, version: int = 1, text: str = "") -> Document:
    return Document(uri, path_of(uri), version, text, "utf-16")


def test_a_document_is_found_by_its_file_whatever_leads_there(tmp_path: Path) -> None:
    path = write(tmp_path / "real" / "x.md", "x")
    os.symlink("real", tmp_path / "alias")
    os.link(path, tmp_path / "twin.md")
    documents = Documents()
    alias = document(f"file://{tmp_path}/alias/x.md")
    for uri in ("untitled:x", "file:///gone.md", "file:///%00"):
        documents.put(document(uri))
    assert documents.find_path(path, identity(os.stat(path))) is None
    documents.put(alias)
    assert documents.find_path(path) is None  # not by that name
    assert documents.find_path(path, identity(os.stat(path))) is alias
    assert documents.find_path(str(tmp_path / "twin.md"), identity(os.stat(path))) is alias
    assert documents.find_path(f"{tmp_path}/alias/x.md") is alias
    assert documents.find_path(None, None) is None


def test_a_document_is_found_by_any_spelling_of_its_uri() -> None:
    documents = Documents()
    opened = document("file:///a%20b.md")
    documents.put(opened)
    for spelling in ("file:///%61%20b.md", "file://localhost/a%20b.md", "FILE:///a%20b.md"):
        assert documents.get(spelling) is opened
    documents.remove("FILE:///a%20b.md")
    assert documents.all() == []


def test_every_spelling_that_is_open_stays_until_it_is_closed() -> None:
    """Closing one of them must not uncover the disk beneath the other."""
    documents = Documents()
    one, other = document("file:///x", text="one"), document("file://localhost/x", text="other")
    documents.put(one)
    documents.put(other)
    assert documents.behind("/x") == [one, other]
    assert documents.get("FILE:///x") is None  # which of them is not known
    documents.remove("FILE:///x")
    assert documents.all() == [one, other]
    documents.remove(one.uri)
    assert documents.all() == [other]
    documents.remove("FILE:///x")
    assert documents.all() == []


def test_listeners_hear_what_was_and_what_is() -> None:
    heard: list[tuple[int | None, int | None]] = []
    documents = Documents()

    def version(found: Document | None) -> int | None:
        return None if found is None else found.version

    documents.listen(lambda before, now: heard.append((version(before), version(now))))
    documents.put(document("file:///x"))
    documents.put(document("file:///x", 2))
    documents.lose("file:///x")
    documents.lose("file:///nobody")
    documents.remove("file:///x")
    documents.remove("file:///x")
    assert heard == [(None, 1), (1, 2), (2, 2), (2, None)]


def test_waiting_ends_with_the_version_the_closing_the_time_or_the_end() -> None:
    documents = Documents()

    def newer_or_closed() -> bool:
        looked.set()
        found = documents.get("file:///x")
        return found is None or (found.version or 0) > 1

    def waited(act: Callable[[], None]) -> bool:
        documents.put(document("file:///x"))
        looked.clear()
        outcome: list[bool] = []
        thread = threading.Thread(
            target=lambda: outcome.append(documents.wait(newer_or_closed, DEADLINE))
        )
        thread.start()
        assert looked.wait(DEADLINE)
        act()
        thread.join(DEADLINE)
        return outcome[0]

    looked = threading.Event()
    assert waited(lambda: documents.put(document("file:///x", 2)))
    assert waited(lambda: documents.remove("file:///x"))
    documents.put(document("file:///x"))
    assert not documents.wait(newer_or_closed, 0)
    assert not waited(documents.end)
    assert not documents.wait(newer_or_closed, DEADLINE)  # nobody begins to wait any more


def test_a_missed_change_is_said() -> None:
    documents = Documents()
    documents.put(document("file:///x", text="before"))
    documents.lose("file:///x")
    found = documents.get("file:///x")
    assert found == msgspec.structs.replace(document("file:///x", text="before"), lost=True)
