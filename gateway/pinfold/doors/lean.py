"""Import asyncio and msgspec without what they take along and a gateway does not need at its start.

TLS, and what `typing_extensions` adds to msgspec, are left out altogether: both go without where
they are missing. What serves tracebacks and questions about functions is loaded when it is first
used, and what `uuid` asks of `platform` is said in its place. To be imported before anything that
imports either; whoever else imports these modules afterwards gets them as always.
"""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_MISSING = ("ssl", "typing_extensions")
_LATER = (
    *("asyncio.sslproto", "inspect", "linecache", "locale", "traceback"),
    *("msgspec._json_schema", "msgspec.inspect"),
)


class _Later(ModuleType):
    """Stands for a module until something of it is used. All that is taken out of these at once
    are functions."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)  # which says that there is none
        if sys.modules.get(self.__name__) is not self:
            return getattr(import_module(self.__name__), name)

        def later(*args: Any, **more: Any) -> Any:
            if sys.modules.get(self.__name__) is self:  # used already
                del sys.modules[self.__name__]
            return getattr(self, name)(*args, **more)

        return later


def _import_both() -> None:
    platform = ModuleType("platform")
    platform.__dict__["system"] = lambda: os.uname().sysname
    stand_ins: dict[str, ModuleType | None] = {"platform": platform}
    stand_ins |= {name: _Later(name) for name in _LATER} | dict.fromkeys(_MISSING)
    spared = {name: each for name, each in stand_ins.items() if name not in sys.modules}
    sys.modules.update(spared)  # type: ignore[arg-type]
    try:
        import asyncio  # noqa: F401

        import msgspec  # noqa: F401
    finally:
        for name, each in spared.items():
            if sys.modules.get(name) is each:
                sys.modules.pop(name, None)


if "asyncio" not in sys.modules and "msgspec" not in sys.modules:
    _import_both()
