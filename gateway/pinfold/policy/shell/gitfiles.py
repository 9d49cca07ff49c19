"""Files of a repository as git reads them, strictly: what is odd is not proven."""

import re

_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\][ \t]*')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_SKIPPED = re.compile(r"[ \t]*(?:[#;].*)?")


def settings(text: str) -> tuple[tuple[str, str], ...] | None:
    """A configuration's keys, as `section.name` or `section.subsection.name`, and their values as
    they stand there. None where a line is not plainly one of its kinds: no key beside a section,
    no line that goes on in the next one."""
    found: list[tuple[str, str]] = []
    section = None
    for raw in text.split("\n"):
        line = raw.removesuffix("\r")
        if re.search(r"[\0-\x08\x0b-\x1f]|\\$", line):
            return None
        if header := _SECTION.fullmatch(line):
            name, subsection = header.groups()
            section = name.lower() if subsection is None else f"{name.lower()}.{subsection}"
        elif setting := _SETTING.fullmatch(line):
            if section is None:
                return None
            found.append((f"{section}.{setting[1].lower()}", (setting[2] or "").strip()))
        elif not _SKIPPED.fullmatch(line):
            return None
    return tuple(found)


_GITLINK, _DIRECTORY = 0o160000, 0o040000
_NAME_MASK = 0xFFF


def has_submodules(index: bytes, digest: int) -> bool:
    """Whether an index names other repositories, or leaves that open: a directory as one entry, a
    part of it in another file. `digest`: the length of an object's name.

    Raises ValueError for an index that is not read here: whatever git could read in two ways.
    """
    return _Index(index, digest).has_submodules()


class _Index:
    """Goes through an index as git does, to its last byte."""

    def __init__(self, data: bytes, digest: int) -> None:
        self._data = data
        self._digest = digest
        self._version = self._number(4)
        if data[:4] != b"DIRC" or self._version not in (2, 3, 4):
            raise ValueError("not an index of a known version")
        self._starts: list[int] = []
        self._whole: set[int] = set()  # entries that need nothing of the one before

    def _number(self, at: int, size: int = 4) -> int:
        found = self._data[at : at + size]
        if len(found) < size:
            raise ValueError("a short index")
        return int.from_bytes(found)

    def has_submodules(self) -> bool:
        at, length = 12, 0
        for _ in range(self._number(8)):
            if self._number(at + 24) & 0o170000 in (_GITLINK, _DIRECTORY):
                return True
            self._starts.append(at)
            at, length = self._entry(at, length)
        self._starts.append(at)
        return self._extensions(at)

    def _entry(self, at: int, before: int) -> tuple[int, int]:
        """Where the next entry begins, and how long this one's name is. Git goes by the length that
        stands there, which must be the name's own. `before`: the length of the name before."""
        flags_at = at + 40 + self._digest
        flags = self._number(flags_at, 2)
        name = flags_at + (4 if flags & 0x4000 else 2)
        kept = 0
        if self._version == 4:
            cut, name = self._varint(name)
            kept = before - cut
            if kept < 0:
                raise ValueError("a name that is cut too short")
            if not kept:
                self._whole.add(at)
        end = self._data.index(b"\0", name)
        length = kept + end - name
        if flags & _NAME_MASK != min(length, _NAME_MASK):
            raise ValueError("a name of another length")
        return (end + 1 if self._version == 4 else at + (end - at + 8) // 8 * 8), length

    def _varint(self, at: int) -> tuple[int, int]:
        """Git's own kind of a number of several bytes, and where it ends."""
        byte = self._number(at, 1)
        value = byte & 0x7F
        while byte & 0x80:
            at += 1
            byte = self._number(at, 1)
            value = ((value + 1) << 7) | (byte & 0x7F)
            if value >= 1 << 32:
                raise ValueError("too long a number")
        return value, at + 1

    def _extensions(self, at: int) -> bool:
        """Everything behind the entries; those in capitals may be ignored."""
        end = len(self._data) - self._digest
        last = at
        while at < end:
            last, name, size = at, self._data[at : at + 4], self._number(at + 4)
            if name in (b"link", b"sdir"):
                return True
            if not name[:1].isupper() or at + 8 + size > end:
                raise ValueError("an extension that is not known")
            self._check_offsets(name, at + 8, size)
            at += 8 + size
        # Git looks for that one by its distance from the end.
        tail = end - 12 - self._digest
        if at != end or (self._data[tail : tail + 4] == b"EOIE" and tail != last):
            raise ValueError("not an index's end")
        return False

    def _check_offsets(self, name: bytes, at: int, size: int) -> None:
        """Two extensions say where entries lie, for threads that begin there."""
        if name == b"EOIE" and self._number(at) != self._starts[-1]:
            raise ValueError("another end of the entries")
        if name == b"IEOT":
            if self._number(at) != 1 or size % 8 != 4:
                raise ValueError("a table of another kind")
            self._check_blocks(range(at + 4, at + size, 8))

    def _check_blocks(self, blocks: range) -> None:
        entry = 0
        for block in blocks:
            start = self._number(block)
            if self._starts[entry : entry + 1] != [start] or not self._begins_anew(start):
                raise ValueError("another place of an entry")
            entry += self._number(block + 4)
        if entry != len(self._starts) - 1:
            raise ValueError("blocks that do not fit")

    def _begins_anew(self, start: int) -> bool:
        return self._version != 4 or start in self._whole
