"""The open documents: found by file, waited for from another thread."""

import os
import threading
from pathlib import Path

import attrs
import pytest

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


def test_spellings_of_a_uri_are_one_document() -> None:
    documents = Documents()
    documents.put(document("file:///a%20b.md", 1))
    documents.put(document("file:///%61 b.md".replace(" ", "%20"), 2))
    assert [each.version for each in documents.all()] == [2]
    documents.remove("FILE:///a%20b.md")
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
    documents.put(document("file:///x"))

    def later(found: Document | None) -> bool:
        return found is None or (found.version or 0) > 1

    def waited(act: object) -> object:
        outcome: list[object] = []

        def wait() -> None:
            started.set()
            try:
                outcome.append(documents.wait_for("file:///x", later, DEADLINE))
            except TimeoutError as error:
                outcome.append(error)

        started = threading.Event()
        thread = threading.Thread(target=wait)
        thread.start()
        started.wait(DEADLINE)
        act()  # type: ignore[operator]
        thread.join(DEADLINE)
        return outcome[0]

    newer = document("file:///x", 2)
    assert waited(lambda: documents.put(newer)) is newer
    documents.put(document("file:///x"))
    assert waited(lambda: documents.remove("file:///x")) is None
    documents.put(document("file:///x"))
    with pytest.raises(TimeoutError):
        documents.wait_for("file:///x", later, 0)
    assert isinstance(waited(documents.end), TimeoutError)
    with pytest.raises(TimeoutError):  # nobody begins to wait any more
        documents.wait_for("file:///x", later, DEADLINE)


def test_a_missed_change_is_said() -> None:
    documents = Documents()
    documents.put(document("file:///x", text="before"))
    documents.lose("file:///x")
    found = documents.get("file:///x")
    assert found == attrs.evolve(document("file:///x", text="before"), lost=True)
