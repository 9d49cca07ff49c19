"""What is made from the code is current: the reference, and the picture of the house."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

import cli_reference
import house
import pages
from pinfold_protocol import reference, schema
from pinfold_protocol.catalogue import RPC_ERRORS, TOOL_ERRORS
from pinfold_protocol.methods import METHODS

MADE: dict[str, Callable[[], str]] = {
    "docs/reference/protocol.md": lambda: reference.page(schema.schema()),
    "docs/reference/cli.md": cli_reference.page,
    "docs/images/house.svg": lambda: house.picture(house.house()),
}


@pytest.mark.parametrize("path", MADE)
def test_it_is_current(path: str) -> None:
    assert (pages.ROOT / path).read_text("utf-8") == MADE[path](), "stale: run `make generated`"


def test_the_reference_has_every_method_member_and_error() -> None:
    contract = schema.schema()
    page = reference.page(contract)
    for name in (
        *METHODS,
        *TOOL_ERRORS,
        *map(str, RPC_ERRORS),
        *contract["tools"],
        *contract["meta"],
    ):
        assert f"`{name}`" in page or f'["{name}"]`' in page, name
    for name, definition in contract["$defs"].items():
        for member in definition["properties"]:
            assert re.search(rf"^\| `{re.escape(member)}\??` \|", page, re.MULTILINE), (
                name,
                member,
            )


def test_every_type_that_the_reference_names_can_be_reached() -> None:
    page = pages.parse("reference.md", reference.page(schema.schema()))
    inner = {link.target[1:] for link in page.links if link.target.startswith("#")}
    assert inner
    assert inner <= page.anchors


def test_no_python_name_is_left_in_what_is_told_of_the_wire() -> None:
    told = reference.page(schema.schema())
    snake = set(re.findall(r"`(?!-)([a-z]+(?:_[a-z0-9]+)+)\??`", told))
    arguments = {
        name
        for definition in ("ReadFileArguments", "WriteFileArguments", "EditArguments")
        for name in schema.schema()["$defs"][definition]["properties"]
    }
    assert "file_path" in snake
    assert snake <= arguments | set(schema.schema()["tools"]) | {"snake_case"}


def test_the_command_line_s_page_has_every_option_of_the_help() -> None:
    told = cli_reference.page()
    for name in (
        "serve",
        "hook",
        "explain",
        "roots",
        "index",
        "doctor",
        "compact",
        "audit",
        "demo",
    ):
        assert f"## `pinfold {name}`\n" in told
    for option in ("--upstream NAME", "--install", "--tool-prefix TEXT", "--clear-at-least CHARS"):
        assert f"| `{option}` |" in told


def test_the_house_is_as_the_linter_has_it() -> None:
    built = house.house()
    height = {room: floor for floor, rooms in enumerate(built.floors) for room in rooms}
    assert height["pinfold.cli"] == 0
    assert set(built.kinds) == set(height)
    for room, imports in built.imports.items():
        assert all(height[each] > height[room] for each in imports), room
    importers = {room for room, imports in built.imports.items() if "pygls" in imports}
    assert importers == {"pinfold.doors"}


def test_a_module_that_is_on_no_floor_is_named() -> None:
    with pytest.raises(ValueError, match=r"pinfold\.attic is on no floor"):
        house._room("pinfold.attic", ["pinfold.cli", "pinfold.a"])


def test_the_picture_shows_every_room_and_every_import() -> None:
    built = house.house()
    drawn = ElementTree.fromstring(house.picture(built))
    space = "{http://www.w3.org/2000/svg}"
    texts = {each.text for each in drawn.iter(f"{space}text")}
    assert {room.removeprefix("pinfold.") for room in built.rooms} <= texts
    dots = len(list(drawn.iter(f"{space}circle")))
    assert dots == sum(map(len, built.imports.values()))
