"""Names and paths as text: how a deny compares them, and how containment does.

The folding serves denials alone: it must not fail open on any file system that someone may keep
memory on (docs/policy.md, "Is it pinned?"). Containment that allows is exact.
"""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

RESERVED = "pinned"

# Unicode's Default_Ignorable_Code_Point: some file systems drop these from names.
_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


@lru_cache(maxsize=1)
def _dropped() -> dict[int, None]:
    """For `str.translate`; few names need it, and it has over 4,000 entries."""
    return {code: None for first, last in _IGNORABLE for code in range(first, last + 1)}


def _fold_once(name: str) -> str:
    if name.isascii():  # nothing to drop or to compose
        name = name.casefold()
    else:
        name = unicodedata.normalize("NFC", name.translate(_dropped())).casefold()
        name = unicodedata.normalize("NFC", name).translate(_dropped())
    name = name.removeprefix("._")
    stem, colon, stream = name.partition(":")
    if colon and stem and not stream[:1].isspace():
        name = stem
    end = len(name)
    while end and (name[end - 1] == "." or name[end - 1].isspace()):
        end -= 1
    return name[:end]


def _fold(name: str) -> str:
    """Fold until nothing changes, since one rule can uncover another (`pinned.:x`)."""
    while (folded := _fold_once(name)) != name:
        name = folded
    return name


@lru_cache(maxsize=4096)
def folds(name: str) -> frozenset[str]:
    """What `name` may mean on some file system: it folded, and its upper-cased form folded."""
    if name.isascii():  # where both are the same
        return frozenset((_fold(name),))
    return frozenset((_fold(name), _fold(name.upper())))


def same(a: str, b: str) -> bool:
    """Whether two names may mean the same entry somewhere. For denials only."""
    return a == b or not folds(a).isdisjoint(folds(b))


def split(path: str) -> tuple[str, ...]:
    """`/a//b` → `("a", "b")`."""
    return tuple(part for part in path.split("/") if part)


def join(parts: Iterable[str]) -> str:
    """`("a", "b")` → `/a/b`."""
    return "/" + "/".join(parts)


def is_sayable(text: str) -> bool:
    """Whether a message can hold a text: a byte of a name that is no UTF-8 stands in it as a lone
    surrogate, and strict readers drop a message with one."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sayable(text: str) -> str:
    """For showing only: what is no UTF-8 becomes U+FFFD."""
    if is_sayable(text):
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def collapse(path: str) -> str:
    """An absolute path with `.`, `..` and repeated slashes folded as text."""
    if "/." not in path and "//" not in path and path[-1:] != "/" and path[:1] == "/":
        return path  # as nearly all are
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return join(parts)


def is_below(path: str, base: str) -> bool:
    """Whether `path` is `base` or inside of it, compared exactly."""
    return path == base or path.startswith(base if base.endswith("/") else base + "/")


def below(path: str, base: str) -> tuple[str, ...] | None:
    """The names that lead from `base` to `path`, compared exactly; None if it is not inside."""
    return split(path[len(base) :]) if is_below(path, base) else None


def starts_with(names: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Whether `names` may begin with `prefix` somewhere. For denials only."""
    return len(names) >= len(prefix) and all(map(same, names, prefix))
