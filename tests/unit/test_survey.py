"""Where a document stands, and what links lead to, on a real tree."""

import os
from pathlib import Path
from typing import Any

import pytest

from pinfold import library
from pinfold.language.facts import Linked, Where
from pinfold.memory import roots as roots_module
from support import Embedded, write

TOPIC = "---\ntype: user\nname: N\n---\n"


def where(place: Embedded, path: str) -> Where | None:
    session = place.gateway.sessions.get(place.open().session_id)
    with library.survey(place.gateway, session) as survey:
        return survey.where(path)


def linked(place: Embedded, path: str, *targets: str) -> list[Linked]:
    session = place.gateway.sessions.get(place.open().session_id)
    with library.survey(place.gateway, session) as survey:
        document = survey.where(path)
        assert document is not None
        return list(survey.linked(document, targets).values())


def test_names_and_places(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/pinned/p.md", TOPIC)
    os.symlink("pinned", f"{memory}/alias")
    os.symlink(tmp_path, f"{memory}/out")
    os.symlink(memory, tmp_path / "way")
    os.symlink("loop", f"{memory}/loop")
    found = {
        name: where(place, path)
        for name, path in {
            "topic": f"{memory}/a/../b.md",
            "pinned": f"{memory}/pinned/p.md",
            "alias": f"{memory}/alias/p.md",
            "out": f"{memory}/out/x.md",
            "way": f"{tmp_path}/way/b.md",
            "loop": f"{memory}/loop/x.md",
            "root": memory,
            "elsewhere": f"{tmp_path}/x.md",
        }.items()
    }
    told = {
        name: None if each is None else (each.relative, each.pinned, each.leaves)
        for name, each in found.items()
    }
    assert told == {
        "topic": ("b.md", None, False),
        "pinned": ("pinned/p.md", "literal", False),
        "alias": ("alias/p.md", "resolved", False),
        "out": ("out/x.md", None, True),
        "way": ("b.md", None, False),
        "loop": ("loop/x.md", None, False),
        "root": None,
        "elsewhere": None,
    }
    assert found["way"] is not None and found["way"].path == f"{memory}/b.md"


def test_what_links_lead_to(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    memory = place.memory
    write(f"{memory}/t.md", TOPIC)
    write(f"{memory}/pinned/p.md", TOPIC)
    write(f"{tmp_path}/secret.md", TOPIC)
    os.symlink(f"{tmp_path}/secret.md", f"{memory}/out.md")
    os.symlink("t.md", f"{memory}/in.md")
    os.mkfifo(f"{memory}/pipe.md")
    names = ["t.md", "pinned/p.md", "in.md", "pipe.md", "none.md", "out.md", "../../secret.md"]
    paths = [os.path.normpath(f"{memory}/{name}") for name in names]
    told = {
        name: (each.exists, each.inside, each.pinned, each.topic and each.topic.title)
        for name, each in zip(names, linked(place, f"{memory}/MEMORY.md", *paths), strict=True)
    }
    assert told == {
        "t.md": (True, True, False, "N"),
        "pinned/p.md": (True, True, True, "N"),
        "in.md": (True, True, False, "N"),
        "pipe.md": (True, True, False, None),
        "none.md": (False, True, False, None),
        "out.md": (True, False, False, None),  # nothing of what is outside is told
        "../../secret.md": (False, False, False, None),
    }


def test_what_a_rule_denies_to_read_is_not_told_of(tmp_path: Path) -> None:
    place = Embedded(tmp_path)
    path = write(f"{place.memory}/t.md", TOPIC)
    rules = [{"decision": "deny", "tools": ["read_file"], "paths": [path]}]
    session = place.gateway.sessions.get(place.open(rules=rules).session_id)
    with library.survey(place.gateway, session) as survey:
        document = survey.where(f"{place.memory}/MEMORY.md")
        assert document is not None
        (found,) = survey.linked(document, [path]).values()
    assert found.exists and found.topic is None
    assert library.text_of(place.gateway, session, path) is None


def test_a_reserved_directory_that_cannot_be_looked_at_counts_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Embedded(tmp_path)
    path = write(f"{place.memory}/pinned/p.md", TOPIC)

    def fails(*_: Any) -> Any:
        raise PermissionError

    opened = place.gateway.sessions.get(place.open().session_id)
    monkeypatch.setattr(roots_module.Look, "_reserved", fails)
    with library.survey(place.gateway, opened) as survey:
        found = survey.where(path)
    assert found is not None and found.pinned == "literal"
