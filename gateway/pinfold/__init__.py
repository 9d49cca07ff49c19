"""pinfold stands between an agent and its file tools; see ARCHITECTURE in CONTRIBUTING.md."""

__version__ = "0.1.0"
