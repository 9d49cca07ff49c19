"""The contract between a host and pinfold: types, methods, errors, framing, and a client.

Needs msgspec, and nothing of the gateway. README.md beside this package says it in words.
"""

PROTOCOL_VERSION = 1
SERVER_NAME = "pinfold"
