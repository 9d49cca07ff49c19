"""A small agent host: `agent.py` is what a host's author would copy, `__main__.py` runs it."""
