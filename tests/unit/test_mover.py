"""Between the plan of a move and its carrying out: somebody opens a document."""

from pathlib import Path

import pytest

from pinfold.doors.lsp.client import PIN, path_of, read_client
from pinfold.doors.lsp.context import Opener
from pinfold.doors.lsp.documents import Document, Documents
from pinfold.doors.lsp.listings import Listings
from pinfold.doors.lsp.mover import _move
from pinfold.doors.lsp.moving import left_behind, plan_pin
from pinfold.paths.uri import to_uri
from support import Embedded, read, write

INDEX = "- [T](t.md)\n- [O](o.md)\n"
TOPIC = "---\ntype: user\nname: T\ndescription: D\n---\n\n"


class Desk:
    """A topic, another that links to it, an index; and what is open."""

    def __init__(self, base: Path) -> None:
        embedded = Embedded(base)
        self.memory = Path(embedded.memory)
        self.gateway = embedded.gateway
        self.session = self.gateway.sessions.get(embedded.open().session_id)
        self.documents = Documents()
        self.index = write(self.memory / "MEMORY.md", INDEX)
        self.other = write(self.memory / "o.md", f"{TOPIC}[t](t.md)\n")
        self.topic = write(self.memory / "t.md", f"{TOPIC}[o](o.md)\n")
        self.pinned = str(self.memory / "pinned" / "t.md")

    @property
    def opener(self) -> Opener:
        return Opener(self.gateway, self.session, read_client({}), self.documents, Listings())

    def show(self, path: str, text: str, version: int = 1, *, lost: bool = False) -> None:
        uri = to_uri(path)
        self.documents.put(Document(uri, path_of(uri), version, text, "utf-16", lost=lost))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("typed", ["", "typed\n"])
def test_a_document_that_is_opened_after_the_plan_is_left_to_the_editor(
    desk: Desk, typed: str
) -> None:
    with desk.opener.open(to_uri(desk.topic)) as context:
        assert context is not None
        found = plan_pin(context, PIN)
        assert [mend.document for mend in found.mends] == [None] * 3
        desk.show(desk.index, typed + INDEX, 7)
        (mend,) = _move(context, found)
        assert mend.document is not None and mend.document.version == 7
        assert [change.span.line for change in mend.changes] == [typed.count("\n")]
        assert read(desk.index) == INDEX.encode()
        assert b"[t](pinned/t.md)" in read(desk.other) and b"[o](../o.md)" in read(desk.pinned)
        assert left_behind(context, found, 0) == [desk.index]
        desk.show(desk.index, typed + INDEX.replace("(t.md", "(pinned/t.md"), 8)
        assert left_behind(context, found, 0) == []


def test_a_document_that_is_closed_after_the_plan_is_mended_on_the_disk(desk: Desk) -> None:
    desk.show(desk.index, INDEX)
    with desk.opener.open(to_uri(desk.topic)) as context:
        assert context is not None
        found = plan_pin(context, PIN)
        desk.documents.remove(to_uri(desk.index))
        assert _move(context, found) == []
        assert b"(pinned/t.md)" in read(desk.index)
        assert left_behind(context, found, 0) == []


def test_what_an_editor_shows_unknown_is_not_called_mended(desk: Desk) -> None:
    with desk.opener.open(to_uri(desk.topic)) as context:
        assert context is not None
        found = plan_pin(context, PIN)
        desk.show(desk.index, INDEX, lost=True)
        assert _move(context, found) == []
        assert read(desk.index) == INDEX.encode()
        assert left_behind(context, found, 0) == [desk.index]


def test_one_of_two_names_that_shows_the_old_links_is_told(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(desk.memory)
    with desk.opener.open(to_uri(desk.topic)) as context:
        assert context is not None
        found = plan_pin(context, PIN)
        _move(context, found)
        desk.show(desk.index, read(desk.index).decode())
        assert left_behind(context, found, 0) == []
        desk.show(f"{tmp_path}/alias/MEMORY.md", INDEX)
        assert left_behind(context, found, 0) == [desk.index]
