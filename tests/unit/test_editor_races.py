"""Between two looks of the editor backend: somebody opens, types, closes, links or writes there."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pinfold.backends.buffers import Document, Pending, Progress
from pinfold.backends.settle import settle
from pinfold.calls import Cancelled, Ticket
from pinfold.paths.errors import ChangedUnderfoot
from pinfold.text.codec import Splice
from pinfold.text.intent import intend
from pinfold.text.minimal import spliced
from pinfold_protocol.session import Limits
from pinfold_protocol.tools import ToolsCallParams
from support import Bench, details, kind, read, remove, write

OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"
CHANGE = {"old_string": "two", "new_string": "TWO"}


class Notes:
    """What is told of an edit, in order; nothing more comes after that."""

    def __init__(self, *news: Progress) -> None:
        self._news = list(news)
        self.withdrawn = False

    def wait(self, seconds: float) -> Progress:
        return self._news.pop(0) if self._news else Progress(over="lost")

    def withdraw(self) -> None:
        self.withdrawn = True


class DictEditor:
    """An editor that applies every edit at once. `before_look` is called before each look at what
    is open, with how many there were."""

    def __init__(self) -> None:
        self.shown: dict[str, Document] = {}
        self.before_look: Callable[[int], None] = lambda count: None
        self.before_edit: Callable[[], None] = lambda: None
        self.looks = self.edits = 0

    def show(self, path: str, text: str) -> None:
        uri = "file://" + path
        found = self.shown.get(uri)
        version = 1 if found is None else (found.version or 0) + 1
        opened = text if found is None else found.opened
        self.shown[uri] = Document(uri, path, version, text, opened, 0)

    def text(self, path: str) -> str | None:
        found = self.shown.get("file://" + path)
        return None if found is None else found.text

    def documents(self) -> Sequence[Document]:
        self.looks += 1
        self.before_look(self.looks)
        return list(self.shown.values())

    def same_as_disk(self, document: Document, since: int) -> None:
        self.shown[document.uri] = msgspec.structs.replace(
            document, opened=document.text, since=since
        )

    @contextmanager
    def edit(self, document: Document, splices: tuple[Splice, ...]) -> Iterator[Pending]:
        self.before_edit()
        found = self.shown.get(document.uri)
        if found != document:
            raise ChangedUnderfoot(document.path)
        self.edits += 1
        self.show(document.path, spliced(document.text, splices))
        yield Notes(Progress((self.shown[document.uri],)))


class Desk(Bench):
    """A bench with an editor on it."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.editor = DictEditor()
        self.place.gateway.attach_editor(self.editor)
        self.place.gateway.limits = Limits(editor_seconds=1)
        self.agent = self.place.open("main", backend="editor")
        self.dreamer = self.place.open("dream", backend="editor")

    def edit(self, path: str, session: Any = None) -> dict[str, Any]:
        return self.place.call(session or self.agent, "edit", file_path=path, **CHANGE)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("moment", ["opened", "written", "decided"])
def test_a_file_that_is_opened_meanwhile_is_changed_there(desk: Desk, moment: str) -> None:
    path = write(f"{desk.memory}/t.md", OLD)

    def opens() -> None:
        desk.editor.show(path, OLD)
        desk.editor.show(path, "unsaved two\n")

    desk.seam.at(moment, opens)
    made = desk.edit(path)
    assert kind(made) is None and details(made)["source"] == "buffer"
    assert desk.editor.text(path) == "unsaved TWO\n" and read(path) == OLD.encode()
    assert sorted(os.listdir(desk.memory)) == ["pinned", "t.md"]


@pytest.mark.parametrize("moment", ["written", "decided"])
def test_a_file_that_is_made_is_opened_meanwhile(desk: Desk, moment: str) -> None:
    path = f"{desk.memory}/new/t.md"
    desk.seam.at(moment, lambda: desk.editor.show(path, "typed\n"))
    made = desk.place.call(desk.agent, "write_file", file_path=path, content="mine\n")
    assert kind(made) is None and details(made)["source"] == "buffer"
    assert desk.editor.text(path) == "mine\n" and not os.path.exists(os.path.dirname(path))


