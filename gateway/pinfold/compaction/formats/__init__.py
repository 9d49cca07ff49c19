"""The histories of providers, read and written. Each module has the same two functions.

`read(messages, scan)` tells a Scan what is in a history; `clear(message, found)` gives a copy of
one message in which some of its results are cleared. Nothing else is changed, and nothing in
place: what is not cleared is the same object in the new history.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pinfold.compaction.formats import anthropic, gemini, openai, records
from pinfold.compaction.scan import Found, Scan
from pinfold_protocol.compaction import Format


class Reader(msgspec.Struct, frozen=True):
    """One format."""

    read: Callable[[Sequence[Any], Scan], None]
    clear: Callable[[Any, Sequence[Found]], Any]


FORMATS: dict[Format, Reader] = {
    "gemini": Reader(gemini.read, gemini.clear),
    "openai": Reader(openai.read, openai.clear),
    "anthropic": Reader(anthropic.read, anthropic.clear),
    "records": Reader(records.read, records.clear),
}
