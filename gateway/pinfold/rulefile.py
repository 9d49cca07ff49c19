"""Base rules in a file, so that they can be tried out: `--rules FILE`."""

import json
from typing import Any

from pinfold_protocol.errors import invalid_params

_LARGEST = 1 << 24
"""Bytes; a host could not send more."""


def load(path: str) -> list[Any]:
    """The rules in a file of JSON, as plain data; the session they are for says what is wrong in
    them. Raises RpcError where the file holds no list."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise invalid_params("--rules", f"{path}: {error.strerror}") from None
    except ValueError:
        raise invalid_params("--rules", "a path has no NUL character") from None
    if len(data) > _LARGEST:
        raise invalid_params("--rules", f"{path}: over {_LARGEST} bytes long")
    try:
        rules = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise invalid_params("--rules", f"{path}: not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise invalid_params("--rules", f"{path}: not JSON: {error.msg} ({where})") from None
    except (ValueError, RecursionError):
        raise invalid_params(
            "--rules", f"{path}: nested too deeply, or with too long a number"
        ) from None
    if not isinstance(rules, list):
        raise invalid_params("--rules", f"{path}: must be a list of rules, in [ and ]")
    return rules
