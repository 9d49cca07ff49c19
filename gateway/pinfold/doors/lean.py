"""Import asyncio and msgspec without what they take only where it is there, and nobody here needs:
TLS is a good part of asyncio, and what `typing_extensions` adds to msgspec Python has itself.

Both go without where it is missing; this lets them believe so. To be imported before anything that
imports either; whoever wants the rest afterwards gets it.
"""

import sys

_SPARED = [name for name in ("ssl", "typing_extensions") if name not in sys.modules]
_FRESH = "asyncio" not in sys.modules and "msgspec" not in sys.modules
if _FRESH:
    sys.modules.update(dict.fromkeys(_SPARED))  # type: ignore[arg-type]
import asyncio  # noqa: E402, F401

import msgspec  # noqa: E402, F401

if _FRESH:
    for name in _SPARED:
        del sys.modules[name]
