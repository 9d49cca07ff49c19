"""What all types of the contract have in common: they are frozen, and know their names on the wire.

A type may say more in class variables: `omitted` are members that are left out where they are
null, `given_in` is the member that lists which others were there (by their names on the wire, in
order), and `further_in` the member that holds what is somebody else's. The last two are no members
on the wire.
"""

from typing import ClassVar

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A type whose members are `camelCase` on the wire."""

    omitted: ClassVar[tuple[str, ...]] = ()
    given_in: ClassVar[str | None] = None
    further_in: ClassVar[str | None] = None


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool: `snake_case` on the wire, since models see those."""
