"""The house as a picture: floors as `pyproject.toml` has them, arrows as the imports really are.

`docs/images/house.svg` is its output, and a test keeps it in step. Each package is a room; who
imports it has a dot in its column. Layers are kept, so every column goes down from its dots.
"""

import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from typing import Any
from xml.sax.saxutils import escape

import grimp
import msgspec

from pages import ROOT

PACKAGES = ("pinfold", "pinfold_protocol")
# Modules of the distribution that are no room: what holds the version, and what runs `cli`.
DOORSTEPS = ("pinfold", "pinfold.__main__")
# What a distribution is called by those who import it, where that is another name.
IMPORTED_AS: dict[str, tuple[str, ...]] = {}


class Kind(msgspec.Struct, frozen=True):
    """What rooms have in common, and how they are painted."""

    told: str
    fill: str
    line: str


WAYS_IN = Kind("ways in, and what people are shown", "#dbe6f6", "#5479b3")
CALLS = Kind("sessions and their calls", "#e6ddf4", "#7d63ad")
OUTSIDE = Kind("what touches files and other programs", "#f7dfa8", "#b9831b")
PURE = Kind("pure: no files, no clock, no loop", "#d7ebdd", "#4f9166")
CONTRACT = Kind("the contract", "#cfe7ea", "#3d8a95")
GROUND = Kind("from elsewhere", "#e8edf2", "#8792a0")
# From the roof down: a kind holds from the floor that has this room on. What is pure says the
# contract of the linter itself.
_FROM = {
    "pinfold.cli": WAYS_IN,
    "pinfold.explaining": CALLS,
    "pinfold.backends": OUTSIDE,
    "pinfold_protocol": CONTRACT,
}


class House(msgspec.Struct, frozen=True):
    """`floors` from the roof down, each a list of rooms; `kinds` and `imports` by room."""

    floors: list[list[str]]
    kinds: dict[str, Kind]
    imports: dict[str, set[str]]

    @property
    def rooms(self) -> list[str]:
        """All of them, from the roof down."""
        return list(chain.from_iterable(self.floors))