@pytest.mark.parametrize("look", range(2, 8))
@pytest.mark.parametrize("what", ["types", "types there", "closes", "writes", "links"])
def test_whatever_happens_between_two_looks(desk: Desk, what: str, look: int) -> None:
    """The edit is made once, where it belongs then, or refused; nobody's text is lost."""
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    actions: dict[str, Callable[[], None]] = {
        "types": lambda: desk.editor.show(path, OLD + "four\n"),
        "types there": lambda: desk.editor.show(path, "one\nTOO\nthree\n"),
        "closes": lambda: remove_shown(desk, path),
        "writes": lambda: replace(path, "two on disk\n"),
        "links": lambda: link(path, desk.pinned),
    }
    happened = []

    def meanwhile(count: int) -> None:
        if count == look:
            happened.append(what)
            actions[what]()

    desk.editor.before_look = meanwhile
    made = desk.edit(path, desk.dreamer)
    shown = desk.editor.text(path)
    assert read(desk.pinned) == b"curated"
    if kind(made) is None:
        assert desk.editor.edits + (details(made)["source"] == "disk") == 1
    outcomes: dict[str, list[str | None]] = {
        "types": [(OLD + "four\n").replace("two", "TWO")],
        "types there": ["one\nTOO\nthree\n"],
        "closes": [None],
        "writes": [OLD, NEW],
        "links": [OLD, NEW],
    }
    assert shown in (outcomes[what] if happened else [NEW]), (shown, kind(made))
    assert (
        kind(made)
        in {
            "types": (None,),
            "types there": (None, "no-match"),
            "closes": (None,),
            "writes": (None, "stale"),
            "links": (None, "denied"),
        }[what]
    )


def remove_shown(desk: Desk, path: str) -> None:
    desk.editor.shown.pop("file://" + path, None)


def replace(path: str, text: str) -> None:
    write(path + ".new", text)
    os.rename(path + ".new", path)


def link(path: str, target: str) -> None:
    remove(path)
    os.symlink(target, path)


@pytest.mark.parametrize("look", [2, 3, 4])
def test_what_was_unsaved_in_a_document_that_is_closed_does_not_reach_the_disk(
    desk: Desk, look: int
) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    desk.editor.show(path, "unsaved two\n")
    desk.editor.before_look = lambda count: remove_shown(desk, path) if count == look else None
    assert kind(desk.edit(path)) is None
    assert read(path) == NEW.encode() and desk.editor.edits == 0


def test_typing_between_the_last_look_and_the_edit_is_looked_at_again(desk: Desk) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)

    def once() -> None:
        desk.editor.before_edit = lambda: None
        desk.editor.show(path, "zero\n" + OLD)

    desk.editor.before_edit = once
    assert kind(desk.edit(path)) is None
    assert desk.editor.text(path) == "zero\n" + NEW and desk.editor.edits == 1


def test_somebody_who_never_stops_typing_is_not_typed_over(desk: Desk) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    desk.editor.before_edit = lambda: desk.editor.show(path, (desk.editor.text(path) or "") + ".")
    assert kind(desk.edit(path)) == "changed-underfoot" and desk.editor.edits == 0


def test_a_scope_that_narrows_before_the_edit_is_sent_denies_it(desk: Desk) -> None:
    path = write(f"{desk.memory}/pinned/q.md", OLD)
    desk.editor.show(path, OLD)
    session = desk.place.gateway.sessions.get(desk.agent.session_id)
    desk.editor.before_look = lambda count: (
        session.begin_turn("t", "dream", None) if count == 3 else None
    )
    assert kind(desk.edit(path)) == "denied" and desk.editor.edits == 0


