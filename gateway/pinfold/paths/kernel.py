"""The calls of the platform that this process runs on: `linux` (proven) or `darwin` (not)."""

import sys

if sys.platform == "darwin":
    from pinfold.paths import darwin as platform
else:
    from pinfold.paths import linux as platform

__all__ = ["platform"]