def house() -> House:
    """The house as it stands. Raises ValueError for a module that is on no floor."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    contracts = project["tool"]["importlinter"]["contracts"]
    floors = _floors(contracts)
    ground = _ground(project["project"]["dependencies"])
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    rooms = list(chain.from_iterable(floors))
    imports: dict[str, set[str]] = {room: set() for room in rooms}
    for module in sorted(graph.modules):
        if module.partition(".")[0] in PACKAGES and module not in DOORSTEPS:
            room = _room(module, rooms)
            targets = graph.find_modules_directly_imported_by(module)
            found = {_target(target, rooms, ground) for target in targets}
            imports[room] |= {each for each in found if each not in (None, room)}
    used = set(chain.from_iterable(imports.values()))
    floors.append([name for name in ground if name in used])
    return House(floors, _kinds(floors, contracts), imports)


def _floors(contracts: list[dict[str, Any]]) -> list[list[str]]:
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [layer.split(" | ") for layer in layers]


def _ground(dependencies: list[str]) -> dict[str, tuple[str, ...]]:
    """Each distribution that the project needs, and the names that it is imported by."""
    names = [each.partition(">=")[0] for each in dependencies]
    return {name: IMPORTED_AS.get(name, (name.replace("-", "_"),)) for name in sorted(names)}


def _room(module: str, rooms: list[str]) -> str:
    for room in rooms:
        if module == room or module.startswith(f"{room}."):
            return room
    raise ValueError(f"{module} is on no floor: name it in the layers of pyproject.toml")


def _target(module: str, rooms: list[str], ground: dict[str, tuple[str, ...]]) -> str | None:
    """The room or the distribution that an imported module belongs to; None for what is neither:
    the standard library, and the doorstep."""
    if module in DOORSTEPS:
        return None
    top = module.partition(".")[0]
    if top in PACKAGES:
        return _room(module, rooms)
    return next((name for name, imported in ground.items() if top in imported), None)


def _kinds(floors: list[list[str]], contracts: list[dict[str, Any]]) -> dict[str, Kind]:
    pure = next(c["source_modules"] for c in contracts if c["name"].startswith("Pure code"))
    kinds: dict[str, Kind] = {}
    kind = GROUND
    for floor in floors[:-1]:
        kind = next((_FROM[room] for room in floor if room in _FROM), kind)
        kinds |= {room: PURE if room in pure else kind for room in floor}
    return kinds | dict.fromkeys(floors[-1], GROUND)


# The drawing. Lengths are in units of the picture.
_ROW, _COLUMN, _FLOOR = 21, 16, 7  # a room's height, a column's width, the gap between floors
_LEFT, _WIDTH, _TOP, _ROOF = 24, 176, 96, 62
_SANS = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_QUIET = "#7b8794"  # reads on white and on black


def picture(house: House) -> str:
    """The whole SVG. It has no background, and its colours read on a light one and a dark one."""
    heights = _heights(house.floors)
    columns = {
        room: _LEFT + _WIDTH + 26 + number * _COLUMN for number, room in enumerate(house.rooms)
    }
    width = max(columns.values()) + _LEFT
    height = max(heights.values()) + _ROW + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="t d" '
        f'font-family="{_SANS}" font-size="12">',
        '<title id="t">The house: which package imports which</title>',
        '<desc id="d">Made by scripts/house.py from the real imports. Packages stand in floors; '
        "each imports only what is below it.</desc>",
        *_legend(columns),
        *_building(house, heights, width),
        *_lines(house, heights, columns),
        *_names(house, heights),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _heights(floors: list[list[str]]) -> dict[str, int]:
    """The top of each room. The ground has some more room above it."""
    heights: dict[str, int] = {}
    top = _TOP
    for floor in floors:
        top += 14 if floor is floors[-1] else 0
        for room in floor:
            heights[room] = top
            top += _ROW
        top += _FLOOR
    return heights


def _legend(columns: dict[str, int]) -> Iterator[str]:
    """Above the matrix, and above its dots."""
    x = min(columns.values()) + 4
    yield _text(
        x, 26, "A dot: the room at the left imports what its column leads down to.", size=13
    )
    table = ((0, WAYS_IN, OUTSIDE), (270, CALLS, PURE), (496, CONTRACT, GROUND))
    for left, *kinds in table:
        for number, kind in enumerate(kinds):
            yield _box(x + left, 40 + number * 20, 12, 12, kind, 3)
            yield _text(x + left + 19, 50.5 + number * 20, kind.told)


def _building(house: House, heights: dict[str, int], width: int) -> Iterator[str]:
    """The roof, the walls, and the line of the ground."""
    left, right = _LEFT - 7, _LEFT + _WIDTH + 7
    lowest = heights[house.floors[-2][-1]] + _ROW + 7
    middle = (left + right) / 2
    walls = f'fill="none" stroke="{_QUIET}" stroke-width="2" stroke-linejoin="round"'
    yield (
        f'<path d="M{left} {_TOP - 7}V{lowest}M{right} {_TOP - 7}V{lowest}'
        f'M{left - 9} {_TOP - 7}L{middle} {_TOP - 7 - _ROOF}L{right + 9} {_TOP - 7}z" {walls}/>'
    )
    yield f'<path d="M8 {lowest}H{width - 8}" {walls}/>'
    yield _text(
        middle, _TOP - 24, "pinfold", size=15, more='text-anchor="middle" font-weight="600"'
    )


def _lines(house: House, heights: dict[str, int], columns: dict[str, int]) -> Iterator[str]:
    """For each room a line to what it imports; for each column a line down to its room."""
    edge = _LEFT + _WIDTH + 8
    middle = {room: top + _ROW // 2 for room, top in heights.items()}
    for room in house.rooms:
        last = max((columns[each] for each in house.imports.get(room, ())), default=0)
        end = max(last, columns[room])
        kind = house.kinds[room]
        yield (
            f'<path d="M{edge} {middle[room]}H{end}" stroke="{kind.line}" '
            'stroke-opacity=".22" fill="none"/>'
        )
    for room in house.rooms:
        importers = [middle[each] for each in house.rooms if room in house.imports.get(each, ())]
        if not importers:
            continue
        kind, x = house.kinds[room], columns[room]
        down = f"M{x} {min(importers)}V{middle[room]}H{edge}"
        yield f'<path d="{down}" stroke="{kind.line}" stroke-opacity=".5" fill="none"/>'
        yield f'<path d="M{edge + 5} {middle[room] - 3.5}l-5 3.5 5 3.5z" fill="{kind.line}"/>'
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="4"/>' for y in importers)
        yield f'<g fill="{kind.line}">{dots}</g>'


def _names(house: House, heights: dict[str, int]) -> Iterator[str]:
    for room, top in heights.items():
        yield _box(_LEFT, top + 1, _WIDTH, _ROW - 2, house.kinds[room], 4)
        name = room.removeprefix("pinfold.")
        style = f'font-family="{_MONO}"'
        yield _text(_LEFT + 10, top + _ROW / 2 + 4.3, name, size=12.5, fill="#1f2933", more=style)


def _box(x: float, y: float, width: float, height: float, kind: Kind, round_: int) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_}" '
        f'fill="{kind.fill}" stroke="{kind.line}"/>'
    )


def _text(
    x: float, y: float, text: str, size: float = 12, fill: str = _QUIET, more: str = ""
) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}" {more}>{escape(text)}</text>'


if __name__ == "__main__":
    sys.stdout.write(picture(house()))