def test_a_call_that_is_cancelled_before_it_is_sent_sends_nothing(desk: Desk) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    ticket = Ticket()

    def cancels(count: int) -> None:
        if count == 2:
            ticket.cancel()

    desk.editor.before_look = cancels
    params = ToolsCallParams(desk.agent.session_id, "edit", {"file_path": path, **CHANGE})
    with pytest.raises(Cancelled):
        desk.place.gateway.call(params, ticket)
    assert desk.editor.edits == 0 and desk.editor.text(path) == OLD
    desk.editor.before_look = lambda count: None
    later = Ticket()
    seen: list[bool] = []
    desk.editor.before_edit = lambda: seen.append(later.cancel())
    desk.place.gateway.call(params, later)
    assert seen == [False] and desk.editor.text(path) == NEW


def test_the_last_look_at_what_is_open_comes_after_the_last_decision(desk: Desk) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    ticket = Ticket()
    looks: list[bool] = []

    def look(count: int) -> None:
        looks.append(ticket.published)
        if ticket.published and not os.path.islink(path):
            link(path, desk.pinned)

    desk.editor.before_look = look
    params = ToolsCallParams(desk.dreamer.session_id, "edit", {"file_path": path, **CHANGE})
    result = desk.place.gateway.call(params, ticket)
    assert result.is_error and result.meta["pinfold/details"]["error"]["kind"] == "denied"
    assert looks[:4] == [False, False, False, True] and desk.editor.edits == 0


def test_a_local_session_waits_for_an_edit_of_the_same_file(desk: Desk) -> None:
    path = write(f"{desk.memory}/t.md", OLD)
    desk.editor.show(path, OLD)
    order: list[str] = []
    local = threading.Thread(
        target=lambda: order.append(str(kind(desk.write(path, "x\n", desk.main))))
    )

    def begins() -> None:
        local.start()
        order.append("edit")

    desk.editor.before_edit = begins
    assert kind(desk.edit(path)) is None
    order.insert(1, "made") if order == ["edit"] else order.append("made")
    local.join()
    assert order[0] == "edit" and desk.editor.text(path) == NEW and read(path) == b"x\n"


SETTLED = [
    # what is told, the kind of the error, whether it says that nothing was changed
    ([Progress(reply="refused", reason="x"), Progress(over="lost")], "backend", None),
    ([Progress(over="closed")], "backend", None),
    ([Progress(over="lost")], "backend", None),
    ([Progress(reply="applied"), Progress(over="closed")], "backend", None),
]


@pytest.mark.parametrize(("news", "failure", "untouched"), SETTLED)
def test_an_end_that_leaves_it_open_says_so(
    news: list[Progress], failure: str, untouched: bool | None
) -> None:
    outcome = settle(intend(OLD, NEW), Notes(*news), 5)
    error = outcome.error("t.md")
    assert error is not None and error.kind == failure and error.data == {"applied": untouched}


def version(number: int, text: str, *, lost: bool = False) -> Progress:
    return Progress((Document("u", "/u", number, text, OLD, 0, lost),))


@pytest.mark.parametrize(
    ("news", "seen"),
    [
        ([version(2, NEW)], 2),
        ([Progress(reply="refused"), version(2, NEW)], 2),
        ([version(2, OLD + "x"), version(3, NEW + "x")], 3),
        ([version(2, "one\nTW\nthree\n"), version(3, NEW)], 3),
        ([version(2, OLD, lost=True), version(3, NEW)], 3),
        ([Progress((*version(2, NEW).versions, *version(3, OLD).versions))], 2),  # and undone
        ([version(2, NEW + "typed"), version(3, OLD)], 2),
        ([version(2, OLD), Progress(over="closed")], None),
    ],
)
def test_the_first_version_that_shows_it_counts(news: list[Progress], seen: int | None) -> None:
    outcome = settle(intend(OLD, NEW), Notes(*news), 5)
    assert outcome.version == seen and (outcome.error("t") is None) == (seen is not None)
