"""The shell gate: a command is read-only only if every part of it is proven so. Pure."""
