"""What the C library does with memory that is free again: keep it while requests come.

A large answer is made in several buffers of its size. By itself, glibc gives each back to the
kernel and asks for the next one page by page, which takes longer than all that is done in it. So
they are kept, and given back at rest. Other C libraries do as they do.
"""

import ctypes
from functools import cache
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGEST = 32 << 20
"""Bytes: larger ones are mapped each for itself, and go back when they are free (glibc's most)."""
_KEPT = 64 << 20
"""Bytes that may be free at the end of a heap."""


def keep() -> None:
    """From now on, keep what is free again."""
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_ARENA_MAX, 1)  # what stands at the end of any other is never given back


def give_back() -> None:
    """Give back what is free now."""
    if (trim := _of_libc("malloc_trim")) is not None:
        trim(0)


@cache
def _of_libc(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None)
