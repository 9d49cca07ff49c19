"""Where the record is: what a host configures, and the place for everybody who does not say."""

import os

from pinfold.audit.line import LONGEST
from pinfold.audit.log import Place
from pinfold.places import user_path
from pinfold_protocol.errors import invalid_params
from pinfold_protocol.session import AuditOptions

_LEAST = 1 << 16
_MOST = 1 << 40
_MOST_KEPT = 100
assert _LEAST > LONGEST


def default_path() -> str:
    """The user's directory for such things: on Linux `~/.local/state/pinfold/audit.jsonl`."""
    return user_path("state", "audit.jsonl")


def configured(options: AuditOptions, home: str) -> Place:
    """What a host wants. Raises RpcError (-32602) that names the member."""
    for member, value, least, most in (
        ("audit.maxBytes", options.max_bytes, _LEAST, _MOST),
        ("audit.keep", options.keep, 0, _MOST_KEPT),
    ):
        if not least <= value <= most:
            raise invalid_params(member, f"must be at least {least} and at most {most}")
    path = default_path() if options.path is None else _path(options.path, home)
    return Place(path, options.max_bytes, options.keep)


def _path(raw: str, home: str) -> str:
    if not raw.startswith(("/", "~/")):
        raise invalid_params("audit.path", "must be an absolute path, or begin with ~/")
    if "\0" in raw or os.path.basename(raw) in ("", ".", ".."):
        raise invalid_params("audit.path", "must be the path of a file")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise invalid_params("audit.path", "contains a lone surrogate") from None
    return home + raw[1:] if raw.startswith("~/") else raw
