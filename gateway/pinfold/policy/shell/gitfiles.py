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


_GITLINK = 0o160000


def has_submodules(index: bytes, digest: int) -> bool:
    """Whether an index names other repositories, or leaves that open: a directory as one entry, a
    part of it in another file. `digest`: the length of an object's name. Raises
    ValueError for an index that is not read here."""
    version, count = int.from_bytes(index[4:8]), int.from_bytes(index[8:12])
    if index[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index of a known version")
    at = 12
    for _ in range(count):
        flags_at = at + 40 + digest
        flags = int.from_bytes(index[flags_at : flags_at + 2])
        name = flags_at + (4 if flags & 0x4000 else 2)
        if name >= len(index):
            raise ValueError("a short index")
        if int.from_bytes(index[at + 24 : at + 28]) & 0o170000 in (_GITLINK, 0o040000):
            return True
        if version == 4:
            while index[name] & 0x80:
                name += 1
            name += 1
        end = index.index(b"\0", name)
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
    return index[at : at + 4] == b"link"
