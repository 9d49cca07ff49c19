"""What the doctor finds: plain values, each with an id that stays, and what to do."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

Level = Literal["ok", "note", "wrong"]
MOST_SPOTS = 200
"""How many paths a finding names; the others are counted."""


class Kind(msgspec.Struct, frozen=True):
    """What findings of one id have in common."""

    level: Level
    advice: str = ""


_STRANGE = "Remove what you did not make."
_MOVE = "Move what is in it to pinned/ at the top level of the root, and remove it."

KINDS: dict[str, Kind] = {
    # The machine
    "walk": Kind("ok"),
    "walk-by-components": Kind("note", "Nothing to do; a kernel from 5.6 on is faster."),
    "no-proc": Kind("wrong", "Mount /proc: without it the gateway cannot check what it opened."),
    "platform-unproven": Kind("note", "Try your hosts' calls here before you rely on it."),
    # Where memory is
    "memory-base": Kind("ok"),
    "memory-elsewhere": Kind("note", "Name its layout if that is the one you mean."),
    "variable-relative": Kind("note", "Make it absolute, so that every gateway means the same."),
    "variable-ignored": Kind("note", "Correct it, or unset it."),
    # The session
    "session": Kind("ok"),
    "session-fails": Kind("wrong", "Make that path usable; until then hosts get this error too."),
    "session-unprotected": Kind("note", "Let background agents run as extraction or dream."),
    "session-unconfined": Kind("note", "Add confineWrites=true to the scope."),
    "hard-links-ignored": Kind("note", "Leave hardLinks at its default, deny."),
    # A root
    "root": Kind("ok"),
    "root-missing": Kind("note", "Nothing to do: the first write makes it."),
    "root-unresolved": Kind("wrong", "Mend the links or the permissions on the way to it."),
    "root-not-directory": Kind("wrong", "Move it away, so that a directory can be made there."),
    "root-unreadable": Kind("wrong", "Give yourself the permission (chmod u+rwx)."),
    "root-read-only": Kind("wrong", "Give yourself the permission (chmod u+w), or remount it."),
    "root-full": Kind("wrong", "Make room: until then no change can be made."),
    "root-others": Kind("wrong", "Take their permission away (chmod go-w, chown)."),
    "root-group": Kind("note", "Take the permission away (chmod g-w) unless you trust them all."),
    "root-untrusted": Kind("wrong", "Replace the link by the directory that it leads to."),
    "root-volume": Kind("ok"),
    "root-folds-names": Kind("note", "Nothing to do: names are compared accordingly."),
    "root-folding-unknown": Kind("note", "Ask again when there are files in it."),
    "root-remote": Kind("note", "Keep memory on a local disk where several machines may write."),
    "root-no-exchange": Kind("note", "Let no other program write there at the same time."),
    "root-no-locks": Kind("note", "Let one gateway at a time write there."),
    "roots-overlap": Kind("note", "Give each its own directory unless you mean it."),
    "project-in-root": Kind("wrong", "Move memory out: all of the project counts as memory."),
    # pinned
    "pinned": Kind("ok"),
    "pinned-missing": Kind("note", "To pin a document: mkdir pinned, and move it there."),
    "pinned-not-directory": Kind("wrong", "Make it a directory, and move the documents into it."),
    "pinned-link": Kind("note", "Nothing to do: the link and its target are both protected."),
    "pinned-dangling": Kind("wrong", "Mend the link, or replace it by a directory."),
    "pinned-whole-root": Kind("wrong", "Replace the link by a directory of its own."),
    "pinned-unknown": Kind("wrong", "Make it readable: until then every change is refused."),
    "pinned-alias": Kind("wrong", "Move what is in it to pinned/, and remove it."),
    "pinned-nested": Kind("wrong", _MOVE),
    "pinned-link-out": Kind("wrong", "Put the document itself into pinned/ in place of the link."),
    "pinned-hard-links": Kind("note", "Remove the other names, or make them copies."),
    "pinned-names-elsewhere": Kind("note", "Find them with find -samefile, and make them copies."),
    "pinned-second-door": Kind("wrong", "Unmount it, or leave that directory out of pinned/."),
    # What else is in a root
    "entries": Kind("ok"),
    "links-inside": Kind("note", "Nothing to do: a link's target is what is decided on."),
    "links-to-pinned": Kind("note", "Nothing to do: what is behind them is protected."),
    "links-outside": Kind("note", _STRANGE),
    "links-dangling": Kind("note", "Remove what nobody needs any more."),
    "links-broken": Kind("note", "Remove what cannot be mended."),
    "mounts-inside": Kind("note", "See that no mount shows what is below pinned/ elsewhere."),
    "unreadable": Kind("note", "Make them readable, and ask again."),
    "stopped": Kind("note", "Make the root smaller, or look through the rest yourself."),
    # Rules
    "rules": Kind("ok"),
    "rule-refused": Kind("wrong", "Correct it: hosts that send it cannot open a session."),
    "rule-never-matches": Kind("wrong", "Leave paths out, or name a tool that has a path."),
    # Upstreams
    "configuration-refused": Kind(
        "wrong", "Correct it: no session of an MCP client can be opened."
    ),
    "upstream": Kind("ok"),
    "upstream-fails": Kind("wrong", "Correct it: no session in front of it can be opened."),
    "upstream-unmapped": Kind(
        "note", "Sessions that protect memory deny them; upstreams.NAME.tools can say what they do."
    ),
    "upstream-no-such-tool": Kind("wrong", "Correct the name: what is said of it has no effect."),
    # The record
    "record": Kind("ok"),
    "record-unusable": Kind("wrong", "Move it away, or let the host name another place."),
}


class Spot(msgspec.Struct, frozen=True):
    """A path that a finding is about; `to`: where it leads, or what it is another name of;
    `said`: what else there is to say of it."""

    path: str
    to: str | None = None
    said: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found. `about`: what part of the whole; `more`: how many spots were left
    out; `base`: the directory that people need not read once more in each of them."""

    name: str
    level: Level
    about: str
    title: str
    advice: str
    spots: tuple[Spot, ...] = ()
    more: int = 0
    base: str = ""


def finding(
    name: str,
    about: str,
    title: str,
    spots: Sequence[Spot] = (),
    *,
    level: Level | None = None,
    advice: str | None = None,
    base: str = "",
) -> Finding:
    """A finding of one of `KINDS`, with the level and the advice of its kind unless given."""
    kind = KINDS[name]
    shown = tuple(spots[:MOST_SPOTS])
    return Finding(
        name,
        level or kind.level,
        about,
        title,
        kind.advice if advice is None else advice,
        shown,
        len(spots) - len(shown),
        base,
    )


def is_wrong(findings: Iterable[Finding]) -> bool:
    """Whether anything of it has to be mended."""
    return any(each.level == "wrong" for each in findings)


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """For programs: the table in docs/doctor.md."""
    return [
        {
            "id": each.name,
            "level": each.level,
            "about": each.about,
            "title": each.title,
            "advice": each.advice,
            "paths": [{"path": spot.path, "to": spot.to, "said": spot.said} for spot in each.spots],
            "more": each.more,
        }
        for each in findings
    ]


def count(number: int, one: str, many: str = "") -> str:
    """`1 link`, `1,200 links`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
