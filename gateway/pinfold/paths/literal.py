"""From the text that a model wrote to an absolute path; nothing is decoded, nothing trimmed."""

import os

from pinfold_protocol.errors import ToolError

MAX_BYTES = 4096


def expand(raw: str, base: str, home: str) -> str:
    """The absolute path that `raw` means: relative to `base`, `~/` is `home`. Not yet folded.

    Raises ToolError `invalid-path` for an empty path, a NUL, a lone surrogate, or one over
    4,096 bytes.
    """
    if not raw:
        raise ToolError("invalid-path", "The path is empty. Give the path of a file.")
    if "\0" in raw:
        raise ToolError("invalid-path", "The path contains a NUL byte. Leave it out.")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise ToolError(
            "invalid-path", "The path contains a lone surrogate. Leave it out."
        ) from None
    path = raw
    if raw == "~" or raw.startswith("~/"):
        path = home + raw[1:]
    elif not raw.startswith("/"):
        path = f"{base}/{raw}"
    if len(encode(path)) > MAX_BYTES:
        raise ToolError("invalid-path", f"The path is over {MAX_BYTES} bytes long. Shorten it.")
    return path


def encode(name: str) -> bytes:
    """A name as the kernel takes it: always UTF-8, whatever the locale says."""
    return name.encode("utf-8", "surrogateescape")


def decode(name: bytes) -> str:
    """A name from the kernel; a byte that is no UTF-8 becomes a lone surrogate."""
    return name.decode("utf-8", "surrogateescape")


def home_directory(env: dict[str, str]) -> str:
    """`HOME`, else what the user database says."""
    return env.get("HOME") or os.path.expanduser("~")


def working_directory() -> str:
    """Where this process was started; it may have been removed, and then it is the root."""
    try:
        return os.getcwd()
    except OSError:
        return "/"
