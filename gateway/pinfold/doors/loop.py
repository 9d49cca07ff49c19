"""Import asyncio without TLS, which is a good part of it and spoken by nobody here.

asyncio goes without `ssl` where Python was built without it; this lets it believe so. To be
imported before anything that imports asyncio; whoever wants `ssl` afterwards gets it.
"""

import sys

_ABSENT = "ssl" not in sys.modules and "asyncio" not in sys.modules
if _ABSENT:
    sys.modules["ssl"] = None  # type: ignore[assignment]
import asyncio  # noqa: E402, F401

if _ABSENT:
    del sys.modules["ssl"]
