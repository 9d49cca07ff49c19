"""The picture of the demo shows what the demo says, and brings nothing else with it."""

import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import demo_picture

PICTURE = Path(__file__).parents[2] / "docs/images/demo.svg"


@pytest.fixture(scope="module")
def svg() -> str:
    return PICTURE.read_text("utf-8")


def test_the_picture_is_of_this_demo(svg: str) -> None:
    shown = demo_picture.plain(demo_picture.run())
    assert any("unharmed, byte for byte" in line for line in shown)
    assert demo_picture.told(svg) == shown, "run `make pictures`"


def test_a_picture_of_another_output_tells_that(svg: str) -> None:
    lines = ["\x1b[1mbold\x1b[0m & <b>  two", "", "  last"]
    assert demo_picture.told(demo_picture.draw("\n".join(lines))) == [
        "bold & <b>  two",
        "",
        "  last",
    ]


def test_it_loads_nothing_and_names_no_machine(svg: str) -> None:
    ElementTree.fromstring(svg)
    addresses = set(re.findall(r"\w+://[^\s\"')]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg"}
    for foreign in (tempfile.gettempdir() + "/", "/home/", "/root", "<script", "@import"):
        assert foreign not in svg
