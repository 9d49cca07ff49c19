"""pinfold stands between an agent and its file tools; see docs/architecture.md."""

__version__ = "0.1.0"
