"""One small record for each result: for hosts that do not want to send what was read.

The shape is ours (`HistoryRecord`), and read strictly. A record has its own path, which counts for
all records with its id; a tag, or `preserved`, speaks for its own record.
"""

from collections.abc import Sequence
from typing import Any

from pinfold.compaction.scan import Found, Scan
from pinfold_protocol.compaction import HistoryRecord
from pinfold_protocol.convert import structure
from pinfold_protocol.errors import invalid_params


def read(records: Sequence[Any], scan: Scan) -> None:
    """Tell what is in a list of records. Raises RpcError (-32602) that names the member."""
    where = "trigger.pending" if scan.pending else "history"
    for scan.message, raw in enumerate(records):
        at = f"{where}[{scan.message}]"
        record = structure(raw, HistoryRecord, at)
        for member in ("chars", "media"):
            if getattr(record, member) < 0:
                raise invalid_params(f"{at}.{member}", "must be at least 0")
        scan.recorded(record)


def clear(record: dict[str, Any], found: Sequence[Found]) -> dict[str, Any]:
    """A copy of a record that says so."""
    (each,) = found
    gone = {"media": 0} if each.kind == "nested-media" else {"cleared": True, "media": 0}
    return {**record, **gone}
